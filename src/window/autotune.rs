#![forbid(unsafe_code)]
//! When a channel's window grows, shrinks or is put to the test.

use super::rounds::{Meter, Rounds, Totals};
use super::rtt::Path;
use super::sizes::clearly_above;
use super::stats::Reason;
use super::steady::Steady;
use super::trial::{Direction, Trials, Verdict};
use super::view::View;

/// No round is shorter than this, in microseconds: the time slices of a busy
/// machine make shorter ones noise.
const LEAST_ROUND_US: u64 = 10_000;

/// Where the round trip is not known, a round ends after this at the latest.
const LONGEST_ROUND_US: u64 = 2_000_000;

/// A peer that had credit and sent nothing for this long, in microseconds, has
/// paused: what is over the stock size is given back, and what comes next is
/// measured anew. TCP too starts over after a pause (RFC 5681, 4.1).
const IDLE_US: u64 = 5_000_000;

/// So many rounds in a row have to be content with less before a window
/// shrinks; half as many while somebody types.
const LOW_ROUNDS: u8 = 8;

/// A path on which a whole window takes longer than this, in microseconds, is
/// slow and not long: its window is not what limits it.
const LONGEST_TURN_US: u64 = 1_000_000;

/// The rate has fallen if it is below this part of the highest; the second for a
/// sender that has to keep what a larger window brings in vain.
const FELL: (u64, u64) = (3, 4);
const FELL_AHEAD: (u64, u64) = (1, 2);

/// The size to head for from now on, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Change {
    pub target: u32,
    pub reason: Reason,
}

#[derive(Debug, Default)]
pub(super) struct Autotune {
    round: Meter,
    rounds: Rounds,
    low_rounds: u8,
    /// The connection since the rounds have been low.
    low: Meter,
    steady: Steady,
    /// The rate at which a larger window last proved itself, in bytes per
    /// second.
    proven_rate: u64,
    /// The highest steady rate of the connection since the last pause, in bytes
    /// per second.
    peak_rate: u64,
    last_received_us: Option<u64>,
    /// A smaller window cost rate: the window is the limit, whatever the round
    /// trip says.
    limited: bool,
    /// The window whose double brought nothing; 0: none.
    sufficient: u32,
    was_latency: bool,
    pub trials: Trials,
}

impl Autotune {
    /// Bytes per second in the last round.
    pub fn rate(&self) -> u64 {
        self.rounds.latest()
    }

    /// Data arrives; `totals` without it. True if the channel had paused.
    pub fn arrives(&mut self, now_us: u64, totals: Totals, had_credit: bool) -> bool {
        let last = self.last_received_us.replace(now_us);
        let paused = match last {
            None => true,
            Some(last) => had_credit && now_us.saturating_sub(last) >= IDLE_US,
        };
        if paused {
            self.trials.abandon();
            self.limited = false;
            self.sufficient = 0;
            self.proven_rate = 0;
            self.peak_rate = 0;
            self.low_rounds = 0;
            self.rounds.clear();
            self.steady.restart();
            self.round = Meter::start(now_us, totals);
        }
        paused && last.is_some()
    }

    /// Looks at the channel; at most once a round there is something to see.
    pub fn evaluate(&mut self, view: &View) -> Option<Change> {
        if !self.round_over(view) {
            return None;
        }
        if self.rounds.is_empty() && view.path != Path::Unknown {
            // As long as the round trip is right there is nothing to try.
            self.trials.postpone(Direction::Up, view.now_us);
        }
        let elapsed_us = self.round.elapsed_us(view.now_us);
        let delivered = self.round.delivered(view.totals);
        self.rounds.push(delivered, elapsed_us);
        self.round = Meter::start(view.now_us, view.totals);
        self.steady.step(view);
        if std::mem::replace(&mut self.was_latency, view.sizes.latency) != view.sizes.latency {
            self.low_rounds = 0;
        }
        let change = self
            .bounds(view)
            .or_else(|| self.grow(view))
            .or_else(|| self.conclude(view))
            .or_else(|| self.shrink(view))
            .or_else(|| self.probe(view));
        if change.is_some() {
            self.steady.restart();
            self.low_rounds = 0;
        }
        change
    }

    fn round_over(&self, view: &View) -> bool {
        let elapsed = self.round.elapsed_us(view.now_us);
        match view.path {
            Path::Short => false,
            Path::Long(rtt_us) => elapsed >= u64::from(rtt_us).max(LEAST_ROUND_US),
            Path::Unknown => {
                let turn = self.round.delivered(view.totals) >= u64::from(view.target);
                elapsed >= LEAST_ROUND_US && turn || elapsed >= LONGEST_ROUND_US
            }
        }
    }

    /// A floor that rose or a cap that fell.
    fn bounds(&mut self, view: &View) -> Option<Change> {
        let target = view.sizes.bound(u64::from(view.target));
        if target == view.target {
            return None;
        }
        self.trials.abandon();
        let reason = match target > view.target {
            true => Reason::Grow,
            false => Reason::Peer,
        };
        Some(Change { target, reason })
    }

    fn grow(&mut self, view: &View) -> Option<Change> {
        let rising = self.rounds.rising() && view.keeps_up_well();
        let target = view.sizes.wanted(self.rounds.latest(), rising);
        if !view.keeps_up() || !clearly_above(target, view.target) {
            return None;
        }
        self.trials.abandon();
        let reason = Reason::Grow;
        Some(Change { target, reason })
    }

    /// The verdict on a trial that runs.
    fn conclude(&mut self, view: &View) -> Option<Change> {
        match self.trials.step(view)? {
            (Direction::Up, Verdict::Keep(rate)) => {
                self.proven_rate = self.rounds.highest();
                self.try_larger(view, rate)
            }
            (Direction::Down, Verdict::Keep(_)) => {
                self.proven_rate = self.proven_rate.min(self.rounds.highest());
                None
            }
            (direction, Verdict::Undo(previous)) => {
                match direction {
                    Direction::Up => (self.limited, self.sufficient) = (false, previous),
                    Direction::Down => self.limited = previous != self.sufficient,
                }
                let target = view.sizes.bound(u64::from(previous));
                let reason = Reason::Undo;
                Some(Change { target, reason })
            }
        }
    }

    fn shrink(&mut self, view: &View) -> Option<Change> {
        let (most, enough, reason) = self.enough(view)?;
        if self.rounds.rising() || view.target <= most {
            self.low_rounds = 0;
            return None;
        }
        if self.low_rounds == 0 {
            self.low = Meter::start(view.now_us, view.all);
        }
        self.low_rounds = self.low_rounds.saturating_add(1);
        let wanted = match view.sizes.latency {
            true => LOW_ROUNDS / 2,
            false => LOW_ROUNDS,
        };
        if self.low_rounds <= wanted || !self.trials.may_start(Direction::Down, view.now_us) {
            return None;
        }
        let base = self.low.rate(view.now_us, view.all);
        self.trials.start_down(view, base);
        let target = enough;
        Some(Change { target, reason })
    }

    /// The size above which to shrink, the size to shrink to, and why.
    fn enough(&self, view: &View) -> Option<(u32, u32, Reason)> {
        let sizes = &view.sizes;
        let highest = self.rounds.highest();
        let half = sizes.bound(u64::from(view.target / 2));
        match view.path {
            Path::Short => None,
            Path::Long(_) => {
                let reason = match sizes.latency {
                    true => Reason::Latency,
                    false => Reason::Shrink,
                };
                // By halves where the window may be the limit after all, so
                // that a trial that fails costs little.
                let waiting = sizes.latency && view.target <= sizes.stock;
                let at_once = waiting || turn_us(view.target, highest) > LONGEST_TURN_US;
                let least = if at_once { 0 } else { half };
                let enough = sizes.wanted(highest, false).max(least);
                Some((sizes.too_large(highest), enough, reason))
            }
            Path::Unknown => {
                let slow = highest < self.proven_rate / 2 || !view.keeps_up();
                slow.then_some((half, half, Reason::Shrink))
            }
        }
    }

    /// Without a round trip, or with one that may be out of date, a larger
    /// window is tried now and then. In latency mode only as far as the stock
    /// window, unless the window has shown that it is the limit.
    fn probe(&mut self, view: &View) -> Option<Change> {
        let base = self.steady.rate()?;
        if self.steady.holds() {
            self.peak_rate = self.peak_rate.max(base);
        }
        let due = self.trials.may_start(Direction::Up, view.now_us);
        let below_stock = view.target < view.sizes.stock;
        let useful = !view.sizes.latency && self.may_be_out_of_date(view, base);
        let wanted = self.limited || due && (below_stock || useful);
        if !wanted || !view.keeps_up() || self.trials.running().is_some() {
            return None;
        }
        self.try_larger(view, base)
    }

    /// A route that became longer has cost rate where the window was the limit.
    /// Without that sign nothing larger is tried: the sender may have to keep it.
    fn may_be_out_of_date(&self, view: &View, rate: u64) -> bool {
        let (part, whole) = match view.sizes.reads_ahead {
            true => FELL_AHEAD,
            false => FELL,
        };
        let fell = rate.saturating_mul(whole) < self.peak_rate.saturating_mul(part);
        view.path == Path::Unknown || fell
    }

    fn try_larger(&mut self, view: &View, base: u64) -> Option<Change> {
        let target = view.sizes.larger(view.target);
        let slow = turn_us(view.target, base) > LONGEST_TURN_US;
        if slow || !clearly_above(target, view.target) {
            return None;
        }
        self.trials.start_up(view, base, self.limited);
        let reason = Reason::Probe;
        Some(Change { target, reason })
    }
}

/// How long a window takes at a rate in bytes per second, in microseconds.
fn turn_us(window: u32, rate: u64) -> u64 {
    u64::from(window) * 1_000_000 / rate.max(1)
}
