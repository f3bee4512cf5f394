//! Bulk transfers through a pipe into or out of `ssh host command`, and the same over plain TCP.
#![forbid(unsafe_code)]

use super::channels::Master;
use super::{expected_hash, finish, Run};
use crate::bench::ends::exe;
use crate::bench::fill;
use crate::bench::groups::{End, Role};
use crate::bench::record::Outcome;
use crate::error::{Context, Error, Result};
use crate::payload::{now_ns, Received};
use nix::sys::signal::{kill, Signal};
use nix::unistd::{pipe2, Pid};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const PLAIN_PORT: u16 = 2300;
const PATIENCE: Duration = Duration::from_secs(30);

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|s| s.to_string()).collect()
}

/// Words of the sink.
fn receive_words(run: &Run<'_>) -> Result<Vec<String>> {
    let result = run.file("received").display().to_string();
    let pid = run.file("receiver.pid").display().to_string();
    let mut words = strings(&["receive", "--result", &result, "--pid-file", &pid]);
    if let Some(seconds) = run.point.group.seconds {
        words.extend([
            "--window-ms".to_string(),
            format!("{}", (seconds * 1e3) as u64),
        ]);
    }
    if let Some(rate) = &run.point.group.consume {
        words.extend(["--rate".to_string(), crate::units::bytes(rate)?.to_string()]);
    }
    Ok(words)
}

/// Words of the source.
fn send_words(run: &Run<'_>) -> Result<Vec<String>> {
    let mut words = strings(&["send", &run.data()?.path.display().to_string()]);
    if let Some(bytes) = run.bytes()? {
        words.extend(["--bytes".to_string(), bytes.to_string()]);
    }
    if let Some(seed) = run.order() {
        words.extend(["--seed".to_string(), seed.to_string()]);
    }
    Ok(words)
}

/// A payload beside the client.
fn local(run: &Run<'_>, words: &[String]) -> Result<crate::sys::spawn::Spawn> {
    let mut all = vec![exe()?, "payload".to_string()];
    all.extend_from_slice(words);
    run.ends.spawn(&all, End::Client, Role::Payload)
}

/// Through a connection of its own.
pub fn ssh(run: &Run<'_>) -> Result<Outcome> {
    transfer(run, "client.log")
}

/// Through a second session of a connection that is up.
pub fn second_session(run: &Run<'_>) -> Result<Outcome> {
    let master = Master::start(run)?;
    let outcome = transfer(run, super::SESSION_LOG);
    drop(master);
    outcome
}

fn transfer(run: &Run<'_>, log: &str) -> Result<Outcome> {
    let download = run.sender() == End::Server;
    let (read, write) = pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
    let log = File::create(run.file(log))?;
    let far = if download {
        send_words(run)?
    } else {
        receive_words(run)?
    };
    let remote = run.ends.remote_payload(&far)?;
    let words = run.ends.client("bin/ssh", &["target", &remote])?;
    let client = run.ends.spawn(&words, End::Client, Role::Ssh)?.stderr(log);
    let start = now_ns();
    let (client, near) = if download {
        let near = local(run, &receive_words(run)?)?.stdin(read).start()?;
        (client.stdout(write).start()?, near)
    } else {
        let near = local(run, &send_words(run)?)?.stdout(write).start()?;
        (client.stdin(read).stdout(Stdio::null()).start()?, near)
    };
    run.follow(client.id() as i32, End::Client);
    let fill = steer(run)?;
    let status = finish(client)?;
    let end = now_ns();
    let near = finish(near)?;
    if run.point.group.seconds.is_none() && !(status.success() && near.success()) {
        return Err(failure(run, &format!("ssh ended with {status}")));
    }
    outcome(run, start, end, fill)
}

/// The same bytes over a bare TCP connection, as the limit of what SSH could do.
pub fn plain_tcp(run: &Run<'_>) -> Result<Outcome> {
    let address = format!("{}:{PLAIN_PORT}", run.place.address);
    let route = Route {
        listener: End::Server,
        listen: address.clone(),
        connect: vec!["--connect".into(), address],
        // In the group of ssh: here the payload is what does the work.
        role: Role::Ssh,
    };
    over_tcp(run, &route)
}

/// The way of a TCP connection between the payloads of the two ends.
pub struct Route {
    /// The end that waits for the connection.
    pub listener: End,
    pub listen: String,
    /// What tells the other end where to go.
    pub connect: Vec<String>,
    pub role: Role,
}

pub fn over_tcp(run: &Run<'_>, route: &Route) -> Result<Outcome> {
    let caller = route.listener.other();
    let start_one = |end: End, more: &[String]| -> Result<crate::sys::spawn::Spawn> {
        let mut all = vec![exe()?, "payload".to_string()];
        all.extend(match end == run.sender() {
            true => send_words(run)?,
            false => receive_words(run)?,
        });
        all.extend_from_slice(more);
        run.ends.spawn(&all, end, route.role)
    };
    let listen = ["--listen".to_string(), route.listen.clone()];
    let mut listening = start_one(route.listener, &listen)?
        .stderr(Stdio::piped())
        .start()?;
    follow(run, &listening, route.listener, route.role);
    wait_until_listening(&mut listening)?;
    let start = now_ns();
    let calling = start_one(caller, &route.connect)?
        .stdout(Stdio::null())
        .start()?;
    follow(run, &calling, caller, route.role);
    let fill = steer(run)?;
    let (first, second) = match run.sender() == route.listener {
        true => (calling, listening),
        false => (listening, calling),
    };
    // The receiver's end is the transfer's.
    let (first, second) = (finish(first)?, finish(second)?);
    let end = now_ns();
    if run.point.group.seconds.is_none() && !(first.success() && second.success()) {
        return Err(failure(run, "the connection broke"));
    }
    outcome(run, start, end, fill)
}

/// Payloads that do ssh's work count as ssh.
fn follow(run: &Run<'_>, child: &Child, end: End, role: Role) {
    if role == Role::Ssh {
        run.follow(child.id() as i32, end);
    }
}

fn wait_until_listening(far: &mut Child) -> Result<()> {
    let mut line = String::new();
    if let Some(stderr) = far.stderr.take() {
        BufReader::new(stderr).read_line(&mut line)?;
    }
    if line.trim() == "listening" {
        return Ok(());
    }
    Err(Error::new(format!(
        "the TCP end did not start: {}",
        line.trim()
    )))
}

/// Starts the counted time once the sender's buffer is full; breaks the run where that is asked.
fn steer(run: &Run<'_>) -> Result<Option<String>> {
    if let Some(fault) = &run.point.group.fault {
        super::fault::inflict(run, fault)?;
    }
    if run.point.group.seconds.is_none() {
        return Ok(None);
    }
    let Some(pid) = receiver(&run.file("receiver.pid")) else {
        return Err(failure(run, "the receiver did not start"));
    };
    let seen = fill::wait(|| run.sending_processes());
    // A receiver that has gone has said why in its result, or it has none.
    let _ = kill(Pid::from_raw(pid), Signal::SIGUSR1);
    Ok(Some(seen))
}

fn receiver(path: &Path) -> Option<i32> {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        if let Some(pid) = std::fs::read_to_string(path)
            .ok()
            .and_then(|t| t.trim().parse().ok())
        {
            return Some(pid);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    None
}

fn failure(run: &Run<'_>, what: &str) -> Error {
    match run.complaint() {
        c if c.is_empty() => Error::new(what),
        c => Error::new(format!("{what}: {c}")),
    }
}

/// Checks what arrived, and makes the figure of it.
fn outcome(run: &Run<'_>, start: u64, end: u64, fill: Option<String>) -> Result<Outcome> {
    // In a run cut by time the far end may still be writing its result.
    let path = run.file("received");
    let waited = Instant::now();
    while !path.exists() && waited.elapsed() < Duration::from_secs(2) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let text = std::fs::read_to_string(path).map_err(|_| failure(run, "nothing was received"))?;
    let seen: Received = serde_json::from_str(&text).context(|| "the receiver's result".into())?;
    if let Some(bytes) = run.bytes()?.filter(|b| *b != seen.bytes) {
        return Err(failure(
            run,
            &format!("{} bytes arrived and not {bytes}", seen.bytes),
        ));
    }
    if seen.hash != expected_hash(run.data()?, seen.bytes, run.order())? {
        return Err(Error::new(
            "the data that arrived is not the data that was sent",
        ));
    }
    let (bytes, seconds) = match seen.window {
        Some((since, before)) => (seen.bytes - before, (seen.last_ns - since) as f64 / 1e9),
        None => (seen.bytes, (end - start) as f64 / 1e9),
    };
    let wire = |at: u64| (at.saturating_sub(start)) as f64 / 1e9;
    Ok(Outcome {
        value: bytes as f64 / 1e6 / seconds,
        unit: "MB/s".into(),
        more_is_better: true,
        bytes,
        seconds,
        first_byte_s: wire(seen.first_ns),
        fill,
        // The third figure is put in by who watched the wire.
        samples: seen
            .samples
            .iter()
            .map(|(t, b)| (wire(*t), *b, 0))
            .collect(),
        ..Outcome::default()
    })
}
