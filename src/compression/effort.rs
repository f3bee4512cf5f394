#![forbid(unsafe_code)]
//! Choosing the effort: how hard each packet is worth packing.
//!
//! Pure: no clock, no input or output, no allocation. The codec tells the
//! controller the time and what a packet cost; the controller answers what to
//! do with the next one. The parts: [`flow`] says where time went,
//! [`model`] and [`host`] what things cost here, [`downstream`] how fast bytes
//! drain, [`plan`] what follows from it, [`rest`] how sure one has to be of it.

mod downstream;
mod flow;
mod host;
mod kernel;
mod model;
mod patches;
mod plan;
mod rest;
mod review;
mod types;
mod wire;

pub use kernel::KernelState;
pub use types::{Effort, Limits, Outcome, Pace, Situation, Summary};
pub use wire::{Rung, Wire, CLASSES, ZLIB, ZSTD};

use self::downstream::Downstream;
use self::flow::{Flow, Gap, Tally};
use self::host::HostCost;
use self::kernel::{Drain, Kernel};
use self::model::Model;
use self::patches::Patches;
use self::plan::{main_rung, Plan, Share};
use self::rest::Rest;
use super::probe::Probe;

/// Shorter packets are not worth any thought.
const SMALL_PACKET: usize = 128;
/// Where latency comes first: an echo or a redraw is not worth any either, but
/// a terminal that shows a long file is.
const QUICK_PACKET: usize = 1024;
/// What is left of an old class share after one more packet.
const CLASS_FADE: f32 = 0.95;

/// Where a mix of two efforts begins: with the one that most packets get.
const EVEN: f32 = 0.5;

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
    kernel: Kernel,
    downstream: Downstream,
    plan: Plan,
    dither: [f32; CLASSES],
    /// The rung of the present run of packets, and how many are left of it.
    run: [(u8, u8); CLASSES],
    weight: [f32; CLASSES],
    class: usize,
    class_before: usize,
    same_class: u32,
    patches: Patches,
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
    /// The link is busy, or nearly so.
    bytes_dear: bool,
    started: bool,
    age_ns: f32,
    /// How much longer the engine, and all else, takes than the sum of the
    /// usual times: stalls are no samples of either.
    engine_stretch: f32,
    host_stretch: f32,
    /// Nanoseconds per payload byte in the last window.
    cycle_time: f32,
    /// How many more bytes packets have than the model expects.
    wire_miss: f32,
    advantage_ns: f32,
    /// When the last packet came in.
    now_ns: u64,
    interactive_ns: Option<u64>,
    receiver_full: Option<bool>,
    window_limited: bool,
    /// Share of the time of late in which the peer's channel window was closed.
    closed: f32,
    pace: Pace,
    main: (usize, usize),
    rest: Rest,
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
            kernel: Kernel::default(),
            downstream: Downstream::new(),
            plan: Plan::default(),
            dither: [0.0; CLASSES],
            run: [(0, 0); CLASSES],
            weight: [0.0; CLASSES],
            class: 0,
            class_before: 0,
            same_class: 0,
            patches: Patches::default(),
            pending: None,
            last: None,
            window: Tally::default(),
            cycle: Tally::default(),
            since_full: Tally::default(),
            queue_at_full: 0.0,
            cycle_whole: false,
            link_matters: true,
            bytes_dear: true,
            started: false,
            age_ns: 0.0,
            engine_stretch: 1.0,
            host_stretch: 1.0,
            cycle_time: 0.0,
            wire_miss: 1.0,
            advantage_ns: 0.0,
            now_ns: 0,
            interactive_ns: None,
            receiver_full: None,
            window_limited: false,
            closed: 0.0,
            pace: Pace::Unknown,
            main: (0, 0),
            rest: Rest::default(),
            changes: 0,
            plans: 0,
        };
        let (plan, _) = controller.prices().solve();
        controller.plan = plan;
        controller
    }

    /// What the host knows: the bytes waiting in its own output queue (`None`:
    /// not known) and whether the peer's channel window holds the sender.
    pub fn feedback(&mut self, queued: Option<usize>, window_limited: bool) {
        self.window_limited = window_limited;
        self.flow.feedback(queued, window_limited);
    }

    /// Whether the host should ask its kernel now and pass on what that says.
    pub fn kernel_due(&self, now_us: u64) -> bool {
        self.kernel.due(now_us)
    }

    /// What the host's kernel says of the connection. Optional; it tells a slow
    /// path from a slow peer, and both from a slow sender, long before the
    /// socket is full.
    pub fn kernel(&mut self, state: KernelState) {
        self.since_full.acked += self.kernel.acked(&state);
        match self.kernel.look(state) {
            Drain::Unclear => {}
            Drain::Empty => self.receiver_full = Some(false),
            Drain::At {
                pace,
                elapsed_ns,
                receiver_full,
            } => {
                self.receiver_full = Some(receiver_full);
                self.downstream.drained(pace, elapsed_ns, receiver_full);
                self.since_full = Tally::default();
                self.reconsider(elapsed_ns);
            }
        }
    }

    /// The effort for the next packet. `sample` looks at the payload; it is
    /// called at most once, and only if the answer matters.
    pub fn choose(&mut self, situation: &Situation, sample: impl FnOnce() -> Probe) -> Effort {
        self.now_ns = situation.now_ns;
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
        self.review();
        self.classify(sample);
        if let Some(pending) = &mut self.pending {
            pending.class = self.class;
        }
        let rung = self.pick();
        self.effort(rung)
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
                tally.engine += spent;
                tally.expected_engine += engine;
                tally.expected_host += expected;
                tally.expected_wire += expected_wire;
            }
        }
        if pending.small {
            self.last = None;
            return;
        }
        self.last = Some((len, ratio));
        self.patches.note(pending.class);
        for (k, weight) in self.weight.iter_mut().enumerate() {
            *weight *= CLASS_FADE;
            if k == pending.class {
                *weight += 1.0 - CLASS_FADE;
            }
        }
        let usual = self.model.ratio(pending.class, tried);
        self.model.learn(pending.class, tried, len, wire, spent);
        if pending.class == 0 && tried > 0 && outcome.wire_len >= outcome.payload_len {
            // Tried in vain; the next doubt comes by itself.
            self.plan[0] = Share::default();
        }
        if tried > 0 && (ratio > 3.0 * usual || (ratio > 0.97 && usual < 0.9)) {
            self.same_class = 0;
        }
    }

    /// The next packet shares no history with those before: what was chosen for
    /// them is not to show in what is chosen for it, other than through the
    /// plan, which follows the means of many packets.
    pub fn group_changed(&mut self) {
        self.dither = [EVEN; CLASSES];
        self.run = [(0, 0); CLASSES];
        self.class_before = self.class;
        self.same_class = 0;
    }

    /// A fresh wire stream begins (key exchange). What was learned stays.
    pub fn rekeyed(&mut self) {
        self.model.forget_histories();
    }

    /// What was chosen and why.
    pub fn summary(&self) -> Summary {
        Summary {
            effort: self.effort(self.main.1),
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
        types::Explanation(self)
    }

    /// Books the time since the last packet.
    fn account(&mut self, now_ns: u64) {
        let (len, ratio) = self.last.unwrap_or((32768.0, 1.0));
        let usual = self.host.at(ratio) * len;
        let at_ease = self.last.is_none() || self.kernel.backlog();
        let (kind, gap) = self.flow.enter(now_ns, usual, len, at_ease);
        for tally in [&mut self.window, &mut self.cycle, &mut self.since_full] {
            tally.elapsed += gap;
            match kind {
                Gap::Work => {}
                Gap::Blocked => tally.blocked += (gap - usual).max(0.0),
                Gap::Idle => tally.idle += gap,
            }
            // With something left in the kernel it is the path that holds both.
            if self.flow.window_closed() && !self.kernel.backlog() {
                tally.closed += gap;
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

    /// Which class the payload in hand belongs to.
    fn classify(&mut self, sample: impl FnOnce() -> Probe) {
        // A steady stream is looked at now and then, a restless one always, and
        // everything where a packet sent in vain costs much.
        let look = self.same_class < 4 || self.same_class % 4 == 0 || self.bytes_dear;
        self.same_class = self.same_class.saturating_add(1);
        if !look {
            return;
        }
        let class = sample().class();
        if class != self.class {
            self.class_before = self.class;
            self.class = class;
            self.same_class = 1;
        }
    }

    /// The rung for a packet of the present class: mixes by error diffusion,
    /// in runs where a change costs something.
    fn pick(&mut self) -> usize {
        let Share { base, extra, share } = self.plan[self.class];
        if self.class == 0 && self.same_class == 1 && self.bytes_dear {
            // The first that is said not to pack, with time to spare: see.
            return usize::from(main_rung(&self.plan[self.class_before]));
        }
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

    /// What a rung stands for: where its level does not fit into the memory
    /// limit, the highest that does.
    fn effort(&self, rung: usize) -> Effort {
        match (self.wire.rungs[rung].effort, self.limits.highest_level) {
            (Effort::Stored, _) | (_, 0) => Effort::Stored,
            (Effort::Level(level), highest) => Effort::Level(level.min(highest)),
        }
    }

    /// Whether a rung is another choice than the one below it: those that do not
    /// fit stand for the same.
    fn distinct(&self, rung: usize) -> bool {
        rung == 0 || self.effort(rung) != self.effort(rung - 1)
    }

    fn rung_of(&self, effort: Effort) -> usize {
        (0..self.wire.rungs.len())
            .find(|&rung| self.effort(rung) == effort)
            .unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn efforts(highest_level: i8) -> Vec<Effort> {
        let limits = Limits {
            highest_level,
            ..Limits::default()
        };
        let controller = Controller::new(&ZSTD, limits);
        let allowed = controller.prices().allowed[2];
        (0..ZSTD.rungs.len())
            .filter(|&rung| allowed[rung])
            .map(|rung| controller.effort(rung))
            .collect()
    }

    #[test]
    fn the_highest_level_that_memory_allows_is_used() {
        use Effort::{Level, Stored};
        let most = [Stored, Level(-1), Level(1), Level(3), Level(6), Level(9)];
        assert_eq!(efforts(i8::MAX), most);
        assert_eq!(efforts(8)[5], Level(8));
        assert_eq!(efforts(6), most[..5]);
        assert_eq!(efforts(-3), [Stored, Level(-3)]);
        assert_eq!(efforts(0), [Stored]);
    }
}
