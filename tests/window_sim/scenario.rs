//! What a run simulates, and what it showed.

use super::congestion::Congestion;
use super::session::Session;
use super::tcp::{Path, Sockets};
use sshflow::window::{Kind, Policy, WindowConfig, WINDOW_LIMIT};

pub const MIB: f64 = 1048576.0;
const MBIT: f64 = 1e6 / 8.0;

/// What reads from a channel.
#[derive(Debug, Clone, Copy)]
pub enum Consumer {
    Fast,
    /// Bytes per second.
    Rate(f64),
    /// Takes everything, but rests: for so many microseconds of so many.
    Rests(f64, f64),
    /// Fast until a time (microseconds), then so many bytes per second.
    Slows(f64, f64),
}

/// What feeds a channel at the sender.
#[derive(Debug, Clone, Copy)]
pub enum Source {
    Endless,
    /// Endless, but silent from one time to another (microseconds).
    Silent(f64, f64),
    /// Endless until a time, silent until another (microseconds), then so many
    /// bytes per second.
    Dries(f64, f64, f64),
}

impl Source {
    /// Bytes per second at a time.
    pub fn rate(self, now_us: f64) -> f64 {
        match self {
            Source::Endless => f64::INFINITY,
            Source::Silent(from, to) | Source::Dries(from, to, _)
                if from <= now_us && now_us < to =>
            {
                0.0
            }
            Source::Dries(_, to, rate) if to <= now_us => rate,
            Source::Silent(..) | Source::Dries(..) => f64::INFINITY,
        }
    }

    /// Since when it has had something to send.
    pub fn awake_since(self, now_us: f64) -> f64 {
        match self {
            Source::Endless => 0.0,
            Source::Silent(_, to) if now_us >= to => to,
            Source::Silent(..) => 0.0,
            Source::Dries(..) => now_us,
        }
    }
}

impl Consumer {
    /// Bytes per second at a time, if that is what limits it.
    pub fn rate(self, now_us: f64) -> Option<f64> {
        match self {
            Consumer::Rate(rate) => Some(rate),
            Consumer::Slows(from, rate) if from <= now_us => Some(rate),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Channel {
    pub kind: Kind,
    pub initial: u32,
    pub source: Source,
    pub consumer: Consumer,
    pub start_us: f64,
}

impl Channel {
    pub fn bulk() -> Channel {
        Channel {
            kind: Kind::Bulk,
            initial: 2 << 20,
            source: Source::Endless,
            consumer: Consumer::Fast,
            start_us: 0.0,
        }
    }
}

/// One run.
#[derive(Clone)]
pub struct Scenario {
    pub path: Path,
    /// From this time on (microseconds) the path is another.
    pub changes: Vec<(f64, Path)>,
    pub sockets: Sockets,
    pub config: WindowConfig,
    pub channels: Vec<Channel>,
    /// Somebody types on a terminal of the same connection.
    pub typing: bool,
    /// The host knows the minimum round trip.
    pub knows_rtt: bool,
    /// The sender is one without the patches, which reads ahead as far as the
    /// window goes.
    pub reads_ahead: bool,
    pub seconds: f64,
    pub seed: u64,
}

impl Scenario {
    pub fn new(mbit: f64, rtt_ms: f64) -> Scenario {
        let rate = mbit * MBIT;
        let rtt_us = rtt_ms * 1_000.0;
        let path = Path {
            rate,
            rtt_us,
            queue: (rate * rtt_us / 1e6).max(64_000.0),
            loss: 0.0,
        };
        Scenario {
            path,
            changes: Vec::new(),
            sockets: Sockets {
                congestion: Congestion::Cubic,
                send_buffer: 64.0 * MIB,
                receive_buffer: 64.0 * MIB,
            },
            config: WindowConfig {
                window_max: 64 << 20,
                ..WindowConfig::default()
            },
            channels: vec![Channel::bulk()],
            typing: false,
            knows_rtt: true,
            reads_ahead: false,
            seconds: 10.0,
            seed: 1,
        }
    }

    /// The same with windows that never are the limit: what the path gives.
    pub fn unlimited(&self) -> Scenario {
        let mut free = self.clone();
        for channel in &mut free.channels {
            channel.initial = WINDOW_LIMIT;
        }
        free.config.policy = Policy::Fixed;
        free.config.budget = u64::MAX;
        free
    }

    /// The same with OpenSSH's own windows.
    pub fn stock(&self) -> Scenario {
        let mut stock = self.clone();
        stock.config.policy = Policy::Fixed;
        stock
    }

    pub fn run(&self) -> Outcome {
        Session::new(self).run()
    }
}

/// What a run showed.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Bytes consumed per channel, and those in each tenth of a second.
    pub consumed: Vec<f64>,
    pub samples: Vec<Vec<f64>>,
    /// The window in force of each channel at each tenth of a second.
    pub windows: Vec<Vec<u32>>,
    pub largest_backlog: Vec<f64>,
    pub largest_sum: f64,
    /// Time from a key to its echo, in microseconds.
    pub echoes: Vec<f64>,
    /// The longest time in which a source with something to send got nothing
    /// through, in microseconds.
    pub longest_gap_us: f64,
    /// How long the sender could have sent more but for the window, in
    /// microseconds, in each tenth of a second.
    pub blocked_us: Vec<f64>,
    pub adjusts: u64,
    pub probes: u32,
}

impl Outcome {
    pub fn total(&self) -> f64 {
        self.consumed.iter().sum()
    }

    /// Bytes per second over all channels between two times (seconds).
    pub fn rate(&self, from: f64, to: f64) -> f64 {
        let range = (from * 10.0) as usize..(to * 10.0) as usize;
        let sum: f64 = self
            .samples
            .iter()
            .map(|channel| channel[range.clone()].iter().sum::<f64>())
            .sum();
        sum / (to - from)
    }

    /// The part of the time between two moments (seconds) in which only the
    /// window kept the sender from sending.
    pub fn blocked(&self, from: f64, to: f64) -> f64 {
        let range = (from * 10.0) as usize..(to * 10.0) as usize;
        self.blocked_us[range].iter().sum::<f64>() / 1e6 / (to - from)
    }

    pub fn median_echo_ms(&self) -> f64 {
        let mut echoes = self.echoes.clone();
        echoes.sort_by(f64::total_cmp);
        echoes[echoes.len() / 2] / 1_000.0
    }
}
