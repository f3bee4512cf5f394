//! An SSH connection over the simulated TCP: a sender that serves its channels
//! in turn as long as the peer's window and the socket have room, a receiver
//! whose windows the library keeps, programs that consume.

use super::congestion::Congestion;
use super::tcp::{Path, Sockets, Tcp};
use sshflow::window::{ChannelId, Kind, Link, WindowConfig};
use std::collections::VecDeque;

pub const MIB: f64 = 1048576.0;
pub const MBIT: f64 = 1e6 / 8.0;

/// The largest packet, as OpenSSH opens channels with.
const PACKET: f64 = 32_768.0;

/// A keystroke's echo: one small packet.
const ECHO: f64 = 64.0;
const TYPING_INTERVAL_US: f64 = 250_000.0;

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
    fn rate(self, now_us: f64) -> f64 {
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
    fn awake_since(self, now_us: f64) -> f64 {
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
    fn rate(self, now_us: f64) -> Option<f64> {
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
            seconds: 10.0,
            seed: 1,
        }
    }

    /// The same with windows that never are the limit: what the path gives.
    pub fn unlimited(&self) -> Scenario {
        let mut free = self.clone();
        for channel in &mut free.channels {
            channel.initial = sshflow::window::WINDOW_LIMIT;
        }
        free.config.policy = sshflow::window::Policy::Fixed;
        free.config.budget = u64::MAX;
        free
    }

    /// The same with OpenSSH's own windows.
    pub fn stock(&self) -> Scenario {
        let mut stock = self.clone();
        stock.config.policy = sshflow::window::Policy::Fixed;
        stock
    }

    pub fn run(&self) -> Outcome {
        let mut session = Session::new(self);
        while session.now_us < self.seconds * 1e6 {
            session.tick();
        }
        session.outcome
    }
}

const SAMPLE_US: f64 = 100_000.0;

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

struct State {
    plan: Channel,
    id: ChannelId,
    credit: f64,
    /// What the source has given so far.
    produced: f64,
    backlog: f64,
    owed: f64,
    last_arrival_us: f64,
}

struct Session<'a> {
    scenario: &'a Scenario,
    tcp: Tcp,
    link: Link,
    channels: Vec<State>,
    changes: VecDeque<(f64, Path)>,
    now_us: f64,
    tick_us: f64,
    turn: usize,
    /// Packets in the stream, in order: channel and bytes not yet arrived.
    packets: VecDeque<(usize, f64, f64)>,
    /// Credit on its way to the sender: time, channel, bytes.
    credits: VecDeque<(f64, usize, f64)>,
    terminal: Option<ChannelId>,
    keys: VecDeque<f64>,
    next_key_us: f64,
    echoes_due: VecDeque<f64>,
    next_sample_us: f64,
    outcome: Outcome,
}

/// The terminal's number among the packets.
const TERMINAL: usize = usize::MAX;

impl<'a> Session<'a> {
    fn new(scenario: &'a Scenario) -> Session<'a> {
        let mut link = Link::new(scenario.config).unwrap();
        link.peer(b"SSH-2.0-OpenSSH_10.0", sshflow::window::PEER_HAS_SSHFLOW)
            .unwrap();
        let channels: Vec<State> = scenario
            .channels
            .iter()
            .map(|&plan| State {
                plan,
                id: link.open(plan.kind, plan.initial, PACKET as u32).unwrap(),
                credit: f64::from(plan.initial),
                produced: 0.0,
                backlog: 0.0,
                owed: 0.0,
                last_arrival_us: plan.start_us,
            })
            .collect();
        let terminal = scenario
            .typing
            .then(|| link.open(Kind::Interactive, 1 << 20, 16_384).unwrap());
        let count = channels.len();
        Session {
            scenario,
            tcp: Tcp::new(scenario.path, scenario.sockets, scenario.seed),
            link,
            channels,
            changes: scenario.changes.iter().copied().collect(),
            now_us: 0.0,
            tick_us: (scenario.path.rtt_us / 80.0).clamp(50.0, 500.0),
            turn: 0,
            packets: VecDeque::new(),
            credits: VecDeque::new(),
            terminal,
            keys: VecDeque::new(),
            next_key_us: 0.0,
            echoes_due: VecDeque::new(),
            next_sample_us: SAMPLE_US,
            outcome: Outcome {
                consumed: vec![0.0; count],
                samples: vec![vec![0.0]; count],
                windows: vec![Vec::new(); count],
                largest_backlog: vec![0.0; count],
                blocked_us: vec![0.0],
                ..Outcome::default()
            },
        }
    }

    fn tick(&mut self) {
        self.now_us += self.tick_us;
        if self
            .changes
            .front()
            .is_some_and(|change| change.0 <= self.now_us)
        {
            self.tcp.change(self.changes.pop_front().unwrap().1);
        }
        self.type_keys();
        while self
            .credits
            .front()
            .is_some_and(|credit| credit.0 <= self.now_us)
        {
            let (_, channel, bytes) = self.credits.pop_front().unwrap();
            self.channels[channel].credit += bytes;
        }
        self.produce();
        self.fill_socket();
        let arrived = self.tcp.advance(self.now_us);
        self.receive(arrived);
        for at in 0..self.channels.len() {
            if let Some(rate) = self.channels[at].plan.consumer.rate(self.now_us) {
                let owed = self.channels[at].owed + rate * self.tick_us / 1e6;
                self.channels[at].owed = owed.min(PACKET * 2.0);
            }
            self.consume(at);
            self.adjust(at);
        }
        self.sample();
    }

    fn clock(&self) -> u64 {
        1_000_000 + self.now_us as u64
    }

    fn type_keys(&mut self) {
        if self.terminal.is_some() && self.now_us >= self.next_key_us {
            self.next_key_us += TYPING_INTERVAL_US;
            self.keys.push_back(self.now_us);
        }
        let there_us = self.tcp.one_way_us();
        while self
            .keys
            .front()
            .is_some_and(|typed_us| typed_us + there_us <= self.now_us)
        {
            self.echoes_due.push_back(self.keys.pop_front().unwrap());
        }
    }

    fn produce(&mut self) {
        for state in &mut self.channels {
            let started = self.now_us >= state.plan.start_us;
            let rate = if started {
                state.plan.source.rate(self.now_us)
            } else {
                0.0
            };
            state.produced = match state.produced + rate * self.tick_us / 1e6 {
                left if left.is_infinite() && rate.is_finite() => 0.0,
                produced => produced,
            };
        }
    }

    /// One packet a channel in turn, as long as the socket has room.
    fn fill_socket(&mut self) {
        let mut space = self.tcp.space();
        while space >= ECHO {
            let Some(typed_us) = self.echoes_due.pop_front() else {
                break;
            };
            self.tcp.write(ECHO);
            self.packets.push_back((TERMINAL, ECHO, typed_us));
            space -= ECHO;
        }
        let count = self.channels.len();
        let mut refused = 0;
        while space > PACKET && refused < count {
            let state = &mut self.channels[self.turn % count];
            let bytes = state.credit.min(state.produced).min(PACKET).floor();
            if bytes < 1.0 {
                refused += 1;
            } else {
                refused = 0;
                state.credit -= bytes;
                state.produced -= bytes;
                space -= bytes;
                self.tcp.write(bytes);
                self.packets.push_back((self.turn % count, bytes, bytes));
            }
            self.turn += 1;
        }
        let wanting = self.channels.iter().any(|state| state.produced >= PACKET);
        let credit = self.channels.iter().any(|state| state.credit >= 1.0);
        if space > PACKET && wanting && !credit && self.tcp.starved() {
            *self.outcome.blocked_us.last_mut().unwrap() += self.tick_us;
        }
    }

    fn receive(&mut self, mut arrived: f64) {
        let now = self.clock();
        if self.scenario.knows_rtt && self.tcp.min_rtt_us.is_finite() {
            self.link.rtt(now, self.tcp.min_rtt_us as u32).unwrap();
        }
        while let Some(packet) = self.packets.front_mut() {
            let part = packet.1.min(arrived);
            packet.1 -= part;
            arrived -= part;
            if packet.1 > 0.0 {
                break;
            }
            let (channel, _, what) = self.packets.pop_front().unwrap();
            if channel == TERMINAL {
                let terminal = self.terminal.unwrap();
                self.outcome.echoes.push(self.now_us - what);
                self.link.received(terminal, now, ECHO as u32).unwrap();
                self.link.consumed(terminal, now, ECHO as u32).unwrap();
                self.link.adjust(terminal, now).unwrap();
                continue;
            }
            let state = &mut self.channels[channel];
            state.backlog += what;
            self.link.received(state.id, now, what as u32).unwrap();
            let since_us = state
                .last_arrival_us
                .max(state.plan.source.awake_since(self.now_us));
            self.outcome.longest_gap_us = self.outcome.longest_gap_us.max(self.now_us - since_us);
            state.last_arrival_us = self.now_us;
            // As OpenSSH, which looks at its windows after each read.
            self.consume(channel);
            self.adjust(channel);
        }
    }

    fn consume(&mut self, at: usize) {
        let now = self.clock();
        let state = &mut self.channels[at];
        self.outcome.largest_backlog[at] = self.outcome.largest_backlog[at].max(state.backlog);
        let limited = state.plan.consumer.rate(self.now_us).is_some();
        let bytes = match state.plan.consumer {
            Consumer::Rests(rest_us, of_us) if self.now_us % of_us < rest_us => 0.0,
            _ if limited => {
                let taken = if state.owed >= 4_096.0 {
                    state.owed.min(state.backlog).floor()
                } else {
                    0.0
                };
                state.owed -= taken;
                taken
            }
            _ => state.backlog,
        };
        if bytes > 0.0 {
            state.backlog -= bytes;
            self.link.consumed(state.id, now, bytes as u32).unwrap();
            self.outcome.consumed[at] += bytes;
            *self.outcome.samples[at].last_mut().unwrap() += bytes;
        }
    }

    fn adjust(&mut self, at: usize) {
        let now = self.clock();
        let increment = self.link.adjust(self.channels[at].id, now).unwrap();
        if increment > 0 {
            self.outcome.adjusts += 1;
            let there_us = self.now_us + self.tcp.one_way_us();
            self.credits.push_back((there_us, at, f64::from(increment)));
        }
    }

    fn sample(&mut self) {
        let windows = self
            .channels
            .iter()
            .map(|state| self.link.target(state.id).unwrap().window);
        let windows: Vec<u32> = windows.collect();
        let sum: f64 = windows.iter().map(|&window| f64::from(window)).sum();
        self.outcome.largest_sum = self.outcome.largest_sum.max(sum);
        if self.now_us < self.next_sample_us {
            return;
        }
        self.next_sample_us += SAMPLE_US;
        self.outcome.blocked_us.push(0.0);
        for (at, window) in windows.into_iter().enumerate() {
            self.outcome.windows[at].push(window);
            self.outcome.samples[at].push(0.0);
        }
        let stats = self
            .channels
            .iter()
            .map(|state| self.link.stats(state.id).unwrap());
        self.outcome.probes = stats.map(|stats| stats.probes).sum();
    }
}
