//! The command line.
#![forbid(unsafe_code)]

mod data;
mod link;
mod report;
mod run;

use crate::error::Result;
use crate::work::Work;
use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

/// Measures SSH over a path and on a CPU that a desk does not have.
#[derive(Parser)]
#[command(name = "sshflow-lab", version, disable_help_subcommand = true)]
struct Cli {
    /// Working directory
    #[arg(long, global = true, default_value = "target/lab")]
    work: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The delay link: two network namespaces and a path between them
    #[command(subcommand)]
    Link(link::Command),
    /// Make the data that is sent, and check its hashes
    Data {
        /// Kinds (default: all)
        names: Vec<String>,
    },
    /// Run a matrix and write down what came of each run
    Run(run::Args),
    /// Print tables, and write a page with pictures
    Report(report::Args),
    /// Sources and sinks, for the drivers
    #[command(subcommand, hide = true)]
    Payload(crate::payload::Command),
}

pub fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(code) => code,
        Err(e) => {
            eprintln!("sshflow-lab: {e}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> Result<ExitCode> {
    match cli.command {
        Command::Link(c) => link::run(c),
        Command::Data { names } => data::run(&Work::new(&cli.work)?, &names),
        Command::Run(args) => run::run(&Work::new(&cli.work)?, &args),
        Command::Report(args) => report::run(&args),
        Command::Payload(c) => crate::payload::run(c),
    }
}
