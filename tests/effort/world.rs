//! One connection: a sender with its CPU and output queue, the kernel's send
//! buffer, the link, the peer's receive buffer and the peer's CPU.
//!
//! A rule sees what a real host sees: the clock, its own output queue (or not
//! even that), and what its packets cost. Times are nanoseconds, sizes bytes.

use crate::data::{cold_bytes, fixed_choices, Data, Piece, WireKind};
use crate::random::Random;
use crate::rules::{Packet, Rule, Sent};
use sshflow::compression::effort::{Effort, KernelState};
use std::collections::VecDeque;

pub const SECOND: f64 = 1e9;
/// OpenSSH stops reading its channels above this much output.
const OUTPUT_LIMIT: f64 = 128.0 * 1024.0;

/// A processor that only runs this job part of the time.
#[derive(Clone, Copy, Debug)]
pub struct Cpu {
    /// Every cost is multiplied by this.
    pub slow: f64,
    /// A quota: runs the first `slow`-th part of each period of 100 ms at full
    /// speed, instead of being slow evenly.
    pub throttled: bool,
}

impl Cpu {
    /// When work of `cost` that starts at `at` is done.
    fn run(&self, at: f64, cost: f64) -> f64 {
        if !self.throttled {
            return at + cost * self.slow;
        }
        let period = 0.1 * SECOND;
        let quota = period / self.slow;
        let mut now = at;
        let mut left = cost;
        loop {
            let phase = now % period;
            if phase >= quota {
                now += period - phase;
                continue;
            }
            let room = quota - phase;
            if left <= room {
                return now + left;
            }
            left -= room;
            now += room;
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Host {
    /// Main loop with poll; the queue is known.
    Poll,
    /// Blocking sends; the queue is not known.
    Blocking,
}

#[derive(Clone, Debug)]
pub struct Scenario {
    pub wire: WireKind,
    pub host: Host,
    pub sender: Cpu,
    pub peer: Cpu,
    /// Host work per raw byte and per byte on the wire (cipher, MAC, write).
    pub sender_raw: f64,
    pub sender_wire: f64,
    pub peer_raw: f64,
    pub peer_wire: f64,
    /// Each engine is that much slower than the table, per rung.
    pub engine: [f64; 8],
    /// From when on the link carries how many bytes per second.
    pub link: Vec<(f64, f64)>,
    pub rtt: f64,
    pub send_buffer: f64,
    /// The send buffer starts small and grows with what is acknowledged.
    pub autotuned: bool,
    pub receive_buffer: f64,
    /// The peer's channel window, raw bytes.
    pub channel_window: Option<f64>,
    /// The source delivers no faster than this, bytes per second.
    pub source: Option<f64>,
    /// Kinds of data that follow each other, with their lengths in raw bytes.
    pub data: Vec<(Data, f64)>,
    /// The host asks the kernel how its send queue drains.
    pub asks_kernel: bool,
    /// Keystrokes per second beside the bulk.
    pub keys: f64,
    pub seed: u64,
}

#[derive(Default, Debug, Clone)]
pub struct Report {
    /// Raw bytes delivered per second in the measured time.
    pub goodput: f64,
    pub packets: u64,
    /// Longest time a keystroke's own packet was worked on, by the engine.
    pub key_engine: f64,
    /// The same for the other packets, while keystrokes come.
    pub bulk_engine: f64,
    /// Bytes by which keystroke packets grew in the worst case.
    pub key_growth: f64,
    /// For each tenth of a second: when it ended, the payload and wire bytes
    /// that were packed, and what the best effort would have made of it.
    pub trace: Vec<(f64, f64, f64)>,
    pub measured_from: f64,
    pub blocked: f64,
}

struct InQueue {
    left: f64,
    raw: f64,
    peer_cost: f64,
}

/// Time that passes in stretches, some of which are still to come.
#[derive(Default)]
struct Spans {
    past: f64,
    ahead: VecDeque<(f64, f64)>,
}

impl Spans {
    fn add(&mut self, from: f64, to: f64) {
        if to > from {
            self.ahead.push_back((from, to));
        }
    }

    /// How much of it has passed by `now`.
    fn until(&mut self, now: f64) -> f64 {
        while let Some(&(from, to)) = self.ahead.front() {
            if to > now {
                return self.past + (now - from).max(0.0);
            }
            self.past += to - from;
            self.ahead.pop_front();
        }
        self.past
    }
}

struct Network<'a> {
    s: &'a Scenario,
    link_free: f64,
    unacked: VecDeque<(f64, f64)>,
    fill: f64,
    buffer: f64,
    at_peer: VecDeque<(f64, f64)>,
    at_peer_bytes: f64,
    peer_free: f64,
    /// Bytes acknowledged, and handed to the link, with the times.
    acked: f64,
    waiting: VecDeque<(f64, f64)>,
    unsent: f64,
    /// Stretches in which the link carried, and in which the peer had no room.
    busy: Spans,
    receiver_wait: Spans,
    delivered: Vec<(f64, f64)>,
    undelivered: VecDeque<(f64, f64)>,
    outstanding: f64,
}

impl<'a> Network<'a> {
    fn new(s: &'a Scenario) -> Self {
        Network {
            s,
            link_free: 0.0,
            unacked: VecDeque::new(),
            fill: 0.0,
            buffer: if s.autotuned {
                s.send_buffer.min(128.0 * 1024.0)
            } else {
                s.send_buffer
            },
            at_peer: VecDeque::new(),
            at_peer_bytes: 0.0,
            peer_free: 0.0,
            acked: 0.0,
            waiting: VecDeque::new(),
            unsent: 0.0,
            busy: Spans::default(),
            receiver_wait: Spans::default(),
            delivered: Vec::new(),
            undelivered: VecDeque::new(),
            outstanding: 0.0,
        }
    }

    fn advance(&mut self, now: f64) {
        while let Some(&(at, bytes)) = self.unacked.front() {
            if at > now {
                break;
            }
            self.fill -= bytes;
            self.acked += bytes;
            self.unacked.pop_front();
            if self.buffer < self.s.send_buffer {
                self.buffer = (self.buffer + 2.0 * bytes).min(self.s.send_buffer);
            }
        }
        while let Some(&(at, raw)) = self.undelivered.front() {
            if at > now {
                break;
            }
            self.outstanding -= raw;
            self.undelivered.pop_front();
        }
    }

    /// What the kernel would say now.
    fn kernel_state(&mut self, now: f64) -> KernelState {
        while let Some(&(at, bytes)) = self.waiting.front() {
            if at > now {
                break;
            }
            self.unsent -= bytes;
            self.waiting.pop_front();
        }
        KernelState {
            now_us: (now / 1e3) as u64,
            acked_bytes: self.acked as u64,
            unsent_bytes: self.unsent.max(0.0) as u64,
            rtt_us: (self.s.rtt / 1e3) as u64,
            busy_us: (self.busy.until(now) / 1e3) as u64,
            receiver_limited_us: (self.receiver_wait.until(now) / 1e3) as u64,
        }
    }

    /// The send buffer has its final size.
    fn grown(&self) -> bool {
        self.buffer >= self.s.send_buffer
    }

    fn writable(&self) -> bool {
        // sk_stream_is_writeable: a third of the buffer is free.
        self.fill <= self.buffer * (2.0 / 3.0)
    }

    fn writable_at(&self, now: f64) -> f64 {
        let mut fill = self.fill;
        for &(at, bytes) in &self.unacked {
            fill -= bytes;
            if fill <= self.buffer * (2.0 / 3.0) {
                return at.max(now);
            }
        }
        now + 1000.0
    }

    fn carry(&self, start: f64, bytes: f64) -> f64 {
        let mut now = start;
        let mut left = bytes;
        let link = &self.s.link;
        let mut i = link.iter().rposition(|&(from, _)| from <= now).unwrap_or(0);
        loop {
            let rate = link[i].1 / SECOND;
            let end = link.get(i + 1).map_or(f64::INFINITY, |step| step.0);
            if now + left / rate <= end {
                return now + left / rate;
            }
            left -= (end - now) * rate;
            now = end;
            i += 1;
        }
    }

    /// Hands `bytes` to the kernel at `now`; `last` when they end a packet.
    fn send(&mut self, now: f64, bytes: f64, last: Option<&InQueue>) {
        self.fill += bytes;
        let free = self.link_free.max(now + self.s.rtt / 2.0);
        let mut start = free;
        while self.at_peer_bytes + bytes > self.s.receive_buffer {
            let Some((consumed, size)) = self.at_peer.pop_front() else {
                break;
            };
            self.at_peer_bytes -= size;
            start = start.max(consumed + self.s.rtt / 2.0);
        }
        let arrived = self.carry(start, bytes);
        self.receiver_wait.add(free, start);
        self.busy.add(free, arrived);
        // It leaves the kernel's queue when the first link takes it.
        self.unsent += bytes;
        self.waiting.push_back((start - self.s.rtt / 2.0, bytes));
        self.link_free = arrived;
        self.unacked.push_back((arrived + self.s.rtt / 2.0, bytes));
        self.at_peer_bytes += bytes;
        match last {
            None => {
                // Consumed together with the end of the packet; that time is
                // not known yet, and the part is small.
                self.at_peer.push_back((self.peer_free.max(arrived), bytes));
            }
            Some(packet) => {
                let begin = self.peer_free.max(arrived);
                let done = self.s.peer.run(begin, packet.peer_cost);
                self.peer_free = done;
                self.at_peer.push_back((done, bytes));
                self.delivered.push((done, packet.raw));
                self.undelivered
                    .push_back((done + self.s.rtt / 2.0, packet.raw));
            }
        }
    }
}

struct Streams {
    /// Raw bytes each rung's stream has seen, and when it was last used.
    seen: [f64; 8],
    used: [u64; 8],
    stored_run: bool,
}

/// Runs `rule` for `measure` seconds after the start-up that every rule gets.
pub fn run(s: &Scenario, rule: &mut dyn Rule, measure: f64) -> Report {
    let mut random = Random::new(s.seed);
    let mut net = Network::new(s);
    let mut queue: VecDeque<InQueue> = VecDeque::new();
    let mut queued = 0.0;
    let mut now = 0.0_f64;
    let mut accepted = 0.0_f64;
    let mut segment = 0;
    let mut segment_left = s.data[0].1;
    let mut streams = Streams {
        seen: [0.0; 8],
        used: [0; 8],
        stored_run: false,
    };
    let mut report = Report::default();
    let mut first_block: Option<f64> = None;
    let mut end = f64::INFINITY;
    let mut next_key = if s.keys > 0.0 {
        random.unit() * SECOND / s.keys
    } else {
        f64::INFINITY
    };
    let mut trace = (0.0, 0.0, 0.0);
    let ladder = fixed_choices(s.wire);

    while now < end {
        net.advance(now);
        // When to begin measuring: everything accepted before the first block
        // has been delivered.
        if end == f64::INFINITY {
            if let Some(at) = first_block {
                if queue.is_empty() || at > 0.0 {
                    let drained = net.peer_free.max(at);
                    report.measured_from = drained;
                    end = drained + measure * SECOND;
                }
            } else if now > 2.0 * SECOND {
                report.measured_from = now;
                end = now + measure * SECOND;
            }
        }
        let window_open = s
            .channel_window
            .is_none_or(|w| net.outstanding + 32768.0 <= w);
        let source_at = s.source.map_or(0.0, |rate| accepted / rate * SECOND);
        let key = now >= next_key;
        let may_read = queued < OUTPUT_LIMIT;
        if may_read && (key || (window_open && source_at <= now)) {
            let raw = if key {
                36.0
            } else {
                32768.0_f64.min(segment_left.max(1.0))
            };
            now = s.sender.run(now, 4_000.0 + s.sender_raw * raw);
            net.advance(now);
            let piece = if key {
                Piece::draw(Data::Syslog, &mut random)
            } else {
                Piece::draw(s.data[segment].0, &mut random)
            };
            let known = known_queue(s, queued);
            let packet = Packet {
                now_ns: now as u64,
                len: raw as usize,
                interactive: key,
                queued: known,
                window_limited: !window_open,
                kernel: s.asks_kernel.then(|| net.kernel_state(now)),
                probe: piece.probe,
            };
            let effort = rule.choose(&packet);
            let rung = ladder
                .iter()
                .position(|&e| e == effort)
                .expect("an effort of this wire");
            let mut cost = piece.cost(s.wire, rung);
            let mut first_use = false;
            let mut engine = cost.pack * raw * s.engine[rung] + 400.0;
            let mut wire = cost.ratio * raw + if rung == 0 { 1.0 } else { 4.0 };
            if key {
                wire = raw + 1.0;
                engine = if rung == 0 { 200.0 } else { 2000.0 };
            } else if rung > 0 {
                let cold = cold_bytes(s.wire, rung) * ((1.0 - cost.ratio) / 0.75).min(1.0);
                if cold > 0.0 {
                    if streams.seen[rung] == 0.0 {
                        first_use = true;
                        engine += context_cost(rung);
                    }
                    let reach = 1_000_000.0;
                    let before = (-streams.seen[rung] / reach).exp();
                    let after = (-(streams.seen[rung] + raw) / reach).exp();
                    wire += cold * (before - after);
                    keep_four(&mut streams, rung, report.packets);
                    streams.seen[rung] += raw;
                }
                if s.wire == WireKind::Zlib && streams.stored_run {
                    // The engine is reset and has no history.
                    engine += 10_000.0;
                    wire *= 1.15;
                }
            }
            streams.stored_run = rung == 0 && !key;
            // The probe itself, where the rule looks.
            engine += rule.probe_cost();
            let mut really = effort;
            if rung > 0 && wire >= raw && !key {
                // zlib stores what it has tried, in its own stream.
                match s.wire {
                    WireKind::Zlib => wire = raw + 12.0,
                    WireKind::Zstd => {
                        wire = raw + 1.0;
                        really = Effort::Stored;
                    }
                }
                cost.unpack = 0.065;
            }
            let started = now;
            now = s.sender.run(now, engine);
            rule.observe(&Sent {
                effort: really,
                tried: effort,
                len: raw as usize,
                wire: wire as usize,
                spent_ns: (now - started) as u64,
            });
            if key {
                report.key_engine = report.key_engine.max(now - started);
                report.key_growth = report.key_growth.max(wire - raw);
                next_key = now + random.unit() * 2.0 * SECOND / s.keys;
            } else {
                accepted += raw;
                report.packets += 1;
                // Contexts are warmed up ahead, so the first use is another's.
                if now > report.measured_from + SECOND && end < f64::INFINITY && !first_use {
                    report.bulk_engine = report.bulk_engine.max(now - started);
                }
                segment_left -= raw;
                if segment_left <= 0.0 {
                    segment = (segment + 1) % s.data.len();
                    segment_left = s.data[segment].1;
                }
                trace.0 += raw;
                trace.1 += wire;
                if now - trace.2 > 0.1 * SECOND {
                    report.trace.push((now, trace.0, trace.1));
                    trace = (0.0, 0.0, now);
                }
            }
            now = s.sender.run(now, s.sender_wire * wire);
            let peer_cost = 4_000.0 + s.peer_raw * raw + s.peer_wire * wire + cost.unpack * raw;
            queue.push_back(InQueue {
                left: wire,
                raw,
                peer_cost,
            });
            queued += wire;
            net.outstanding += raw;
        }
        net.advance(now);
        match s.host {
            Host::Poll => {
                if queued > 0.0 && net.writable() {
                    let mut room = net.buffer - net.fill;
                    flush(&mut net, &mut queue, &mut queued, &mut room, now);
                } else if queued >= OUTPUT_LIMIT {
                    let wake = net.writable_at(now);
                    if net.grown() {
                        first_block.get_or_insert(net.peer_free);
                    }
                    report.blocked += wake - now;
                    now = wake;
                }
            }
            Host::Blocking => {
                while queued > 0.0 {
                    let mut room = net.buffer - net.fill;
                    flush(&mut net, &mut queue, &mut queued, &mut room, now);
                    if queued > 0.0 {
                        let wake = net.writable_at(now);
                        if net.grown() {
                            first_block.get_or_insert(net.peer_free);
                        }
                        report.blocked += wake - now;
                        now = wake;
                        net.advance(now);
                    }
                }
            }
        }
        if queued < OUTPUT_LIMIT && now < next_key {
            // Nothing to read: sleep until there is.
            let wait = if !window_open {
                net.undelivered.front().map_or(now, |x| x.0)
            } else {
                source_at
            };
            if !window_open || source_at > now {
                if !window_open {
                    rule.window_closed(known_queue(s, queued));
                }
                let flush_at = if queued > 0.0 {
                    net.writable_at(now)
                } else {
                    f64::INFINITY
                };
                now = now.max(wait.min(next_key).min(flush_at).max(now + 1000.0));
            }
        }
    }
    let from = report.measured_from;
    let bytes: f64 = net
        .delivered
        .iter()
        .filter(|d| d.0 > from && d.0 <= end)
        .map(|d| d.1)
        .sum();
    report.goodput = bytes / measure;
    report
}

/// What making a zstd context ready costs, by rung.
fn context_cost(rung: usize) -> f64 {
    match rung {
        0..=2 => 150_000.0,
        3 => 400_000.0,
        4 => 1_000_000.0,
        _ => 7_000_000.0,
    }
}

fn known_queue(s: &Scenario, queued: f64) -> Option<usize> {
    (s.host == Host::Poll).then_some(queued as usize)
}

fn flush(
    net: &mut Network,
    queue: &mut VecDeque<InQueue>,
    queued: &mut f64,
    room: &mut f64,
    now: f64,
) {
    while *room > 0.0 {
        let Some(mut packet) = queue.pop_front() else {
            break;
        };
        let bytes = packet.left.min(*room);
        *room -= bytes;
        *queued -= bytes;
        if bytes < packet.left {
            packet.left -= bytes;
            net.send(now, bytes, None);
            queue.push_front(packet);
        } else {
            net.send(now, bytes, Some(&packet));
        }
    }
    if queue.is_empty() {
        *queued = 0.0;
    }
}

/// Four streams exist; a fifth rung takes the place of the one idle longest.
fn keep_four(streams: &mut Streams, rung: usize, time: u64) {
    streams.used[rung] = time + 1;
    let live = (0..8)
        .filter(|&i| streams.seen[i] > 0.0 && i != rung)
        .count();
    if streams.seen[rung] == 0.0 && live >= 4 {
        let oldest = (0..8)
            .filter(|&i| streams.seen[i] > 0.0 && i != rung)
            .min_by_key(|&i| streams.used[i])
            .unwrap();
        streams.seen[oldest] = 0.0;
    }
}
