//! Downloads over a TCP connection that ssh forwards (`-L`, `-R`, `-D`).
#![forbid(unsafe_code)]

use super::pipe::{over_tcp, Route};
use super::{start_client, Run};
use crate::bench::groups::{End, Role};
use crate::bench::matrix::Driver;
use crate::bench::record::Outcome;
use crate::error::{Error, Result};
use std::process::Child;
use std::time::{Duration, Instant};

/// Where ssh listens, and where the payload does. Both may be on the same machine.
const ENTRY: &str = "127.0.0.1:2310";
const EXIT: &str = "127.0.0.1:2311";
const PATIENCE: Duration = Duration::from_secs(30);

pub fn run(run: &Run<'_>) -> Result<Outcome> {
    let mut forwarder = Forwarder::start(run)?;
    let listener = match run.point.group.driver {
        // The server's side calls the client's.
        Driver::ForwardRemote => End::Client,
        _ => End::Server,
    };
    let mut connect = vec!["--connect".to_string(), ENTRY.to_string()];
    if run.point.group.driver == Driver::ForwardDynamic {
        connect.extend(["--through-socks".to_string(), EXIT.to_string()]);
    }
    let outcome = over_tcp(
        run,
        &Route {
            listener,
            listen: EXIT.into(),
            connect,
            role: Role::Payload,
        },
    )?;
    match forwarder.0.try_wait()? {
        Some(status) => Err(Error::new(format!("ssh ended early, with {status}"))),
        None => Ok(outcome),
    }
}

/// The ssh that forwards.
struct Forwarder(Child);

impl Drop for Forwarder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Forwarder {
    /// Starts it and waits until it listens.
    fn start(run: &Run<'_>) -> Result<Self> {
        let there = format!("{ENTRY}:{EXIT}");
        let (option, ready) = match run.point.group.driver {
            Driver::ForwardLocal => (["-L", &there], "Entering interactive session"),
            Driver::ForwardRemote => (["-R", &there], "remote forward success"),
            _ => (["-D", ENTRY], "Entering interactive session"),
        };
        let mut words = vec!["-N", "-o", "ExitOnForwardFailure=yes"];
        words.extend(option);
        words.push("target");
        let words = run.ends.client("bin/ssh", &words)?;
        let mut forwarder = Self(start_client(run, &words)?);
        let start = Instant::now();
        while !run.client_log().contains(ready) {
            if forwarder.0.try_wait()?.is_some() || start.elapsed() > PATIENCE {
                let why = run.complaint();
                return Err(Error::new(format!("ssh does not forward: {why}")));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(forwarder)
    }
}
