#![forbid(unsafe_code)]
//! Looking back at what has happened lately, and planning anew.

use super::downstream::Full;
use super::flow::Tally;
use super::plan::{main_rung, Load, Plan, Prices, Share};
use super::wire::{CLASSES, MAX_RUNGS};
use super::{Controller, Pace};

/// How often the plan is looked at: not sooner than this, nor for fewer packets.
const WINDOW_NS: f32 = 20e6;
const FIRST_WINDOW_NS: f32 = 2e6;
const WINDOW_PACKETS: u32 = 4;
/// A cycle shorter than this is merged with the next.
const CYCLE_NS: f32 = 20e6;
/// A gain below this share is noise.
const WORTH_A_CHANGE: f32 = 0.005;
/// The socket is filled on purpose, to see how fast the link is, if that could
/// save this share of our time.
const WORTH_A_LOOK: f32 = 0.97;
/// No single look counts for longer than this.
const LONGEST_LOOK_NS: f32 = 50e6;
/// What an effort that was not tried may be cheaper than expected.
const HOPE: f32 = 0.3;
/// A stream's cold start must pay off within this time.
const HORIZON_NS: f32 = 4e9;
/// While a trial is under way only a gain this large changes the plan.
const HASTY_GAIN: f32 = 0.3;
/// Share of the time that work must be expected to take for what it took to
/// count in full.
const CLEAR_SHARE: f32 = 0.2;
/// Keystrokes count as present for this long.
const INTERACTIVE_NS: u64 = 2_000_000_000;
/// While they are, no packet keeps the engine longer than this.
const INTERACTIVE_PACKET_NS: f32 = 1e6;
/// The peer's channel window sets the pace if it is closed for this share of the
/// time.
const MOSTLY_CLOSED: f32 = 0.5;
/// Our side is planned to be this much faster than the rest, so that the
/// socket is full now and then and tells the link's pace.
const HEADROOM: f32 = 1.02;
/// So much more where the data come in stretches: those of one class differ as
/// well, and where each is in balance on the average none is by itself.
const RESTLESS_HEADROOM: f32 = 0.15;

impl Controller {
    /// The socket was full until just now.
    pub(super) fn was_full(&mut self, gap: f32) {
        let burst = self.since_full;
        if burst.elapsed > gap {
            self.downstream
                .burst(burst.wire, burst.elapsed - gap, burst.elapsed);
        }
        self.since_full = Tally::default();
        if !self.cycle_whole {
            // It began with room in the socket, which has been filled since.
            let cycle = std::mem::take(&mut self.cycle);
            if self.receiver_full != Some(true) && !self.kernel.backlog() {
                self.downstream.at_most(cycle.wire / cycle.elapsed.max(1.0));
            }
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
        if drained < 0.3 * cycle.wire || self.kernel.backlog() {
            return; // the kernel tells the pace better
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
    pub(super) fn review(&mut self) {
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
        let closed = window.closed / window.elapsed;
        self.closed += (closed - self.closed) * weight;
        self.downstream.set_slowness(self.model.machine());
        self.note_stretch(&window, weight);
        let miss = (window.wire / window.expected_wire.max(1.0)).clamp(0.3, 3.0);
        self.wire_miss += (miss - self.wire_miss) * weight;
        let since = self.since_full;
        if !self.window_limited
            && !self.kernel.backlog()
            && self
                .downstream
                .not_full(&since, self.kernel.tells(), self.link_matters)
        {
            self.since_full = Tally::default();
            self.cycle = Tally::default();
            self.cycle_whole = false;
        }
        self.reconsider(window.elapsed);
    }

    /// How much longer things took than expected: the ratio of the sums, so a
    /// stall counts for what it is. The engine's time is its own; between
    /// packets there may also have been nothing to send.
    fn note_stretch(&mut self, window: &Tally, weight: f32) {
        let note = |stretch: &mut f32, took: f32, expected: f32| {
            let told = (expected / (CLEAR_SHARE * window.elapsed)).min(1.0);
            let now = (took / expected.max(1.0)).clamp(0.3, 20.0);
            *stretch += (now - *stretch) * weight * told;
        };
        note(
            &mut self.engine_stretch,
            window.engine,
            window.expected_engine,
        );
        note(&mut self.host_stretch, window.host(), window.expected_host);
    }

    /// Solves again, and changes the plan when that pays.
    pub(super) fn reconsider(&mut self, elapsed: f32) {
        let prices = self.prices();
        let (plan, load) = prices.solve();
        let now = prices.load(&self.plan);
        self.pace = self.pace_of(&now);
        self.bytes_dear = now.link > 0.5 * now.sender;
        // Does the belief about the link keep us from what would cost us least?
        let thrift = prices.least_sender() < WORTH_A_LOOK * load.sender;
        self.link_matters = load.link > 0.9 * load.sender
            || !self.downstream.bounded()
            || (thrift && self.receiver_full != Some(true));
        let gain = 1.0 - load.time() / now.time();
        let forbidden = prices.forbids(&self.plan);
        self.advantage_ns += (gain - WORTH_A_CHANGE) * elapsed.min(LONGEST_LOOK_NS);
        self.advantage_ns = self.advantage_ns.max(0.0);
        if gain < WORTH_A_CHANGE && !forbidden {
            return;
        }
        let needed = self.rest.needed_ns(self.now_ns, self.age_ns);
        if self.advantage_ns < needed && self.started && !forbidden {
            return;
        }
        let told = self.receiver_full.is_some();
        if !told && self.downstream.settling() && gain < HASTY_GAIN && !forbidden {
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
        let share = self.plan[class];
        let mut rung = usize::from(main_rung(&share));
        // Where two efforts are mixed about evenly, none is the new main one.
        let even = (0.35..0.65).contains(&share.share);
        let kept = self.main.1;
        if even && (kept == usize::from(share.base) || kept == usize::from(share.extra)) {
            rung = kept;
        }
        if self.main.0 == class && self.main.1 != rung {
            self.changes += 1;
            self.rest.changed(self.now_ns, self.age_ns);
        }
        self.main = (class, rung);
    }

    fn pace_of(&self, load: &Load) -> Pace {
        // The plan makes them equal where it can; then it is not ours.
        let sender = load.sender / self.headroom();
        if self.closed > MOSTLY_CLOSED {
            Pace::Window
        } else if sender > load.link.max(load.peer) {
            Pace::Sender
        } else if load.link >= load.peer {
            Pace::Link
        } else {
            Pace::Peer
        }
    }

    pub(super) fn prices(&self) -> Prices {
        let rungs = self.wire.rungs.len();
        let mut prices = Prices {
            sender: [[0.0; MAX_RUNGS]; CLASSES],
            wire: [[1.0; MAX_RUNGS]; CLASSES],
            peer: [[0.0; MAX_RUNGS]; CLASSES],
            allowed: [[false; MAX_RUNGS]; CLASSES],
            weight: self.weight,
            link_ns: self.downstream.link_ns(),
            split: self.wire.split,
            apart: self.patches.apart(),
            rungs,
        };
        if self.last.is_none() && self.weight.iter().sum::<f32>() == 0.0 {
            prices.weight = [0.0, 0.0, 1.0, 0.0];
        }
        let total = prices.weight.iter().sum::<f32>().max(1e-6);
        for weight in &mut prices.weight {
            *weight = (*weight / total).max(1e-4);
        }
        let headroom = self.headroom();
        let cap = self.longest_packet();
        // A transfer that has lasted for some time will last as long again.
        let horizon = HORIZON_NS.max(self.age_ns) / self.usual_time();
        for k in 0..CLASSES {
            for e in 0..rungs {
                // What was not tried yet gets the benefit of the doubt.
                let known = self.model.cost(k, e);
                let hope = if e == 0 {
                    0.0
                } else {
                    HOPE * self.model.novelty(k, e)
                };
                let cost = known * (1.0 - hope);
                let ratio = self.model.ratio(k, e);
                let host = self.host.at(ratio);
                let wire = if e == 0 {
                    1.0
                } else {
                    let cold = self.model.cold_bytes(e) / horizon;
                    (ratio * self.wire_miss + cold).min(1.0)
                };
                prices.wire[k][e] = wire;
                prices.sender[k][e] =
                    (cost * self.engine_stretch + host * self.host_stretch) * headroom;
                let decode = if e == 0 { 0.0 } else { self.model.decode(k, e) };
                prices.peer[k][e] = (host + decode) * self.downstream.peer();
                prices.allowed[k][e] = e == 0 || (self.distinct(e) && known * 32768.0 <= cap);
            }
        }
        prices
    }

    /// How much faster than the rest our side is planned to be.
    fn headroom(&self) -> f32 {
        HEADROOM + RESTLESS_HEADROOM * self.patches.apart()
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
            Some(at) if self.now_ns.saturating_sub(at) < INTERACTIVE_NS => {
                cap.min(INTERACTIVE_PACKET_NS)
            }
            _ => cap,
        }
    }
}
