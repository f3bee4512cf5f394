//! Changes of the link while a run lasts.
#![forbid(unsafe_code)]

use super::drivers::Run;
use crate::error::{Error, Result};
use crate::link::Direction;
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Does `work`, and meanwhile what the link's list of changes says. Times count from the start of
/// the run. A change that could not be made fails the run.
pub fn during<T: Send>(run: &Run<'_>, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let changes = &run.point.link.changes;
    if changes.is_empty() {
        return work();
    }
    let link = run
        .place
        .link()
        .ok_or_else(|| Error::new("only a delay link can change"))?;
    let (done, over) = channel::<()>();
    std::thread::scope(|s| {
        let changer = s.spawn(move || -> Result<()> {
            let start = Instant::now();
            for change in changes {
                let after = Duration::from_nanos(crate::units::duration_ns(&change.after)?);
                let wait = after.saturating_sub(start.elapsed());
                if over.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
                    return Ok(());
                }
                let words: Vec<&str> = change.set.split_whitespace().collect();
                link.apply(&Direction::BOTH, &words)?;
            }
            Ok(())
        });
        let result = work();
        drop(done);
        changer
            .join()
            .unwrap_or_else(|_| Err(Error::new("a thread died")))?;
        result
    })
}
