//! `sshflow-lab report`
#![forbid(unsafe_code)]

use crate::error::Result;
use crate::report;
use crate::summary::{self, Results};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(clap::Args)]
pub struct Args {
    /// Results, as `run` wrote them
    #[arg(default_value = "target/lab/results.jsonl")]
    results: Vec<PathBuf>,
    /// Write a page with tables and pictures here, and the pictures beside it
    #[arg(long)]
    html: Option<PathBuf>,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let results = Results::load(&args.results)?;
    if results.outdated > 0 {
        eprintln!("{} runs of earlier builds are left out", results.outdated);
    }
    let cells = summary::cells(&results);
    print!("{}", summary::print(&cells));
    if let Some(path) = &args.html {
        report::write(path, &results, &cells)?;
        eprintln!("written: {}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}
