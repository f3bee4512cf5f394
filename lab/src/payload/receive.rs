//! The sink of a transfer: counts, hashes, and takes the time.
#![forbid(unsafe_code)]

use super::{now_ns, Place};
use crate::error::{Context, Error, Result};
use nix::sys::signal::{SigSet, Signal};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddrV4, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

const BLOCK: usize = 256 * 1024;
/// Reads of a slow consumer.
const SLOW_BLOCK: usize = 16 * 1024;
const SAMPLE_NS: u64 = 50_000_000;
const MAX_SAMPLES: usize = 20_000;

#[derive(clap::Args)]
pub struct Receive {
    #[command(flatten)]
    place: Place,
    /// Write the result here instead of to standard output
    #[arg(long)]
    result: Option<PathBuf>,
    /// Write the process number here
    #[arg(long)]
    pid_file: Option<PathBuf>,
    /// Count for so long after SIGUSR1, then stop
    #[arg(long)]
    window_ms: Option<u64>,
    /// Consume no faster than this (bytes/s)
    #[arg(long)]
    rate: Option<u64>,
    #[arg(long)]
    listen: Option<String>,
    #[arg(long)]
    connect: Option<String>,
    /// What `connect` names is a SOCKS server: ask it for this address
    #[arg(long, requires = "connect")]
    through_socks: Option<SocketAddrV4>,
}

/// What a sink saw. Times are of the machine's monotonic clock.
#[derive(Debug, Clone, Serialize, Deserialize, Default)]
pub struct Received {
    pub bytes: u64,
    /// BLAKE3 of all `bytes`.
    pub hash: String,
    pub first_ns: u64,
    pub last_ns: u64,
    /// Bytes when the window began, and when.
    pub window: Option<(u64, u64)>,
    /// Time and bytes so far, every 50 ms.
    pub samples: Vec<(u64, u64)>,
}

impl Receive {
    pub fn run(self) -> Result<()> {
        self.place.join()?;
        let started = Arc::new(AtomicBool::new(false));
        if self.window_ms.is_some() {
            wait_for_signal(started.clone())?;
        }
        if let Some(path) = &self.pid_file {
            let part = path.with_extension("part");
            std::fs::write(&part, std::process::id().to_string())?;
            std::fs::rename(&part, path)?;
        }
        let received = self.read(&started)?;
        let line = serde_json::to_string(&received)?;
        match &self.result {
            Some(path) => {
                let part = path.with_extension("part");
                std::fs::write(&part, line)?;
                std::fs::rename(&part, path).context(|| "storing the result".into())
            }
            None => Ok(writeln!(std::io::stdout(), "{line}")?),
        }
    }

    fn read(&self, started: &AtomicBool) -> Result<Received> {
        match (&self.listen, &self.connect) {
            (Some(address), _) => {
                let listener = TcpListener::bind(address)?;
                eprintln!("listening");
                self.consume(listener.accept()?.0, started)
            }
            (_, Some(address)) => {
                let mut stream = TcpStream::connect(address)?;
                if let Some(target) = &self.through_socks {
                    socks(&mut stream, target)?;
                }
                self.consume(stream, started)
            }
            _ => {
                let fd = std::os::fd::AsFd::as_fd(&std::io::stdin()).try_clone_to_owned()?;
                self.consume(File::from(fd), started)
            }
        }
    }

    fn consume(&self, mut from: impl Read, started: &AtomicBool) -> Result<Received> {
        let mut seen = Received::default();
        let mut hash = blake3::Hasher::new();
        let mut buffer = vec![
            0;
            if self.rate.is_some() {
                SLOW_BLOCK
            } else {
                BLOCK
            }
        ];
        let mut next_sample = 0;
        loop {
            let n = match from.read(&mut buffer) {
                Ok(n) => n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e.into()),
            };
            let now = now_ns();
            if n == 0 {
                break;
            }
            if seen.bytes == 0 {
                seen.first_ns = now;
            }
            seen.bytes += n as u64;
            seen.last_ns = now;
            hash.update(&buffer[..n]);
            if now >= next_sample && seen.samples.len() < MAX_SAMPLES {
                seen.samples.push((now, seen.bytes));
                next_sample = now + SAMPLE_NS;
            }
            if seen.window.is_none() && started.load(Ordering::Relaxed) {
                seen.window = Some((now, seen.bytes));
            }
            if let (Some((since, _)), Some(ms)) = (seen.window, self.window_ms) {
                if now - since >= ms * 1_000_000 {
                    break;
                }
            }
            self.pace(&seen);
        }
        if self.window_ms.is_some() && seen.window.is_none() {
            return Err(Error::new("the data ended before the time was up"));
        }
        seen.hash = hash.finalize().to_hex().to_string();
        Ok(seen)
    }

    /// Sleeps as long as a consumer of the set rate is busy.
    fn pace(&self, seen: &Received) {
        if let Some(rate) = self.rate.filter(|r| *r > 0) {
            let due =
                seen.first_ns + (u128::from(seen.bytes) * 1_000_000_000 / u128::from(rate)) as u64;
            std::thread::sleep(Duration::from_nanos(due.saturating_sub(now_ns())));
        }
    }
}

/// Asks a SOCKS server for a connection (version 4, which needs one question and one answer).
fn socks(stream: &mut TcpStream, target: &SocketAddrV4) -> Result<()> {
    const CONNECT: [u8; 2] = [4, 1];
    const GRANTED: u8 = 90;
    let mut request = CONNECT.to_vec();
    request.extend(target.port().to_be_bytes());
    request.extend(target.ip().octets());
    // An empty user name.
    request.push(0);
    stream.write_all(&request)?;
    let mut answer = [0; 8];
    stream.read_exact(&mut answer)?;
    match answer[1] {
        GRANTED => Ok(()),
        code => Err(Error::new(format!("the SOCKS server refused: {code}"))),
    }
}

/// A thread takes the signal; all others, made later, have it blocked.
fn wait_for_signal(started: Arc<AtomicBool>) -> Result<()> {
    let mut set = SigSet::empty();
    set.add(Signal::SIGUSR1);
    set.thread_block()?;
    std::thread::spawn(move || {
        while set.wait().is_err() {}
        started.store(true, Ordering::Relaxed);
    });
    Ok(())
}
