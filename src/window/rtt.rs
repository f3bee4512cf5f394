#![forbid(unsafe_code)]
//! The connection's minimum round trip, as far as the host knows it.

/// Below this the path is a LAN and every window is left as stock has it. At
/// 1 ms the stock window carries 2 GB/s, more than any cipher.
const SHORT_US: u32 = 1_000;

/// Longer samples are counted as this: no path has more, and sizes computed
/// from hostile numbers stay sane.
const LONGEST_US: u32 = 10_000_000;

/// How long a minimum is remembered: between one and two of these. Kernels
/// that know a minimum forget it after 300 s (`tcp_min_rtt_wlen`); of others
/// hosts pass plain samples, which the transfer's own queue inflates, so that
/// a short memory would let a window feed itself.
const MEMORY_US: u64 = 150_000_000;

/// What is known of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Path {
    /// No sample: a pipe, a jump host.
    Unknown,
    /// A LAN or a loopback.
    Short,
    /// A minimum round trip of this many microseconds.
    Long(u32),
}

/// The minimum of the samples of the last minutes.
#[derive(Debug, Default)]
pub(super) struct MinRtt {
    current: Option<u32>,
    previous: Option<u32>,
    since_us: u64,
}

impl MinRtt {
    pub fn sample(&mut self, now_us: u64, rtt_us: u32) {
        let rtt_us = rtt_us.min(LONGEST_US);
        if self.current.is_none() || now_us.saturating_sub(self.since_us) >= MEMORY_US {
            self.previous = self.current;
            self.current = Some(rtt_us);
            self.since_us = now_us;
        }
        self.current = self.current.map(|least| least.min(rtt_us));
    }

    pub fn get(&self) -> Option<u32> {
        match (self.current, self.previous) {
            (Some(current), Some(previous)) => Some(current.min(previous)),
            (current, _) => current,
        }
    }

    pub fn path(&self) -> Path {
        match self.get() {
            None => Path::Unknown,
            Some(rtt_us) if rtt_us < SHORT_US => Path::Short,
            Some(rtt_us) => Path::Long(rtt_us),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minimum_is_kept_for_minutes_and_then_forgotten() {
        let mut rtt = MinRtt::default();
        assert_eq!(rtt.path(), Path::Unknown);
        rtt.sample(1, 20_000);
        rtt.sample(2, 120_000);
        assert_eq!(rtt.path(), Path::Long(20_000));
        rtt.sample(MEMORY_US + 1, 120_000);
        assert_eq!(rtt.path(), Path::Long(20_000), "for at least one memory");
        rtt.sample(2 * MEMORY_US + 1, 120_000);
        assert_eq!(rtt.path(), Path::Long(120_000));
        rtt.sample(2 * MEMORY_US + 2, 999);
        assert_eq!(rtt.path(), Path::Short);
    }

    #[test]
    fn absurd_samples_are_bounded() {
        let mut rtt = MinRtt::default();
        rtt.sample(u64::MAX, u32::MAX - 1);
        assert_eq!(rtt.get(), Some(LONGEST_US));
        rtt.sample(0, 0);
        assert_eq!(rtt.path(), Path::Short);
    }
}
