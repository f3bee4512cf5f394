//! How fast a CPU is, and for how long it stands still.
#![forbid(unsafe_code)]

use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

#[derive(Debug, Serialize, Deserialize)]
pub struct Spun {
    pub rounds_per_s: f64,
    /// Longest time between two rounds, which is how long a quota freezes its group.
    pub longest_gap_ms: f64,
}

/// A thousand steps of a generator that no compiler can shorten.
fn step(mut x: u64) -> u64 {
    for _ in 0..1000 {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    x
}

pub fn run(seconds: f64) -> Spun {
    let start = Instant::now();
    let whole = Duration::from_secs_f64(seconds);
    let (mut rounds, mut gap, mut last, mut x) = (0u64, Duration::ZERO, start, 88_172_645u64);
    while last - start < whole {
        x = std::hint::black_box(step(x));
        rounds += 1;
        let now = Instant::now();
        gap = gap.max(now - last);
        last = now;
    }
    Spun {
        rounds_per_s: rounds as f64 / (last - start).as_secs_f64(),
        longest_gap_ms: gap.as_secs_f64() * 1e3,
    }
}
