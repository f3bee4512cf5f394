//! Many channels of one connection at once.
#![forbid(unsafe_code)]

use super::{expected_hash, start_client, Run};
use crate::bench::ends::exe;
use crate::bench::groups::{End, Role};
use crate::bench::record::Outcome;
use crate::error::{Error, Result};
use crate::payload::{now_ns, Received};
use nix::unistd::pipe2;
use std::fs::File;
use std::process::Child;
use std::time::{Duration, Instant};

/// A connection that others share (`ssh -M`).
pub struct Master {
    child: Child,
}

impl Master {
    pub fn start(run: &Run<'_>) -> Result<Self> {
        let words = run.ends.client("bin/ssh", &["-M", "-N", "target"])?;
        let mut master = Self {
            child: start_client(run, &words)?,
        };
        let start = Instant::now();
        while !run.file("mux").exists() {
            if master.child.try_wait()?.is_some() || start.elapsed() > Duration::from_secs(30) {
                return Err(Error::new(format!(
                    "the shared connection failed: {}",
                    run.complaint()
                )));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(master)
    }
}

impl Drop for Master {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Channel {
    ssh: Child,
    sink: Child,
    result: std::path::PathBuf,
}

pub fn run(run: &Run<'_>) -> Result<Outcome> {
    let bytes = run
        .bytes()?
        .ok_or_else(|| Error::new("many channels need bytes"))?;
    let master = Master::start(run)?;
    let start = now_ns();
    let count = run.point.group.channels.max(1);
    let channels = (0..count)
        .map(|i| start_channel(run, i, bytes))
        .collect::<Result<Vec<_>>>()?;
    let mut rates = Vec::new();
    let hash = expected_hash(run.data()?, bytes, None)?;
    for (i, mut channel) in channels.into_iter().enumerate() {
        let status = channel.ssh.wait()?;
        channel.sink.wait()?;
        if !status.success() {
            return Err(Error::new(format!("channel {i} ended with {status}")));
        }
        let seen: Received = serde_json::from_str(&std::fs::read_to_string(&channel.result)?)?;
        if seen.bytes != bytes || seen.hash != hash {
            return Err(Error::new(format!(
                "channel {i} brought other data than was sent"
            )));
        }
        rates.push(bytes as f64 / ((seen.last_ns - start) as f64 / 1e9));
    }
    let seconds = (now_ns() - start) as f64 / 1e9;
    drop(master);
    let total = bytes * count as u64;
    Ok(Outcome {
        value: total as f64 / 1e6 / seconds,
        unit: "MB/s".into(),
        more_is_better: true,
        bytes: total,
        seconds,
        fairness: Some(jain(&rates)),
        ..Outcome::default()
    })
}

fn start_channel(run: &Run<'_>, i: usize, bytes: u64) -> Result<Channel> {
    let (read, write) = pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
    let result = run.file(&format!("received-{i}"));
    let sink_words = [
        &exe()?,
        "payload",
        "receive",
        "--result",
        &result.display().to_string(),
    ];
    let sink = run
        .ends
        .spawn(&sink_words, End::Client, Role::Payload)?
        .stdin(read)
        .start()?;
    let path = run.data()?.path.display().to_string();
    let words = [
        "send".to_string(),
        path,
        "--bytes".to_string(),
        bytes.to_string(),
    ];
    let remote = run.ends.remote_payload(&words)?;
    let ssh = run.ends.client("bin/ssh", &["target", &remote])?;
    let log = File::create(run.file(&format!("channel-{i}.log")))?;
    let ssh = run
        .ends
        .spawn(&ssh, End::Client, Role::Ssh)?
        .stdout(write)
        .stderr(log)
        .start()?;
    Ok(Channel { ssh, sink, result })
}

/// 1 when all are equal, 1/n when one has everything.
fn jain(rates: &[f64]) -> f64 {
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|r| r * r).sum();
    sum * sum / (rates.len() as f64 * squares)
}

#[cfg(test)]
mod tests {
    #[test]
    fn fairness_is_jains() {
        assert!((super::jain(&[2.0, 2.0]) - 1.0).abs() < 1e-9);
        assert!((super::jain(&[1.0, 0.0, 0.0, 0.0]) - 0.25).abs() < 1e-9);
    }
}
