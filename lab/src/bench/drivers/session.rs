//! A person types at a remote shell; what it costs on the wire is counted.
#![forbid(unsafe_code)]

use super::Run;
use crate::bench::groups::{End, Role};
use crate::bench::record::Outcome;
use crate::data::script;
use crate::error::{Error, Result};
use crate::payload::now_ns;
use crate::sys::pty::Pty;
use std::fs::File;
use std::time::Duration;

/// So many times faster than a person, so that a run takes seconds.
const HASTE: u32 = 12;
const QUIET: Duration = Duration::from_millis(500);
const SHELL: &str = "env -i TERM=xterm PATH=/usr/bin:/bin HISTFILE= bash --noprofile --norc -i";

pub fn run(run: &Run<'_>) -> Result<Outcome> {
    let pty = Pty::open(24, 80)?;
    let words = run.ends.client("bin/ssh", &["-tt", "target", SHELL])?;
    let spawn = run.ends.spawn(&words, End::Client, Role::Ssh)?;
    let mut ssh = spawn
        .terminal(&pty)?
        .stderr(File::create(run.file("client.log"))?)
        .start()?;
    run.follow(ssh.id() as i32, End::Client);
    let mut terminal = pty.master_only();
    let mut shown = Vec::new();
    let start = now_ns();
    // The prompt shows that the shell is there, however long the way is.
    while !shown.contains(&b'#') && !shown.contains(&b'$') {
        let before = shown.len();
        terminal.read_until_quiet(QUIET, &mut shown)?;
        if shown.len() == before && (now_ns() - start) / 1_000_000_000 > 20 {
            let _ = ssh.kill();
            ssh.wait()?;
            return Err(Error::new(format!("no prompt came: {}", run.complaint())));
        }
    }
    let wire_before = run.place.wire();
    for key in script() {
        terminal.read_until_quiet(key.pause / HASTE, &mut shown)?;
        if terminal.write_all(&key.bytes).is_err() {
            return Err(Error::new("the session ended under the keys"));
        }
    }
    terminal.read_until_quiet(QUIET * 2, &mut shown)?;
    let wire_after = run.place.wire();
    let _ = ssh.kill();
    ssh.wait()?;
    // The last of the script's outputs proves that all of it was understood.
    if !String::from_utf8_lossy(&shown).contains("PRETTY_NAME=") {
        return Err(Error::new("the session did not run to its end"));
    }
    let (Some(before), Some(after)) = (wire_before, wire_after) else {
        return Err(Error::new("the wire cannot be counted here"));
    };
    let bytes = after.0 - before.0 + after.1 - before.1;
    Ok(Outcome {
        value: bytes as f64 / 1e3,
        unit: "kB on the wire".into(),
        bytes: shown.len() as u64,
        seconds: (now_ns() - start) as f64 / 1e9,
        ..Outcome::default()
    })
}
