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

/// A round with less than three quarters of the one before it is a dip: a lost
/// segment holds back what comes after it, and the next round gets it all at
/// once.
const DIP: (u64, u64) = (3, 4);

/// The rate rises as long as it gains a quarter in three rounds (BBR calls a
/// pipe full by the same test).
const RISE: (u64, u64) = (5, 4);
const FLAT_ROUNDS: u8 = 3;

/// The rates of the last rounds, in bytes per second.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    rates: [u64; ROUNDS_KEPT],
    seen: usize,
    /// The last round and the one before it.
    last: Round,
    before: Round,
    /// The last round but one was a dip.
    after_dip: bool,
    /// The rate that has to be beaten, and for how many rounds it was not.
    best: u64,
    flat: u8,
}

#[derive(Debug, Clone, Copy, Default)]
struct Round {
    bytes: u64,
    elapsed_us: u64,
}

impl Round {
    fn rate(self) -> u64 {
        self.bytes.saturating_mul(1_000_000) / self.elapsed_us.max(1)
    }

    fn with(self, other: Round) -> Round {
        Round {
            bytes: self.bytes.saturating_add(other.bytes),
            elapsed_us: self.elapsed_us.saturating_add(other.elapsed_us),
        }
    }
}

impl Rounds {
    /// A round in which `bytes` were delivered.
    pub fn push(&mut self, bytes: u64, elapsed_us: u64) {
        let (oldest, before) = (self.before, self.last);
        self.after_dip = before.rate().saturating_mul(DIP.1) < oldest.rate().saturating_mul(DIP.0);
        self.before = before;
        self.last = Round { bytes, elapsed_us };
        let steady = self.steady();
        if steady.saturating_mul(RISE.1) >= self.best.saturating_mul(RISE.0) {
            (self.best, self.flat) = (steady, 0);
        } else {
            self.flat = self.flat.saturating_add(1);
        }
        self.rates[self.seen % ROUNDS_KEPT] = steady;
        self.seen = self.seen.wrapping_add(1);
    }

    /// The rate of the last two rounds together.
    fn steady(&self) -> u64 {
        match self.before.elapsed_us {
            0 => self.last.rate(),
            _ => self.last.with(self.before).rate(),
        }
    }

    pub fn clear(&mut self) {
        *self = Rounds::default();
    }

    pub fn is_empty(&self) -> bool {
        self.seen == 0
    }

    /// The latest rate, 0 if there is none: of the last round, or of two where
    /// it made up for a dip.
    pub fn latest(&self) -> u64 {
        if self.after_dip {
            self.steady()
        } else {
            self.last.rate()
        }
    }

    /// Whether the rate is still on its way up.
    pub fn rising(&self) -> bool {
        self.flat < FLAT_ROUNDS
    }

    /// The highest rate over two rounds.
    pub fn highest(&self) -> u64 {
        self.rates.iter().copied().max().unwrap_or(0)
    }
}
