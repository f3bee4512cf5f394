//! Breaks a run on purpose. What comes of it must be a failure, never a figure.
#![forbid(unsafe_code)]

use super::Run;
use crate::bench::groups::End;
use crate::error::{Error, Result};
use crate::link::Direction;
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use std::time::Duration;

/// Late enough that the transfer is under way.
const AFTER: Duration = Duration::from_millis(700);

pub fn inflict(run: &Run<'_>, fault: &str) -> Result<()> {
    if fault == "disk-full" {
        // Where the files go there is no room; nothing more is to be done.
        return Ok(());
    }
    std::thread::sleep(AFTER);
    match fault {
        "corrupt" => {
            let direction = match run.sender() {
                End::Client => Direction::Up,
                End::Server => Direction::Down,
            };
            let link = run.place.link();
            let link = link.ok_or_else(|| Error::new("only a delay link can corrupt data"))?;
            link.apply(&[direction], &["corrupt=1"])
        }
        "kill" => {
            for pid in run.sending_processes() {
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
            Ok(())
        }
        other => Err(Error::new(format!(
            "a fault is corrupt, kill or disk-full, not \"{other}\""
        ))),
    }
}
