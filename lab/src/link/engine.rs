//! Runs the two shapers, a thread for each direction, between the two devices.
#![forbid(unsafe_code)]

use super::packet::{Packet, MAX_PACKET};
use super::params::{Counters, Params};
use super::shaper::Shaper;
use crate::error::Result;
use crate::sys::netns::Netns;
use crate::sys::{realtime, tun};
use nix::poll::{ppoll, PollFd, PollFlags};
use nix::sys::time::TimeSpec;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Packets read before those that are due are looked after.
const BATCH: usize = 8;
/// A change of the settings is seen after at most this long.
const LONGEST_SLEEP_NS: u64 = 5_000_000;

pub const CLIENT_ADDRESS: &str = "10.99.0.1";
pub const SERVER_ADDRESS: &str = "10.99.0.2";
const DEVICE: &str = "path0";
/// Uncut pieces that the kernel may hold for us: 1,000 are up to 64 MB.
const DEVICE_QUEUE: u32 = 1000;

/// A direction of travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From client to server.
    Up,
    /// From server to client.
    Down,
}

impl Direction {
    pub const BOTH: [Direction; 2] = [Direction::Up, Direction::Down];
}

struct State {
    params: Params,
    counters: Counters,
}

/// A running link. Dropping it ends it.
pub struct Link {
    pub client: Netns,
    pub server: Netns,
    states: [Arc<Mutex<State>>; 2],
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Link {
    /// Makes the namespaces and devices and starts to carry packets.
    pub fn start(params: [Params; 2], mtu: u32, seed: u64) -> Result<Self> {
        let client = Netns::new("client")?;
        let server = Netns::new("server")?;
        let near = device(&client, CLIENT_ADDRESS, SERVER_ADDRESS, mtu)?;
        let far = device(&server, SERVER_ADDRESS, CLIENT_ADDRESS, mtu)?;
        let states = params.map(|params| {
            Arc::new(Mutex::new(State {
                params,
                counters: Counters::default(),
            }))
        });
        let stop = Arc::new(AtomicBool::new(false));
        let ends = [(&near, &far), (&far, &near)];
        let mut threads = Vec::new();
        for (i, (from, to)) in ends.into_iter().enumerate() {
            let mut worker = Worker {
                from: from.try_clone()?,
                to: to.try_clone()?,
                state: states[i].clone(),
                stop: stop.clone(),
                shaper: Shaper::new(seed.wrapping_mul(2).wrapping_add(i as u64)),
                start: Instant::now(),
                buffer: vec![0; MAX_PACKET],
            };
            let name = ["link-up", "link-down"][i].to_string();
            threads.push(
                std::thread::Builder::new()
                    .name(name)
                    .spawn(move || worker.run())?,
            );
        }
        Ok(Self {
            client,
            server,
            states,
            stop,
            threads,
        })
    }

    fn state(&self, direction: Direction) -> MutexGuard<'_, State> {
        lock(&self.states[direction as usize])
    }

    pub fn params(&self, direction: Direction) -> Params {
        self.state(direction).params.clone()
    }

    pub fn set(&self, direction: Direction, params: Params) {
        self.state(direction).params = params;
    }

    /// Changes what `words` name, in both directions or in one; all of it or nothing.
    pub fn apply(&self, directions: &[Direction], words: &[&str]) -> Result<()> {
        let mut changed = Vec::new();
        for &direction in directions {
            let mut params = self.params(direction);
            for word in words {
                params.apply(word)?;
            }
            changed.push((direction, params));
        }
        for (direction, params) in changed {
            self.set(direction, params);
        }
        Ok(())
    }

    pub fn counters(&self, direction: Direction) -> Counters {
        let mut counters = self.state(direction).counters.clone();
        // The device's queue belongs to the sender's namespace.
        let netns = match direction {
            Direction::Up => &self.client,
            Direction::Down => &self.server,
        };
        counters.device_drops += device_drops(netns).unwrap_or(0);
        counters
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(|e| e.into_inner())
}

fn device(netns: &Netns, own: &str, peer: &str, mtu: u32) -> Result<File> {
    let file = netns.within(|| tun::open(DEVICE))?;
    // Nothing but what is measured goes over the link: no router solicitations.
    let _ = netns.sysctl(&format!("net.ipv6.conf.{DEVICE}.disable_ipv6"), "1");
    netns.ip("link set lo up")?;
    netns.ip(&format!("address add {own}/32 peer {peer} dev {DEVICE}"))?;
    netns.ip(&format!(
        "link set {DEVICE} mtu {mtu} txqueuelen {DEVICE_QUEUE} up"
    ))?;
    Ok(file)
}

fn device_drops(netns: &Netns) -> Result<u64> {
    netns.within(|| {
        let text = std::fs::read_to_string("/proc/thread-self/net/dev")?;
        let line = text.lines().find_map(|l| l.trim().strip_prefix("path0:"));
        // The fourth field of the second half is "drop" of the transmit side.
        let field = line.and_then(|l| l.split_whitespace().nth(11));
        Ok(field.and_then(|f| f.parse().ok()).unwrap_or(0))
    })
}

struct Worker {
    from: File,
    to: File,
    state: Arc<Mutex<State>>,
    stop: Arc<AtomicBool>,
    shaper: Shaper,
    start: Instant,
    buffer: Vec<u8>,
}

impl Worker {
    fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn run(&mut self) {
        realtime::this_thread();
        while !self.stop.load(Ordering::Relaxed) {
            self.take_in();
            let now = self.hand_over();
            let wake = self.shaper.next_event().unwrap_or(u64::MAX);
            let sleep = wake.saturating_sub(now).min(LONGEST_SLEEP_NS);
            let timeout = TimeSpec::from_duration(Duration::from_nanos(sleep));
            let mut fds = [PollFd::new(self.from.as_fd(), PollFlags::POLLIN)];
            let _ = ppoll(&mut fds, Some(timeout), None);
        }
    }

    fn take_in(&mut self) {
        for _ in 0..BATCH {
            let n = match self.from.read(&mut self.buffer) {
                Ok(n) => n,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return,
            };
            let packet = Packet::new(self.buffer[..n].to_vec(), self.now());
            let mut state = lock(&self.state);
            let State { params, counters } = &mut *state;
            self.shaper.offer(packet, params, counters);
        }
    }

    /// Puts packets on the wire and delivers those that have arrived.
    fn hand_over(&mut self) -> u64 {
        loop {
            let now = self.now();
            let packet = {
                let mut state = lock(&self.state);
                let State { params, counters } = &mut *state;
                self.shaper.advance(now, params, counters);
                self.shaper.pop_due(now, counters)
            };
            let Some(packet) = packet else {
                return now;
            };
            if self.to.write(packet.data()).is_err() {
                lock(&self.state).counters.device_drops += 1;
            }
        }
    }
}

/// Says why there can be no link here, if so.
pub fn obstacle() -> Option<String> {
    if !nix::unistd::geteuid().is_root() {
        return Some("not root".into());
    }
    if let Err(e) = Netns::new("probe") {
        return Some(e.to_string());
    }
    let probe = Netns::new("probe").and_then(|n| n.within(|| tun::open("probe0")));
    probe.err().map(|e| e.to_string())
}
