//! `sshflow-lab run`
#![forbid(unsafe_code)]

use crate::bench::matrix::{Matrix, Variant};
use crate::bench::{self, Restriction};
use crate::error::{Error, Result};
use crate::work::Work;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(clap::Args)]
pub struct Args {
    /// The matrix file
    matrix: PathBuf,
    /// Results are appended here, one line of JSON each; what is there already is not run again
    #[arg(long, default_value = "target/lab/results.jsonl")]
    out: PathBuf,
    /// Only groups whose name contains this (may be repeated)
    #[arg(long)]
    group: Vec<String>,
    /// Repeat each point so often instead of what the matrix says
    #[arg(long)]
    repeats: Option<usize>,
    /// One more SSH, which joins every group: NAME=DIR, or NAME=dropbear:DIR
    #[arg(long)]
    also: Vec<String>,
    /// Run again what the results already hold from the same programs
    #[arg(long)]
    again: bool,
    /// Only say what would run, and how long it takes
    #[arg(long)]
    plan: bool,
}

fn variant(text: &str) -> Result<Variant> {
    let (name, at) = text
        .split_once('=')
        .ok_or_else(|| Error::new(format!("\"{text}\" is not NAME=DIR")))?;
    let (kind, dir) = at.split_once(':').unwrap_or(("openssh", at));
    Ok(Variant {
        name: name.into(),
        kind: kind.into(),
        client: dir.into(),
        server: dir.into(),
        options: vec![],
        server_options: vec![],
        rate_factor: 1.0,
    })
}

pub fn run(work: &Work, args: &Args) -> Result<ExitCode> {
    let matrix = Matrix::load(&args.matrix)?;
    let also = args
        .also
        .iter()
        .map(|a| variant(a))
        .collect::<Result<_>>()?;
    let only = Restriction {
        groups: args.group.clone(),
        repeats: args.repeats,
        also,
        again: args.again,
    };
    if args.plan {
        bench::print_plan(&matrix, &only)?;
        return Ok(ExitCode::SUCCESS);
    }
    let failed = bench::run(work, &matrix, &args.out, &only)?;
    if failed > 0 {
        eprintln!("{failed} runs did not end as they should");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}
