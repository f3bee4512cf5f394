//! `sshflow-lab run`
#![forbid(unsafe_code)]

use crate::bench::matrix::Matrix;
use crate::bench::{self, Restriction};
use crate::error::Result;
use crate::work::Work;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(clap::Args)]
pub struct Args {
    /// The matrix file
    matrix: PathBuf,
    /// Results are appended here, one line of JSON each
    #[arg(long, default_value = "target/lab/results.jsonl")]
    out: PathBuf,
    /// Only groups whose name contains this (may be repeated)
    #[arg(long)]
    group: Vec<String>,
    /// Repeat each point so often instead of what the matrix says
    #[arg(long)]
    repeats: Option<usize>,
}

pub fn run(work: &Work, args: &Args) -> Result<ExitCode> {
    let matrix = Matrix::load(&args.matrix)?;
    let only = Restriction { groups: args.group.clone(), repeats: args.repeats };
    let failed = bench::run(work, &matrix, &args.out, &only)?;
    if failed > 0 {
        eprintln!("{failed} runs did not end as they should");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}
