#![forbid(unsafe_code)]
//! What each effort costs and gains on each class of data.
//!
//! Estimates are corrections of the wire's figures: one factor common to all
//! efforts of a class (this machine, this data) and one of the effort itself. So a packet at one level teaches something about all.

use super::wire::{Wire, CLASSES, MAX_RUNGS};

/// Fastest and slowest learning: the first sample counts in full, a later one
/// at least this much.
const COMMON_GAIN: f32 = 0.04;
const OWN_GAIN: f32 = 0.01;
/// Efforts are compared when one follows another; after so many samples of the
/// same one a difference is rather that of the data.
const COMPARED: f32 = 40.0;
/// The wire's figures count as this many samples of how the efforts compare.
const COST_TRUST: f32 = 6.0;
const RATIO_TRUST: f32 = 20.0;
/// A single sample counts for no more than this much above the estimate, and
/// while there is none, above the wire's figure.
const CLIP: f32 = 3.0;
const FIRST_CLIP: f32 = 10.0;
/// No machine is so much slower than the wire's figures; a belief that it is
/// came from a stall, and fades by this share with each packet left alone.
const SLOWEST_MACHINE: f32 = 20.0;
const RELENT: f32 = 0.03;
/// A shorter packet costs as much as one of so many bytes.
const PACKET_BYTES: f32 = 4096.0;
/// No packet shrinks below this share.
const LEAST_RATIO: f32 = 1e-4;
/// A gain below this counts as none.
const HARDLY: f32 = 0.985;
/// How fast a class that does not pack is doubted again, per packet left alone.
const DOUBT: f32 = 0.0005;
/// Payload bytes after which a stream's ratio counts as that of a warm one.
const WARM_AFTER: f32 = 1024.0 * 1024.0;

/// What the wire's figure must be multiplied by.
#[derive(Clone, Copy, Debug)]
struct Fit {
    common: f32,
    samples: f32,
    own: [f32; MAX_RUNGS],
    own_samples: [f32; MAX_RUNGS],
    /// The effort of the last sample, and how many of it there were in a row.
    last: usize,
    run: f32,
}

impl Fit {
    const NEW: Fit = Fit {
        common: 1.0,
        samples: 0.0,
        own: [1.0; MAX_RUNGS],
        own_samples: [0.0; MAX_RUNGS],
        last: 0,
        run: 0.0,
    };

    fn of(&self, rung: usize) -> f32 {
        self.common * self.own[rung]
    }

    fn learn(&mut self, rung: usize, factor: f32, weight: f32, trust: f32) {
        let clip = if self.samples >= 3.0 {
            CLIP
        } else {
            FIRST_CLIP
        };
        let miss = (factor / self.of(rung) - 1.0).min(clip);
        if self.last != rung {
            (self.last, self.run) = (rung, 0.0);
        }
        self.run += weight;
        self.samples += weight;
        self.own_samples[rung] += weight;
        let common = (1.0 / self.samples.max(1.0)).max(COMMON_GAIN) * weight;
        // An effort keeps as its own what the others do not share; while they
        // were hardly tried, nobody knows what that is.
        let others = (self.samples - self.own_samples[rung]).max(0.0);
        let own = (1.0 / (self.own_samples[rung] + trust)).max(OWN_GAIN) * weight
            / (1.0 + self.run / COMPARED)
            * (others / (others + trust));
        self.common = (self.common * (1.0 + common * miss)).clamp(1e-3, 1e3);
        self.own[rung] = (self.own[rung] * (1.0 + own * miss)).clamp(0.05, 20.0);
    }
}

/// The estimates of one connection.
#[derive(Clone, Debug)]
pub struct Model {
    wire: &'static Wire,
    cost: [Fit; CLASSES],
    ratio: [Fit; CLASSES],
    /// Payload bytes that each effort's stream has seen.
    history: [f32; MAX_RUNGS],
}

impl Model {
    pub fn new(wire: &'static Wire) -> Self {
        Model {
            wire,
            cost: [Fit::NEW; CLASSES],
            ratio: [Fit::NEW; CLASSES],
            history: [0.0; MAX_RUNGS],
        }
    }

    /// Every stream begins anew.
    pub fn forget_histories(&mut self) {
        self.history = [0.0; MAX_RUNGS];
    }

    /// Nanoseconds per payload byte that the engine will need.
    pub fn cost(&self, class: usize, rung: usize) -> f32 {
        if rung == 0 {
            return self.wire.rungs[0].cost[class];
        }
        let fit = &self.cost[class];
        let correction = if fit.samples > 0.0 {
            fit.of(rung)
        } else {
            self.machine()
        };
        self.wire.rungs[rung].cost[class] * correction
    }

    /// Nanoseconds per payload byte that a machine like ours needs to decode.
    pub fn decode(&self, class: usize, rung: usize) -> f32 {
        self.wire.rungs[rung].decode[class] * self.cost[class].common
    }

    /// Bytes on the wire per payload byte, once the stream is warm.
    pub fn ratio(&self, class: usize, rung: usize) -> f32 {
        if rung == 0 {
            return 1.0;
        }
        let ratio = self.wire.rungs[rung].ratio[class] * self.ratio[class].of(rung);
        if ratio > HARDLY {
            1.0
        } else {
            ratio
        }
    }

    /// How little is known of an effort on a class: 1 at first, 0 after some
    /// packets.
    pub fn novelty(&self, class: usize, rung: usize) -> f32 {
        (1.0 - self.cost[class].own_samples[rung] / COST_TRUST).max(0.0)
    }

    /// Bytes on the wire that this effort would still waste before its stream
    /// is warm.
    pub fn cold_bytes(&self, rung: usize) -> f32 {
        self.wire.rungs[rung].cold_bytes * (-self.history[rung] / WARM_AFTER).exp()
    }

    /// Bytes that the next packet of `len` bytes wastes for want of history.
    pub fn waste(&self, rung: usize, len: f32) -> f32 {
        self.cold_bytes(rung) * (1.0 - (-len / WARM_AFTER).exp())
    }

    /// Learns from one packet that the engine worked on.
    pub fn learn(&mut self, class: usize, rung: usize, len: f32, wire_len: f32, spent_ns: f32) {
        if rung == 0 {
            let fit = &mut self.ratio[class];
            if fit.common > 1.0 {
                fit.common -= DOUBT * (fit.common - 1.0);
            }
            let fit = &mut self.cost[class];
            if fit.common > SLOWEST_MACHINE {
                fit.common *= 1.0 - RELENT;
            }
            return;
        }
        let known = &self.wire.rungs[rung];
        let cost = (spent_ns / len.max(PACKET_BYTES)).max(0.01);
        if self.cost[class].samples == 0.0 {
            self.cost[class].common = self.machine();
        }
        let cold = self.cold_bytes(rung) / known.cold_bytes.max(1.0);
        let lean = wire_len - self.waste(rung, len);
        // The first packet of a stream also pays for setting the engine up.
        let warm_engine = self.history[rung] > 0.0 || known.cold_bytes == 0.0;
        let weight = if warm_engine { 1.0 } else { 0.3 };
        self.cost[class].learn(rung, cost / known.cost[class], weight, COST_TRUST);
        self.history[rung] += len;
        // What the missing history cost is not the effort's fault.
        let ratio = (lean / len).clamp(LEAST_RATIO, 1.0);
        let weight = 1.0 - 0.7 * cold;
        let fit = &mut self.ratio[class];
        if ratio > HARDLY && class == 0 {
            // Believe it at once: doubt comes back slowly enough.
            fit.common = 1.0 / (known.ratio[class] * fit.own[rung]);
            fit.samples += 1.0;
        } else {
            fit.learn(rung, ratio / known.ratio[class], weight, RATIO_TRUST);
        }
    }

    /// How many times slower than the wire's figures this machine is: the mean
    /// over the classes seen.
    pub fn machine(&self) -> f32 {
        let mut sum = 0.0;
        let mut weight = 0.0;
        for fit in &self.cost {
            let w = fit.samples.min(10.0);
            sum += w * fit.common;
            weight += w;
        }
        if weight > 0.0 {
            sum / weight
        } else {
            1.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::{ZLIB, ZSTD};
    use super::*;

    const LEN: f32 = 32_768.0;

    #[test]
    fn a_slow_machine_is_slow_at_every_level() {
        let mut model = Model::new(&ZLIB);
        let before = model.cost(2, 2);
        for _ in 0..50 {
            model.learn(2, 1, LEN, 0.26 * LEN, 6.0 * 9.0 * LEN);
        }
        assert!((model.cost(2, 1) / 54.0 - 1.0).abs() < 0.05);
        assert!((model.cost(2, 2) / before / 6.0 - 1.0).abs() < 0.05);
    }

    #[test]
    fn a_stream_without_history_is_not_held_against_its_level() {
        let mut model = Model::new(&ZSTD);
        let good = model.ratio(2, 5);
        for _ in 0..40 {
            let waste = model.waste(5, LEN);
            model.learn(2, 5, LEN, good * LEN + waste, 27.0 * LEN);
        }
        assert!((model.ratio(2, 5) / good - 1.0).abs() < 0.05);
    }

    #[test]
    fn data_that_packs_better_by_and_by_is_no_merit_of_its_level() {
        let mut model = Model::new(&ZSTD);
        // One packet at level 6, then only level 3, as a picture goes by.
        model.learn(2, 4, LEN, 0.2 * LEN, 15.0 * LEN);
        for packet in 0..100 {
            let ratio = 0.2 * 0.5_f32.powf(packet as f32 / 25.0);
            model.learn(2, 3, LEN, ratio * LEN, 6.4 * LEN);
        }
        assert!(model.ratio(2, 4) < model.ratio(2, 3));
    }

    #[test]
    fn a_stall_at_the_start_does_not_rule_a_level_out() {
        let longest_packet_ns = 20e6;
        let mut model = Model::new(&ZSTD);
        model.learn(2, 1, 200.0, 120.0, longest_packet_ns);
        for rung in 1..ZSTD.rungs.len() {
            let ns = model.cost(2, rung) * LEN;
            assert!(ns < longest_packet_ns, "rung {rung}: {ns} ns a packet");
        }
    }

    #[test]
    fn an_absurd_cost_is_forgotten_while_packets_are_left_alone() {
        let mut model = Model::new(&ZSTD);
        for _ in 0..100 {
            model.learn(2, 1, LEN, 0.3 * LEN, 5e7);
        }
        let absurd = model.cost(2, 1);
        for _ in 0..200 {
            model.learn(2, 0, LEN, LEN, 2_000.0);
        }
        assert!(model.cost(2, 1) < 0.2 * absurd);
    }

    #[test]
    fn what_did_not_pack_is_left_alone_and_doubted_again_later() {
        let mut model = Model::new(&ZLIB);
        assert!(model.ratio(0, 1) < 1.0, "at first it is worth a try");
        model.learn(0, 1, LEN, LEN + 5.0, 25.0 * LEN);
        assert_eq!(model.ratio(0, 1), 1.0);
        let packets = (1..).find(|_| {
            model.learn(0, 0, LEN, LEN, 2_000.0);
            model.ratio(0, 1) < 1.0
        });
        let packets = packets.unwrap_or(0);
        assert!(
            (100..2_000).contains(&packets),
            "doubted after {packets} packets"
        );
    }
}
