#![forbid(unsafe_code)]
//! From estimates to a plan: for each class of data one effort, or two and the
//! share of the second.
//!
//! Three things work at the same time: our CPU, the link and the peer's CPU.
//! The slowest sets the goodput, so the plan that makes the slowest as fast as
//! can be is wanted. Starting from what costs us least, one packs harder where
//! that saves most bytes per nanosecond, until the link is no longer the
//! slowest; the last step is done in part. (Pu and Singaravelu, "Fine-grain
//! adaptive compression in dynamically variable networks", ICDCS 2005.)

use super::wire::{CLASSES, MAX_RUNGS};

/// What each effort costs on each class, per payload byte.
#[derive(Clone, Copy, Debug)]
pub struct Prices {
    /// Our time, nanoseconds: engine and host.
    pub sender: [[f32; MAX_RUNGS]; CLASSES],
    /// Bytes on the wire.
    pub wire: [[f32; MAX_RUNGS]; CLASSES],
    /// The peer's time, nanoseconds.
    pub peer: [[f32; MAX_RUNGS]; CLASSES],
    /// Efforts that the limits allow.
    pub allowed: [[bool; MAX_RUNGS]; CLASSES],
    /// Share of each class in the traffic.
    pub weight: [f32; CLASSES],
    /// Nanoseconds that the link needs for a byte.
    pub link_ns: f32,
    /// What packets that go to different levels cost: see [`super::Wire`].
    pub split: f32,
    /// How much the classes come one after another: see [`super::patches`].
    pub apart: f32,
    pub rungs: usize,
}

/// What is done with the packets of one class.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Share {
    pub base: u8,
    pub extra: u8,
    /// Share of the packets that get `extra`, 0 to 1.
    pub share: f32,
}

pub type Plan = [Share; CLASSES];

/// Nanoseconds per payload byte that each of the three needs for a plan.
#[derive(Clone, Copy, Debug, Default)]
pub struct Load {
    pub sender: f32,
    pub link: f32,
    pub peer: f32,
    pub wire: f32,
    /// The time that follows from these.
    time: f32,
}

impl Load {
    pub fn time(&self) -> f32 {
        self.time
    }

    fn slowest(&self) -> f32 {
        self.sender.max(self.link).max(self.peer)
    }

    fn add(&mut self, weight: f32, other: &Load) {
        self.sender += weight * other.sender;
        self.wire += weight * other.wire;
        self.peer += weight * other.peer;
    }
}

/// A part-way stop must be better than a whole step by this much.
const WORTH_MIXING: f32 = 0.01;
/// A later stop on the way must be better than an earlier one by this much.
const WORTH_A_STEP: f32 = 0.005;

impl Prices {
    /// What a plan costs.
    pub fn load(&self, plan: &Plan) -> Load {
        let mut packed = [0.0; MAX_RUNGS];
        for (share, &w) in plan.iter().zip(&self.weight) {
            packed[usize::from(share.base)] += w * (1.0 - share.share);
            packed[usize::from(share.extra)] += w * share.share;
        }
        let link_ns = self.link_ns * (1.0 + self.split * apart(&packed[1..]));
        let mut load = Load::default();
        // Each class by itself, and all of them as if they came mixed.
        let mut alone = 0.0;
        for (k, share) in plan.iter().enumerate() {
            let mut own = self.of_class(k, share);
            own.link = own.wire * link_ns;
            load.add(self.weight[k], &own);
            alone += self.weight[k] * own.slowest();
        }
        load.link = load.wire * link_ns;
        load.time = self.apart * alone + (1.0 - self.apart) * load.slowest();
        load.wire = load.link / self.link_ns;
        load
    }

    /// What a class costs per byte of its own.
    fn of_class(&self, k: usize, share: &Share) -> Load {
        let mut load = Load::default();
        for (rung, part) in [(share.base, 1.0 - share.share), (share.extra, share.share)] {
            let rung = usize::from(rung);
            load.sender += part * self.sender[k][rung];
            load.wire += part * self.wire[k][rung];
            load.peer += part * self.peer[k][rung];
        }
        load.link = load.wire * self.link_ns;
        load
    }

    /// A plan that packs with one level only, if that is no worse.
    fn united(&self, best: (Plan, Load)) -> (Plan, Load) {
        let mut chosen = best;
        for rung in 1..self.rungs {
            let mut plan = best.0;
            for (k, share) in plan.iter_mut().enumerate() {
                if main_rung(share) > 0 && self.allowed[k][rung] {
                    *share = Share {
                        base: rung as u8,
                        extra: rung as u8,
                        share: 0.0,
                    };
                }
            }
            let load = self.load(&plan);
            if load.time() < chosen.1.time() {
                chosen = (plan, load);
            }
        }
        chosen
    }

    /// Whether a plan uses what the limits do not allow now.
    pub fn forbids(&self, plan: &Plan) -> bool {
        plan.iter().enumerate().any(|(k, share)| {
            let used = [share.base, share.extra];
            used.iter().any(|&rung| !self.allowed[k][usize::from(rung)])
        })
    }

    /// Our time per payload byte if only that counted.
    pub fn least_sender(&self) -> f32 {
        let cheapest = |k: usize| {
            let allowed = (0..self.rungs).filter(|&e| self.allowed[k][e]);
            allowed
                .map(|e| self.sender[k][e])
                .fold(f32::INFINITY, f32::min)
        };
        (0..CLASSES).map(|k| self.weight[k] * cheapest(k)).sum()
    }

    /// The best plan, and what it costs.
    pub fn solve(&self) -> (Plan, Load) {
        let mut plan = Plan::default();
        for (k, share) in plan.iter_mut().enumerate() {
            let cheapest = (0..self.rungs)
                .filter(|&e| self.allowed[k][e])
                .min_by(|&a, &b| self.sender[k][a].total_cmp(&self.sender[k][b]))
                .unwrap_or(0);
            *share = Share {
                base: cheapest as u8,
                extra: cheapest as u8,
                share: 0.0,
            };
        }
        let mut here = self.load(&plan);
        let mut best = (plan, here);
        while let Some((k, rung)) = self.next_step(&plan) {
            let mut next = plan;
            next[k] = Share {
                base: rung,
                extra: rung,
                share: 0.0,
            };
            let there = self.load(&next);
            for share in crossings(&here, &there) {
                let mut part = plan;
                part[k].extra = rung;
                part[k].share = share;
                let mixed = self.load(&part);
                if mixed.time() < best.1.time() * (1.0 - WORTH_MIXING) {
                    best = (part, mixed);
                }
            }
            // A whole step that is as good as a mix is preferred to it.
            let mixing = best.0.iter().any(|s| s.share > 0.0);
            let needed = if mixing { -WORTH_MIXING } else { WORTH_A_STEP };
            if there.time() < best.1.time() * (1.0 - needed) {
                best = (next, there);
            }
            plan = next;
            here = there;
        }
        if self.apart > 0.0 {
            best = self.balanced(best);
        }
        if self.split > 0.0 {
            best = self.united(best);
        }
        best
    }

    /// Each class in balance by itself, where they come one after another.
    fn balanced(&self, mut best: (Plan, Load)) -> (Plan, Load) {
        for k in (0..CLASSES).filter(|&k| self.weight[k] > 0.02) {
            let rungs = || (0..self.rungs).filter(|&e| self.allowed[k][e]);
            for (base, extra) in rungs().flat_map(|b| rungs().map(move |e| (b, e))) {
                let whole = |rung: usize| Share {
                    base: rung as u8,
                    extra: rung as u8,
                    share: 0.0,
                };
                let (here, there) = (
                    self.of_class(k, &whole(base)),
                    self.of_class(k, &whole(extra)),
                );
                let parts = crossings(&here, &there).map(|share| Share {
                    base: base as u8,
                    extra: extra as u8,
                    share,
                });
                let parts = parts.filter(|_| base < extra);
                for share in std::iter::once(whole(base)).chain(parts) {
                    let mut plan = best.0;
                    plan[k] = share;
                    let load = self.load(&plan);
                    let worth = if share.share > 0.0 {
                        WORTH_MIXING
                    } else {
                        WORTH_A_STEP
                    };
                    if load.time() < best.1.time() * (1.0 - worth) {
                        best = (plan, load);
                    }
                }
            }
        }
        best
    }

    /// The step that saves most bytes per nanosecond of ours.
    fn next_step(&self, plan: &Plan) -> Option<(usize, u8)> {
        let mut best: Option<(f32, usize, u8)> = None;
        for (k, share) in plan.iter().enumerate() {
            let from = usize::from(share.base);
            for rung in 0..self.rungs {
                let saved = self.wire[k][from] - self.wire[k][rung];
                if !self.allowed[k][rung] || saved <= 1e-3 * self.wire[k][from] {
                    continue;
                }
                let price = (self.sender[k][rung] - self.sender[k][from]) / saved;
                if best.is_none_or(|(p, ..)| price < p) {
                    best = Some((price, k, rung as u8));
                }
            }
        }
        best.map(|(_, k, rung)| (k, rung))
    }
}

/// The share of what is packed that does not go to the level that gets most.
fn apart(packed: &[f32]) -> f32 {
    let all: f32 = packed.iter().sum();
    let most = packed.iter().copied().fold(0.0, f32::max);
    if all > 0.0 {
        1.0 - most / all
    } else {
        0.0
    }
}

/// The rung that most packets get.
pub(super) fn main_rung(share: &Share) -> u8 {
    if share.share > 0.5 {
        share.extra
    } else {
        share.base
    }
}

/// Where on the way from `a` to `b` two of the three lines cross.
fn crossings(a: &Load, b: &Load) -> impl Iterator<Item = f32> {
    let cross = |x0: f32, x1: f32, y0: f32, y1: f32| (y0 - x0) / ((x1 - x0) - (y1 - y0));
    [
        cross(a.sender, b.sender, a.link, b.link),
        cross(a.peer, b.peer, a.link, b.link),
        cross(a.sender, b.sender, a.peer, b.peer),
    ]
    .into_iter()
    .filter(|s| *s > 0.0 && *s < 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One class; stored, light and heavy packing.
    fn prices(link_ns: f32, peer: [f32; 3]) -> Prices {
        let mut prices = Prices {
            sender: [[0.0; MAX_RUNGS]; CLASSES],
            wire: [[1.0; MAX_RUNGS]; CLASSES],
            peer: [[0.0; MAX_RUNGS]; CLASSES],
            allowed: [[false; MAX_RUNGS]; CLASSES],
            weight: [0.0, 0.0, 1.0, 0.0],
            link_ns,
            split: 0.0,
            apart: 0.0,
            rungs: 3,
        };
        prices.sender[2][..3].copy_from_slice(&[5.0, 12.0, 32.0]);
        prices.wire[2][..3].copy_from_slice(&[1.0, 0.25, 0.2]);
        prices.peer[2][..3].copy_from_slice(&peer);
        prices.allowed = [[true, true, true, false, false, false, false, false]; CLASSES];
        prices
    }

    #[test]
    fn a_fast_link_gets_what_costs_least() {
        let (plan, load) = prices(1.0, [0.0; 3]).solve();
        assert_eq!(plan[2], Share::default());
        assert_eq!(load.time(), 5.0);
    }

    #[test]
    fn a_slow_link_gets_the_smallest_packets() {
        let (plan, _) = prices(1000.0, [0.0; 3]).solve();
        assert_eq!((plan[2].base, plan[2].share), (2, 0.0));
    }

    #[test]
    fn between_two_efforts_the_mix_beats_both() {
        let prices = prices(20.0, [0.0; 3]);
        let (plan, load) = prices.solve();
        assert!(plan[2].share > 0.0 && plan[2].share < 1.0, "{plan:?}");
        // Stored takes 20 ns, light 12 ns: some stored packets fill the link.
        assert!(load.time() < 12.0, "{load:?}");
        assert!(
            (load.sender - load.link).abs() < 0.01 * load.link,
            "{load:?}"
        );
    }

    #[test]
    fn packing_does_not_help_a_slow_peer_that_unpacks_slowly() {
        let (plan, _) = prices(0.1, [20.0, 30.0, 30.0]).solve();
        assert_eq!(plan[2], Share::default());
    }

    #[test]
    fn levels_that_are_nearly_as_good_are_not_mixed_where_that_costs_history() {
        let mut prices = prices(1000.0, [0.0; 3]);
        prices.weight = [0.0, 0.5, 0.5, 0.0];
        prices.sender[1][..3].copy_from_slice(&[5.0, 12.0, 32.0]);
        prices.wire[1][..3].copy_from_slice(&[1.0, 0.8, 0.801]);
        let levels = |prices: &Prices| {
            let (plan, _) = prices.solve();
            (plan[1].base, plan[2].base)
        };
        assert_eq!(levels(&prices), (1, 2));
        prices.split = 0.2;
        assert_eq!(levels(&prices), (2, 2));
    }

    #[test]
    fn what_is_not_allowed_is_not_used() {
        let mut prices = prices(1000.0, [0.0; 3]);
        prices.allowed[2][2] = false;
        let (plan, _) = prices.solve();
        assert_eq!((plan[2].base, plan[2].share), (1, 0.0));
        let forbidden = Plan::from(
            [Share {
                base: 2,
                extra: 2,
                share: 0.0,
            }; CLASSES],
        );
        assert!(prices.forbids(&forbidden));
    }
}
