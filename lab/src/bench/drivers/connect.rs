//! How long `ssh host true` takes.
#![forbid(unsafe_code)]

use super::{finish, Run};
use crate::bench::groups::{End, Role};
use crate::bench::record::Outcome;
use crate::error::{Error, Result};
use crate::payload::now_ns;
use std::fs::File;
use std::process::Stdio;

pub fn run(run: &Run<'_>) -> Result<Outcome> {
    let words = run.ends.client("bin/ssh", &["target", "true"])?;
    let log = File::create(run.file("client.log"))?;
    let start = now_ns();
    let client = run
        .ends
        .spawn(&words, End::Client, Role::Ssh)?
        .stdout(Stdio::null())
        .stderr(log)
        .start()?;
    run.follow(client.id() as i32, End::Client);
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
