//! How long a key takes to come back from a program in a remote terminal, alone or beside a
//! download on the same connection or on another one.
#![forbid(unsafe_code)]

use super::channels::Master;
use super::Run;
use crate::bench::ends::exe;
use crate::bench::groups::{End, Role};
use crate::bench::record::Outcome;
use crate::error::{Error, Result};
use crate::payload::{now_ns, Received};
use crate::sys::pty::{Master as Terminal, Pty};
use crate::sys::spawn::Spawn;
use nix::unistd::pipe2;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::fs::File;
use std::process::Child;
use std::time::{Duration, Instant};

const LOST: Duration = Duration::from_secs(15);
/// Before the first key beside a download, so that its queue has built up.
const SETTLE: Duration = Duration::from_secs(2);
const DEFAULT_KEYS: usize = 200;

pub fn run(run: &Run<'_>) -> Result<Outcome> {
    let beside = run.point.group.beside.as_deref();
    let master = match beside {
        Some("same") => Some(Master::start(run)?),
        Some("other") | None => None,
        Some(b) => return Err(Error::new(format!("beside is same or other, not \"{b}\""))),
    };
    let bulk = beside
        .map(|_| Bulk::start(run, master.is_some()))
        .transpose()?;
    if bulk.is_some() {
        std::thread::sleep(SETTLE);
    }
    let start = now_ns();
    let times = type_keys(run, master.is_some())?;
    let seconds = (now_ns() - start) as f64 / 1e9;
    let beside_mb_s = bulk.map(|b| b.stop(run)).transpose()?;
    drop(master);
    let mut sorted = times;
    sorted.sort_by(f64::total_cmp);
    let p99 = percentile(&sorted, 0.99);
    Ok(Outcome {
        value: percentile(&sorted, 0.5),
        unit: "ms".into(),
        bytes: sorted.len() as u64,
        seconds,
        p50_ms: Some(percentile(&sorted, 0.5)),
        p99_ms: Some(p99),
        max_ms: sorted.last().copied(),
        beside_mb_s,
        latencies_ms: sorted.iter().map(|ms| (ms * 1e3).round() / 1e3).collect(),
        ..Outcome::default()
    })
}

fn percentile(sorted: &[f64], p: f64) -> f64 {
    let at = (sorted.len() as f64 * p).ceil() as usize;
    sorted
        .get(at.saturating_sub(1))
        .copied()
        .unwrap_or(f64::NAN)
}

/// A download that goes on until it is stopped.
struct Bulk {
    ssh: Child,
    sink: Child,
}

impl Bulk {
    fn start(run: &Run<'_>, shared: bool) -> Result<Self> {
        let (read, write) = pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
        let result = run.file("received").display().to_string();
        let sink_words = [
            &exe()?,
            "payload",
            "receive",
            "--result",
            &result,
            "--window-ms",
            "600000",
        ];
        let sink = run
            .ends
            .spawn(&sink_words, End::Client, Role::Payload)?
            .stdin(read)
            .start()?;
        let send = ["send".to_string(), run.data()?.path.display().to_string()];
        let remote = run.ends.remote_payload(&send)?;
        let log = File::create(run.file(if shared { "bulk.log" } else { "client.log" }))?;
        let ssh = run.ends.spawn(
            &run.ends.client("bin/ssh", &["target", &remote])?,
            End::Client,
            Role::Ssh,
        )?;
        let ssh = ssh.stdout(write).stderr(log).start()?;
        run.follow(ssh.id() as i32, End::Client);
        Ok(Self { ssh, sink })
    }

    /// Ends it; its mean rate is what the sink saw.
    fn stop(mut self, run: &Run<'_>) -> Result<f64> {
        let sink = nix::unistd::Pid::from_raw(self.sink.id() as i32);
        // The window begins and ends here: the sink is told to start counting with a window that
        // is over at once when its input ends.
        nix::sys::signal::kill(sink, nix::sys::signal::Signal::SIGUSR1)?;
        std::thread::sleep(Duration::from_millis(300));
        if let Some(status) = self.ssh.try_wait()? {
            return Err(Error::new(format!(
                "the download beside it ended with {status}"
            )));
        }
        self.ssh.kill()?;
        self.ssh.wait()?;
        self.sink.wait()?;
        let seen: Received = serde_json::from_str(&std::fs::read_to_string(run.file("received"))?)?;
        if seen.hash != super::expected_hash(run.data()?, seen.bytes, None)? {
            return Err(Error::new(
                "the download beside it brought other data than was sent",
            ));
        }
        Ok(seen.bytes as f64 / 1e6 / ((seen.last_ns - seen.first_ns).max(1) as f64 / 1e9))
    }
}

fn type_keys(run: &Run<'_>, shared: bool) -> Result<Vec<f64>> {
    let pty = Pty::open(24, 80)?;
    let remote = run.ends.remote_payload(&["echo".to_string()])?;
    let mut options = vec!["-tt"];
    if !shared && run.ends.variant.kind != "dropbear" {
        options.extend(["-o", "ControlPath=none"]);
    }
    if run.ends.variant.kind == "dropbear" {
        options = vec!["-t"];
    }
    options.extend(["target", &remote]);
    let words = run.ends.client("bin/ssh", &options)?;
    let name = if shared || run.point.group.beside.is_some() {
        "keys.log"
    } else {
        "client.log"
    };
    let spawn: Spawn = run.ends.spawn(&words, End::Client, Role::Ssh)?;
    let mut ssh = spawn
        .terminal(&pty)?
        .stderr(File::create(run.file(name))?)
        .start()?;
    run.follow(ssh.id() as i32, End::Client);
    let mut terminal = pty.master_only();
    let times = keys(run, &mut terminal);
    let _ = ssh.kill();
    ssh.wait()?;
    times
}

fn keys(run: &Run<'_>, terminal: &mut Terminal) -> Result<Vec<f64>> {
    await_byte(terminal, b'!', true)?;
    let count = match run.point.group.keys {
        0 => DEFAULT_KEYS,
        n => n,
    };
    let mut rng = ChaCha8Rng::seed_from_u64(run.seed);
    let mut times = Vec::with_capacity(count);
    for i in 0..count {
        std::thread::sleep(Duration::from_micros(rng.gen_range(5_000..40_000)));
        let key = b'a' + (i % 26) as u8;
        let start = Instant::now();
        terminal.write_all(&[key])?;
        await_byte(terminal, key, false)?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(times)
}

/// Reads up to the byte that must come. Only before the program starts may others come first.
fn await_byte(terminal: &mut Terminal, byte: u8, others: bool) -> Result<()> {
    let start = Instant::now();
    let mut buffer = [0; 256];
    while start.elapsed() < LOST {
        match terminal.read(&mut buffer, LOST)? {
            None => return Err(Error::new("the connection ended under the keys")),
            Some(n) if buffer[..n].contains(&byte) => return Ok(()),
            Some(n) if n > 0 && !others => {
                let text = String::from_utf8_lossy(&buffer[..n]).into_owned();
                return Err(Error::new(format!("the echo of a key was \"{text}\"")));
            }
            Some(_) => {}
        }
    }
    Err(Error::new("a key did not come back"))
}
