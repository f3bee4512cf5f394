#![forbid(unsafe_code)]
//! Choosing the effort: how hard each packet is worth packing.
//!
//! Pure: no clock, no input or output, no allocation. The codec tells the
//! controller the time and what a packet cost; the controller answers what to
//! do with the next one. The parts: [`flow`] says where time went,
//! [`model`] and [`host`] what things cost here, [`downstream`] how fast bytes
//! drain, [`plan`] what follows from it.

mod downstream;
mod flow;
mod host;
mod model;
mod plan;
mod wire;

pub use wire::{Rung, Wire, CLASSES, ZLIB, ZSTD};

use self::downstream::{Downstream, Full};
use self::flow::{Flow, Gap, Tally};
use self::host::HostCost;
use self::model::Model;
use self::plan::{Load, Plan, Prices, Share};
use self::wire::MAX_RUNGS;
use super::probe::Probe;

/// What is done with one packet on the wire in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effort {
    /// The payload goes out as it is.
    Stored,
    /// The engine packs it: 1 to 9 on the zlib wire, -7 to 19 on the zstd wire.
    Level(i8),
}

/// Bounds that the configuration sets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// No packet shall keep the engine busy for longer than this.
    pub max_packet_time_us: u32,
    /// The highest level whose engine fits into the memory limit.
    pub highest_level: i8,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            max_packet_time_us: 20_000,
            highest_level: i8::MAX,
        }
    }
}

/// What is known when a packet comes in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Situation {
    /// Monotonic clock at the entry of `compress`, nanoseconds.
    pub now_ns: u64,
    /// Length of the payload in bytes.
    pub payload_len: usize,
    /// Latency comes first for this packet.
    pub interactive: bool,
}

/// What became of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// What was really done in the end.
    pub effort: Effort,
    /// What was tried first. Differs from `effort` when the attempt did not
    /// shrink the packet and it went out stored.
    pub tried: Effort,
    /// Length of the payload in bytes.
    pub payload_len: usize,
    /// Bytes put on the wire for it.
    pub wire_len: usize,
    /// Time from the entry of `compress` to its end, nanoseconds.
    pub spent_ns: u64,
}

/// What sets the pace of a connection, as far as its sender can tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// Our own CPU, or the source of the data.
    Sender,
    /// The link.
    Link,
    /// The peer's CPU.
    Peer,
    /// The peer's channel window.
    Window,
}

/// What was chosen and why, for `-v` and the statistics.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Summary {
    /// The effort that most of the recent payload got.
    pub effort: Effort,
    /// What sets the pace.
    pub pace: Pace,
    /// Bytes per second that the link is believed to carry; 0 while the socket
    /// was never full.
    pub link_bytes_per_s: u64,
    /// How often the effort that most of the payload got has changed.
    pub changes: u64,
}

/// Shorter packets are not worth any thought.
const SMALL_PACKET: usize = 128;
/// Where latency comes first: an echo or a redraw is not worth any either, but
/// a terminal that shows a long file is.
const QUICK_PACKET: usize = 1024;
/// How often the plan is looked at: not sooner than this, nor for fewer packets.
const WINDOW_NS: f32 = 20e6;
const FIRST_WINDOW_NS: f32 = 2e6;
const WINDOW_PACKETS: u32 = 4;
/// A cycle shorter than this is merged with the next.
const CYCLE_NS: f32 = 20e6;
/// A better plan is taken when the time it would have saved since it was first
/// seen exceeds this.
const CONVINCED_NS: f32 = 10e6;
const FIRST_CONVINCED_NS: f32 = 2e6;
/// How long a connection is new.
const NEW_NS: f32 = 0.3e9;
/// What is left of an old class share after one more packet.
const CLASS_FADE: f32 = 0.98;
/// A gain below this share is noise.
const WORTH_A_CHANGE: f32 = 0.005;
/// The socket is filled on purpose, to see how fast the link is, if that could
/// save this share of our time.
const WORTH_A_LOOK: f32 = 0.97;
/// No single look counts for longer than this.
const LONGEST_LOOK_NS: f32 = 50e6;
/// What an effort that was not tried may be cheaper than expected.
const HOPE: f32 = 0.15;
/// A stream's cold start must pay off within this time.
const HORIZON_NS: f32 = 4e9;
/// While a trial is under way only a gain this large changes the plan.
const HASTY_GAIN: f32 = 0.3;
/// Keystrokes count as present for this long.
const INTERACTIVE_NS: u64 = 2_000_000_000;
/// While they are, no packet keeps the engine longer than this.
const INTERACTIVE_PACKET_NS: f32 = 1e6;
/// Our side is planned to be this much faster than the rest, so that the
/// socket is full now and then and tells the link's pace.
const HEADROOM: f32 = 1.02;

#[derive(Clone, Copy, Debug)]
struct Pending {
    class: usize,
    entered_ns: u64,
    small: bool,
}

/// Decides the effort of every packet of one direction of one connection.
#[derive(Clone, Debug)]
pub struct Controller {
    wire: &'static Wire,
    limits: Limits,
    model: Model,
    host: HostCost,
    flow: Flow,
    downstream: Downstream,
    plan: Plan,
    dither: [f32; CLASSES],
    /// The rung of the present run of packets, and how many are left of it.
    run: [(u8, u8); CLASSES],
    weight: [f32; CLASSES],
    class: usize,
    same_class: u32,
    pending: Option<Pending>,
    /// Length and ratio of the last large packet.
    last: Option<(f32, f32)>,
    window: Tally,
    cycle: Tally,
    /// Since the socket was last full; and the queue there was then.
    since_full: Tally,
    queue_at_full: f32,
    /// Whether the cycle began with the socket full.
    cycle_whole: bool,
    /// Whether a faster link would change the plan.
    link_matters: bool,
    started: bool,
    age_ns: f32,
    /// How much longer things take than the sum of their usual times.
    stretch: f32,
    /// Nanoseconds per payload byte in the last window.
    cycle_time: f32,
    /// How many more bytes packets have than the model expects.
    wire_miss: f32,
    advantage_ns: f32,
    blocked_share: f32,
    interactive_ns: Option<u64>,
    receiver_full: Option<bool>,
    window_limited: bool,
    pace: Pace,
    main: (usize, usize),
    changes: u64,
    plans: u64,
}

impl Controller {
    /// A controller for one direction, before its first packet.
    pub fn new(wire: &'static Wire, limits: Limits) -> Self {
        let mut controller = Controller {
            wire,
            limits,
            model: Model::new(wire),
            host: HostCost::new(),
            flow: Flow::new(),
            downstream: Downstream::new(),
            plan: Plan::default(),
            dither: [0.0; CLASSES],
            run: [(0, 0); CLASSES],
            weight: [0.0; CLASSES],
            class: 0,
            same_class: 0,
            pending: None,
            last: None,
            window: Tally::default(),
            cycle: Tally::default(),
            since_full: Tally::default(),
            queue_at_full: 0.0,
            cycle_whole: false,
            link_matters: true,
            started: false,
            age_ns: 0.0,
            stretch: 1.0,
            cycle_time: 0.0,
            wire_miss: 1.0,
            advantage_ns: 0.0,
            blocked_share: 0.0,
            interactive_ns: None,
            receiver_full: None,
            window_limited: false,
            pace: Pace::Sender,
            main: (0, 0),
            changes: 0,
            plans: 0,
        };
        let (plan, _) = controller.prices().solve();
        controller.plan = plan;
        controller
    }

    /// What the host knows: the bytes waiting in its own output queue (`None`:
    /// not known) and whether the peer's channel window holds the sender. The
    /// time is the host's and is not mixed with that of the packets.
    pub fn feedback(&mut self, _now_us: u64, queued: Option<usize>, window_limited: bool) {
        self.window_limited = window_limited;
        self.flow.feedback(queued, window_limited);
    }

    /// Whether the peer's receive buffer is full, if the host can tell: then
    /// the peer's CPU sets the pace, and else the path does. Linux tells by
    /// `tcpi_rwnd_limited`.
    pub fn receiver_full(&mut self, full: Option<bool>) {
        self.receiver_full = full;
    }

    /// The effort for the next packet. `sample` looks at the payload; it is
    /// called at most once, and only if the answer matters.
    pub fn choose(&mut self, situation: &Situation, sample: impl FnOnce() -> Probe) -> Effort {
        self.account(situation.now_ns);
        let quick = if situation.interactive {
            QUICK_PACKET
        } else {
            SMALL_PACKET
        };
        let small = situation.payload_len < quick;
        if situation.interactive {
            self.interactive_ns = Some(situation.now_ns);
        }
        self.pending = Some(Pending {
            class: self.class,
            entered_ns: situation.now_ns,
            small,
        });
        if small {
            return self.wire.small;
        }
        self.review(situation.now_ns);
        self.classify(sample);
        if let Some(pending) = &mut self.pending {
            pending.class = self.class;
        }
        self.wire.rungs[self.pick()].effort
    }

    /// Learns from a packet. Call it once after every packet, chosen or not.
    pub fn observe(&mut self, outcome: &Outcome) {
        let Some(pending) = self.pending.take() else {
            return;
        };
        self.flow
            .leave(pending.entered_ns + outcome.spent_ns, outcome.wire_len);
        let (len, wire) = (outcome.payload_len as f32, outcome.wire_len as f32);
        let spent = outcome.spent_ns as f32;
        let tried = self.rung_of(outcome.tried);
        let ratio = (wire / len.max(1.0)).min(1.0);
        let engine = self.model.cost(pending.class, tried) * len;
        let expected = self.host.at(ratio) * len;
        let decode = if outcome.effort == Effort::Stored {
            0.0
        } else {
            self.model.decode(pending.class, tried) * len
        };
        let like_us = expected + decode;
        let waste = self.model.waste(tried, len);
        let expected_wire = self.model.ratio(pending.class, tried) * len + waste;
        self.downstream.sent(wire, like_us);
        for tally in [&mut self.window, &mut self.cycle, &mut self.since_full] {
            tally.elapsed += spent;
            tally.raw += len;
            tally.wire += wire;
            tally.peer_like_us += like_us;
            if !pending.small {
                tally.packets += 1;
                tally.expected_busy += engine + expected;
                tally.expected_wire += expected_wire;
            }
        }
        if pending.small {
            self.last = None;
            return;
        }
        self.last = Some((len, ratio));
        for (k, weight) in self.weight.iter_mut().enumerate() {
            *weight *= CLASS_FADE;
            if k == pending.class {
                *weight += 1.0 - CLASS_FADE;
            }
        }
        let usual = self.model.ratio(pending.class, tried);
        self.model.learn(pending.class, tried, len, wire, spent);
        if tried > 0 && (ratio > 3.0 * usual || (ratio > 0.97 && usual < 0.9)) {
            self.same_class = 0;
        }
    }

    /// A fresh wire stream begins (key exchange). What was learned stays.
    pub fn rekeyed(&mut self) {
        self.model.forget_histories();
    }

    /// The effort that the next large packet is likely to need, so that its
    /// engine can be made ready before.
    pub fn likely(&self) -> Effort {
        let share = self.plan[if self.started {
            self.class
        } else {
            CLASSES / 2
        }];
        self.wire.rungs[usize::from(share.base.max(share.extra))].effort
    }

    /// What was chosen and why.
    pub fn summary(&self) -> Summary {
        Summary {
            effort: self.wire.rungs[self.main.1].effort,
            pace: self.pace,
            link_bytes_per_s: if self.downstream.measured() {
                (1e9 / self.downstream.link_ns()) as u64
            } else {
                0
            },
            changes: self.changes,
        }
    }

    /// How often the plan has changed, in any part.
    pub fn plans(&self) -> u64 {
        self.plans
    }

    /// The present beliefs in one line, for tests and debugging.
    pub fn explain(&self) -> impl std::fmt::Display + '_ {
        Explanation(self)
    }

    /// Books the time since the last packet.
    fn account(&mut self, now_ns: u64) {
        let (len, ratio) = self.last.unwrap_or((32768.0, 1.0));
        let usual = self.host.at(ratio) * len;
        let (kind, gap) = self.flow.enter(now_ns, usual, len);
        for tally in [&mut self.window, &mut self.cycle, &mut self.since_full] {
            tally.elapsed += gap;
            match kind {
                Gap::Work => {}
                Gap::Blocked => tally.blocked += (gap - usual).max(0.0),
                Gap::Idle => tally.idle += gap,
            }
        }
        match kind {
            Gap::Work => {
                if let Some((len, ratio)) = self.last {
                    self.host.learn(len, ratio, gap);
                }
            }
            Gap::Blocked => self.was_full(gap),
            Gap::Idle => {}
        }
    }

    /// The socket was full until just now.
    fn was_full(&mut self, gap: f32) {
        let burst = self.since_full;
        if burst.elapsed > gap {
            self.downstream
                .burst(burst.wire, burst.elapsed - gap, burst.elapsed);
        }
        self.since_full = Tally::default();
        if !self.cycle_whole {
            // It began with room in the socket, which has been filled since.
            let cycle = std::mem::take(&mut self.cycle);
            self.downstream.at_most(cycle.wire / cycle.elapsed.max(1.0));
            self.queue_at_full = self.flow.queue_left();
            self.cycle_whole = true;
            self.reconsider(cycle.elapsed);
            return;
        }
        if self.cycle.elapsed < CYCLE_NS || self.cycle.raw == 0.0 {
            return;
        }
        let cycle = std::mem::take(&mut self.cycle);
        // What drained differs from what was sent by what the queue gained.
        let drained = cycle.wire - (self.flow.queue_left() - self.queue_at_full);
        self.queue_at_full = self.flow.queue_left();
        let active = (cycle.elapsed - cycle.idle).max(1.0);
        if drained < 0.3 * cycle.wire {
            return;
        }
        let raw = cycle.raw * drained / cycle.wire;
        self.downstream.full(
            &Full {
                time: active / raw,
                wire: drained / raw,
                like_us: cycle.peer_like_us / cycle.raw,
                blocked: cycle.blocked / active,
                sent: cycle.wire,
                elapsed: cycle.elapsed,
            },
            self.receiver_full,
        );
        self.reconsider(cycle.elapsed);
    }

    /// Looks at the last few milliseconds.
    fn review(&mut self, _now_ns: u64) {
        let length = if self.age_ns < 50e6 {
            FIRST_WINDOW_NS
        } else {
            WINDOW_NS
        };
        if self.window.elapsed < length || self.window.packets < WINDOW_PACKETS {
            return;
        }
        let window = std::mem::take(&mut self.window);
        self.age_ns += window.elapsed;
        let weight = (window.elapsed / 0.3e9).min(0.5);
        self.cycle_time += (window.elapsed / window.raw.max(1.0) - self.cycle_time) * weight;
        self.downstream.set_slowness(self.model.machine());
        if window.busy() > 0.2 * window.elapsed {
            let stretch = (window.busy() / window.expected_busy.max(1.0)).clamp(0.3, 20.0);
            self.stretch += (stretch - self.stretch) * weight;
        }
        let miss = (window.wire / window.expected_wire.max(1.0)).clamp(0.3, 3.0);
        self.wire_miss += (miss - self.wire_miss) * weight;
        self.blocked_share += (window.blocked / window.elapsed - self.blocked_share) * weight;
        let since = self.since_full;
        if !self.window_limited
            && self
                .downstream
                .not_full(since.wire, since.elapsed, self.link_matters)
        {
            self.since_full = Tally::default();
            self.cycle = Tally::default();
            self.cycle_whole = false;
        }
        self.reconsider(window.elapsed);
    }

    /// Solves again, and changes the plan when that pays.
    fn reconsider(&mut self, elapsed: f32) {
        let prices = self.prices();
        let (plan, load) = prices.solve();
        let now = prices.load(&self.plan);
        self.pace = self.pace_of(&now);
        // Does the belief about the link keep us from what would cost us least?
        let thrift = prices.least_sender() < WORTH_A_LOOK * load.sender;
        self.link_matters = load.link > 0.9 * load.sender
            || !self.downstream.bounded()
            || (thrift && self.receiver_full != Some(true));
        let gain = 1.0 - load.time() / now.time();
        self.advantage_ns += (gain - WORTH_A_CHANGE) * elapsed.min(LONGEST_LOOK_NS);
        self.advantage_ns = self.advantage_ns.max(0.0);
        if gain < WORTH_A_CHANGE {
            return;
        }
        let needed = if self.age_ns < NEW_NS {
            FIRST_CONVINCED_NS
        } else {
            CONVINCED_NS
        };
        if self.advantage_ns < needed && self.started {
            return;
        }
        let told = self.receiver_full.is_some();
        if !told && self.downstream.settling() && gain < HASTY_GAIN {
            return;
        }
        let stride = if told {
            1.0
        } else {
            self.downstream.stride(now.peer, load.peer)
        };
        let (plan, load) = if stride < 1.0 {
            let plan = self.part_way(&plan, stride);
            (plan, prices.load(&plan))
        } else {
            (plan, load)
        };
        self.started = true;
        self.advantage_ns = 0.0;
        self.downstream.plan_changed(now.wire, load.wire);
        self.plan = plan;
        self.plans += 1;
        self.note_main();
    }

    /// A plan between the present one and `goal`.
    fn part_way(&self, goal: &Plan, stride: f32) -> Plan {
        let mut plan = *goal;
        for (there, here) in plan.iter_mut().zip(&self.plan) {
            let (from, to) = (main_rung(here), main_rung(there));
            *there = Share {
                base: from,
                extra: to,
                share: if from == to { 0.0 } else { stride },
            };
        }
        plan
    }

    fn note_main(&mut self) {
        let class = (0..CLASSES)
            .max_by(|&a, &b| self.weight[a].total_cmp(&self.weight[b]))
            .unwrap_or(0);
        let rung = usize::from(main_rung(&self.plan[class]));
        if self.main.0 == class && self.main.1 != rung {
            self.changes += 1;
        }
        self.main = (class, rung);
    }

    fn pace_of(&self, load: &Load) -> Pace {
        if self.window_limited {
            Pace::Window
        } else if load.sender >= load.link.max(load.peer) {
            Pace::Sender
        } else if load.link >= load.peer {
            Pace::Link
        } else {
            Pace::Peer
        }
    }

    /// Which class the payload in hand belongs to.
    fn classify(&mut self, sample: impl FnOnce() -> Probe) {
        // A steady stream is looked at now and then, a restless one always.
        let look = self.same_class < 4 || self.same_class % 4 == 0;
        self.same_class = self.same_class.saturating_add(1);
        if !look {
            return;
        }
        let class = sample().class();
        if class != self.class {
            self.class = class;
            self.same_class = 1;
        }
    }

    /// The rung for a packet of the present class: mixes by error diffusion,
    /// in runs where a change costs something.
    fn pick(&mut self) -> usize {
        let Share { base, extra, share } = self.plan[self.class];
        let (rung, left) = &mut self.run[self.class];
        if *left == 0 || (*rung != base && *rung != extra) || share == 0.0 {
            let dither = &mut self.dither[self.class];
            *dither += share;
            let more = *dither >= 1.0;
            *dither -= if more { 1.0 } else { 0.0 };
            (*rung, *left) = (if more { extra } else { base }, self.wire.run);
        }
        *left -= 1;
        usize::from(*rung)
    }

    fn rung_of(&self, effort: Effort) -> usize {
        self.wire
            .rungs
            .iter()
            .position(|r| r.effort == effort)
            .unwrap_or(0)
    }

    fn prices(&self) -> Prices {
        let rungs = self.wire.rungs.len();
        let mut prices = Prices {
            sender: [[0.0; MAX_RUNGS]; CLASSES],
            wire: [[1.0; MAX_RUNGS]; CLASSES],
            peer: [[0.0; MAX_RUNGS]; CLASSES],
            allowed: [[false; MAX_RUNGS]; CLASSES],
            weight: self.weight,
            link_ns: self.downstream.link_ns(),
            rungs,
        };
        if self.last.is_none() && self.weight.iter().sum::<f32>() == 0.0 {
            prices.weight = [0.0, 0.0, 1.0, 0.0];
        }
        let total = prices.weight.iter().sum::<f32>().max(1e-6);
        for weight in &mut prices.weight {
            *weight = (*weight / total).max(1e-4);
        }
        let cap = self.longest_packet();
        // A transfer that has lasted for some time will last as long again.
        let horizon = HORIZON_NS.max(self.age_ns) / self.usual_time();
        for k in 0..CLASSES {
            for (e, rung) in self.wire.rungs.iter().enumerate() {
                // What was not tried yet gets the benefit of the doubt.
                let hope = if e == 0 {
                    0.0
                } else {
                    HOPE * self.model.novelty(k, e)
                };
                let cost = self.model.cost(k, e) * (1.0 - hope);
                let ratio = self.model.ratio(k, e);
                let host = self.host.at(ratio);
                let wire = if e == 0 {
                    1.0
                } else {
                    let cold = self.model.cold_bytes(e) / horizon;
                    (ratio * self.wire_miss + cold).min(1.0)
                };
                prices.wire[k][e] = wire;
                prices.sender[k][e] = (cost + host) * self.stretch * HEADROOM;
                let decode = if e == 0 { 0.0 } else { self.model.decode(k, e) };
                prices.peer[k][e] = (host + decode) * self.downstream.peer();
                let level = match rung.effort {
                    Effort::Stored => i8::MIN,
                    Effort::Level(level) => level,
                };
                prices.allowed[k][e] =
                    e == 0 || (level <= self.limits.highest_level && cost * 32768.0 <= cap);
            }
        }
        prices
    }

    /// Nanoseconds that a payload byte takes at present.
    fn usual_time(&self) -> f32 {
        let lately = self.cycle_time;
        if lately > 0.0 {
            lately
        } else {
            10.0
        }
    }

    /// Nanoseconds that the engine may spend on one packet now.
    fn longest_packet(&self) -> f32 {
        let cap = self.limits.max_packet_time_us as f32 * 1e3;
        match self.interactive_ns {
            Some(at)
                if self
                    .pending
                    .is_some_and(|p| p.entered_ns.saturating_sub(at) < INTERACTIVE_NS) =>
            {
                cap.min(INTERACTIVE_PACKET_NS)
            }
            _ => cap,
        }
    }
}

/// The rung that most packets get.
fn main_rung(share: &Share) -> u8 {
    if share.share > 0.5 {
        share.extra
    } else {
        share.base
    }
}

struct Explanation<'a>(&'a Controller);

impl std::fmt::Display for Explanation<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let c = self.0;
        let load = c.prices().load(&c.plan);
        write!(
            f,
            "{:?} B {:.2} P {:.2} x {:.2} w {:.2} h {:.2}+{:.2}; S {:.1} L {:.1} P {:.1};",
            c.pace,
            1e3 / c.downstream.link_ns(),
            c.downstream.peer(),
            c.stretch,
            c.wire_miss,
            c.host.per_byte,
            c.host.per_wire_byte,
            load.sender,
            load.link,
            load.peer,
        )?;
        for (k, share) in c.plan.iter().enumerate() {
            if c.weight[k] > 0.03 {
                let name = |rung: u8| c.wire.rungs[usize::from(rung)].effort;
                write!(f, " [{k}: {:.2} {:?}", c.weight[k], name(share.base))?;
                if share.share > 0.0 {
                    write!(f, "+{:.2} {:?}", share.share, name(share.extra))?;
                }
                write!(f, "]")?;
            }
        }
        Ok(())
    }
}
