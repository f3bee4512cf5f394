//! How long `ssh host true` takes.
#![forbid(unsafe_code)]

use super::{finish, start_client, Run};
use crate::bench::record::Outcome;
use crate::error::{Error, Result};
use crate::payload::now_ns;

pub fn run(run: &Run<'_>) -> Result<Outcome> {
    let words = run.ends.client("bin/ssh", &["target", "true"])?;
    let start = now_ns();
    let client = start_client(run, &words)?;
    let status = finish(client)?;
    if !status.success() {
        return Err(Error::new(format!("{status}: {}", run.complaint())));
    }
    let seconds = (now_ns() - start) as f64 / 1e9;
    Ok(Outcome {
        value: seconds,
        unit: "s".into(),
        seconds,
        ..Outcome::default()
    })
}
