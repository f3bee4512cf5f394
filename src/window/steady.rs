#![forbid(unsafe_code)]
//! The connection's rate while a channel's window stays as it is.

use super::rounds::Meter;
use super::view::View;

/// A rate to compare with is measured over at least this long, in
/// microseconds.
const LEAST_US: u64 = 100_000;

/// So many turns of the window go into one measurement.
const TURNS: u64 = 2;

/// A rate that gained less than a tenth between two measurements is level.
const LEVEL: u64 = 10;

#[derive(Debug, Default)]
pub(super) struct Steady {
    meter: Option<Meter>,
    /// What the channel has received when the measurement is over.
    until: u64,
    last: u64,
    before: u64,
}

impl Steady {
    pub fn restart(&mut self) {
        *self = Steady::default();
    }

    pub fn step(&mut self, view: &View) {
        if let Some(meter) = self.meter {
            let elapsed_us = meter.elapsed_us(view.now_us);
            if view.totals.received < self.until || elapsed_us < LEAST_US {
                return;
            }
            self.before = self.last;
            self.last = meter.rate(view.now_us, view.all);
        }
        let turns = TURNS * u64::from(view.target);
        self.until = view.totals.received.saturating_add(turns);
        self.meter = Some(Meter::start(view.now_us, view.all));
    }

    /// Bytes per second, once the rate does not rise by itself any more.
    pub fn rate(&self) -> Option<u64> {
        let level = self.before.saturating_add(self.before / LEVEL);
        (self.before > 0 && self.last <= level).then_some(self.last)
    }

    /// Whether it does not fall either: what a sender had in its buffers comes
    /// faster than what follows.
    pub fn holds(&self) -> bool {
        self.last >= self.before.saturating_sub(self.before / LEVEL)
    }
}
