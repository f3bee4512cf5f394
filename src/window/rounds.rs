#![forbid(unsafe_code)]
//! How much a channel delivers: bytes that arrived and were handed on, over
//! the time they took.

/// A channel's running totals at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Totals {
    pub received: u64,
    pub consumed: u64,
}

/// Measures from a moment on.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Meter {
    start_us: u64,
    start: Totals,
}

impl Meter {
    pub fn start(now_us: u64, totals: Totals) -> Meter {
        Meter {
            start_us: now_us,
            start: totals,
        }
    }

    pub fn elapsed_us(&self, now_us: u64) -> u64 {
        now_us.saturating_sub(self.start_us)
    }

    /// Bytes that went all the way: what only arrived fills a buffer, and what
    /// was only handed on empties one.
    pub fn delivered(&self, totals: Totals) -> u64 {
        let received = totals.received.saturating_sub(self.start.received);
        received.min(totals.consumed.saturating_sub(self.start.consumed))
    }

    /// Bytes per second.
    pub fn rate(&self, now_us: u64, totals: Totals) -> u64 {
        let bytes = self.delivered(totals);
        bytes.saturating_mul(1_000_000) / self.elapsed_us(now_us).max(1)
    }
}

/// How many rounds are remembered, and have to agree before a window shrinks:
/// enough that one loss, which empties a round and fills the next, or one
/// pause of the program at the other end does not count as a smaller path.
pub(super) const ROUNDS_KEPT: usize = 8;

/// The rates of the last rounds, in bytes per second.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    rates: [u64; ROUNDS_KEPT],
    seen: usize,
}

impl Rounds {
    pub fn push(&mut self, rate: u64) {
        self.rates[self.seen % ROUNDS_KEPT] = rate;
        self.seen = self.seen.wrapping_add(1);
    }

    pub fn clear(&mut self) {
        *self = Rounds::default();
    }

    pub fn is_empty(&self) -> bool {
        self.seen == 0
    }

    /// The latest, 0 if there is none.
    pub fn last(&self) -> u64 {
        match self.seen {
            0 => 0,
            seen => self.rates[(seen - 1) % ROUNDS_KEPT],
        }
    }

    pub fn highest(&self) -> u64 {
        self.rates.iter().copied().max().unwrap_or(0)
    }

    pub fn mean(&self) -> u64 {
        let count = self.seen.min(ROUNDS_KEPT) as u64;
        let sum = self
            .rates
            .iter()
            .fold(0_u64, |sum, &rate| sum.saturating_add(rate));
        sum / count.max(1)
    }
}
