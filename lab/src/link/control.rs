//! The control socket: one line in, one line of JSON out.
//!
//! ```text
//! get                                settings and counters of both directions
//! set [up|down] KEY=VALUE...         rate, delay, queue, loss; faults: corrupt, blackhole
//! stop                               end the link
//! ```
#![forbid(unsafe_code)]

use super::engine::{Direction, Link};
use crate::error::{Context, Error, Result};
use crate::sys::janitor;
use serde_json::{json, Value};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

/// Longest line that is accepted.
const MAX_LINE: u64 = 4096;

/// Binds the socket. A socket that nobody answers on any more is replaced.
pub fn bind(path: &Path) -> Result<UnixListener> {
    if UnixStream::connect(path).is_ok() {
        return Err(Error::new(format!(
            "a link already answers on {}",
            path.display()
        )));
    }
    let _ = std::fs::remove_file(path);
    let listener =
        UnixListener::bind(path).context(|| format!("making the socket {}", path.display()))?;
    janitor::remove_later(path);
    Ok(listener)
}

/// Answers until `stop` is received. `about` is added to each answer to `get`.
pub fn serve(listener: &UnixListener, link: &Link, about: &Value) -> Result<()> {
    loop {
        let (stream, _) = listener.accept()?;
        // One peer that hangs must not block the others for long.
        let _ = stream.set_read_timeout(Some(std::time::Duration::from_secs(1)));
        if talk(&stream, link, about).unwrap_or(false) {
            return Ok(());
        }
    }
}

fn talk(stream: &UnixStream, link: &Link, about: &Value) -> Result<bool> {
    let mut reader = BufReader::new(std::io::Read::take(stream, MAX_LINE));
    let mut line = String::new();
    while reader.read_line(&mut line)? > 0 {
        let stop = line.trim() == "stop";
        let reply = match answer(line.trim(), link, about) {
            Ok(v) => v,
            Err(e) => json!({ "error": e.to_string() }),
        };
        let mut out = stream;
        writeln!(out, "{reply}")?;
        if stop {
            return Ok(true);
        }
        line.clear();
    }
    Ok(false)
}

fn answer(line: &str, link: &Link, about: &Value) -> Result<Value> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.as_slice() {
        ["get"] => {
            let mut all = about.clone();
            for d in Direction::BOTH {
                let name = if d == Direction::Up { "up" } else { "down" };
                all[name] = json!({ "params": link.params(d), "counters": link.counters(d) });
            }
            Ok(all)
        }
        ["set", "up", rest @ ..] => set(link, &[Direction::Up], rest),
        ["set", "down", rest @ ..] => set(link, &[Direction::Down], rest),
        ["set", rest @ ..] => set(link, &Direction::BOTH, rest),
        ["stop"] => Ok(json!({ "ok": true })),
        _ => Err(Error::new("say get, set [up|down] KEY=VALUE..., or stop")),
    }
}

fn set(link: &Link, directions: &[Direction], words: &[&str]) -> Result<Value> {
    if words.is_empty() {
        return Err(Error::new("set needs KEY=VALUE"));
    }
    link.apply(directions, words)?;
    Ok(json!({ "ok": true }))
}

/// Sends one line and takes the answer.
pub fn ask(path: &Path, line: &str) -> Result<Value> {
    let mut stream =
        UnixStream::connect(path).context(|| format!("no link answers on {}", path.display()))?;
    writeln!(stream, "{line}")?;
    let mut reply = String::new();
    BufReader::new(&stream).read_line(&mut reply)?;
    let value: Value = serde_json::from_str(&reply)?;
    match value.get("error").and_then(Value::as_str) {
        Some(e) => Err(Error::new(e)),
        None => Ok(value),
    }
}
