//! What runs at the far end of a connection: sources, sinks, an echo, a spinner. The driver starts
//! them as remote commands or as neighbours of a client; each reports in one line of JSON.
#![forbid(unsafe_code)]

mod chunks;
mod echo;
mod receive;
mod send;
mod spin;

pub use chunks::chunks;
pub use receive::Received;
pub use spin::Spun;

use crate::error::{Context, Result};
use clap::Subcommand;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Subcommand)]
pub enum Command {
    /// Write a file, again and again, up to a number of bytes or until nobody reads
    Send(send::Send),
    /// Read to the end, or for a time after SIGUSR1; report bytes, hash and times
    Receive(receive::Receive),
    /// Answer each byte of a terminal at once
    Echo {
        #[command(flatten)]
        place: Place,
    },
    /// Count how often a small loop runs
    Spin {
        #[command(flatten)]
        place: Place,
        #[arg(long)]
        seconds: f64,
    },
}

#[derive(clap::Args, Clone, Default)]
pub struct Place {
    /// `cgroup.procs` files of the groups to move to
    #[arg(long)]
    group: Vec<PathBuf>,
}

impl Place {
    /// Leaves the control group of ssh, so that only ssh is counted there.
    fn join(&self) -> Result<()> {
        for procs in &self.group {
            std::fs::write(procs, "0").context(|| format!("joining {}", procs.display()))?;
        }
        Ok(())
    }
}

pub fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Send(c) => c.run()?,
        Command::Receive(c) => c.run()?,
        Command::Echo { place } => {
            place.join()?;
            echo::run()?;
        }
        Command::Spin { place, seconds } => {
            place.join()?;
            println!("{}", serde_json::to_string(&spin::run(seconds))?);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The clock that all processes of a machine share, in ns.
pub fn now_ns() -> u64 {
    let t = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC)
        .expect("every Linux has a monotonic clock");
    t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64
}
