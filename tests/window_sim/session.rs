//! An SSH connection over the simulated TCP: a sender that serves its channels
//! in turn as long as the peer's window and the socket have room, a receiver
//! whose windows the library keeps, programs that consume.

use super::scenario::{Channel, Consumer, Outcome, Scenario};
use super::tcp::{Path, Tcp};
use sshflow::window::{ChannelId, Kind, Link, PEER_HAS_SSHFLOW};
use std::collections::VecDeque;

/// The largest packet, as OpenSSH opens channels with.
const PACKET: f64 = 32_768.0;

/// A keystroke's echo: one small packet.
const ECHO: f64 = 64.0;
const TYPING_INTERVAL_US: f64 = 250_000.0;

/// The time between two entries of [`Outcome::samples`].
const SAMPLE_US: f64 = 100_000.0;

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

pub struct Session<'a> {
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
    pub fn new(scenario: &'a Scenario) -> Session<'a> {
        let mut link = Link::new(scenario.config).unwrap();
        let flags = if scenario.reads_ahead {
            0
        } else {
            PEER_HAS_SSHFLOW
        };
        link.peer(b"SSH-2.0-OpenSSH_10.0", flags).unwrap();
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
            tick_us: (scenario.path.rtt_us / 80.0).clamp(50.0, 1_000.0),
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

    pub fn run(mut self) -> Outcome {
        while self.now_us < self.scenario.seconds * 1e6 {
            self.tick();
        }
        self.outcome
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
