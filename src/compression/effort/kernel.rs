#![forbid(unsafe_code)]
//! What the kernel knows of the connection: how fast its send queue drains,
//! and whether the peer's receive buffer is what holds it.
//!
//! A queue that was never empty between two looks has drained as fast as the
//! path allows, whatever room the send buffer still has. So the pace is known
//! from the second round trip on, long before the socket is full.

/// Less than this in the kernel's queue is on its way already.
const BACKLOG: u64 = 4 * 1024;
/// A stretch that pace is taken from lasts a round trip, but at least this.
const SHORTEST_US: u64 = 4_000;
/// Looking costs a system call, so not sooner than this after the last look.
const INTERVAL_US: u64 = 1_000;
/// The peer's receive buffer sets the pace if it held the sender for this share
/// of the time.
const RECEIVER_SHARE: f32 = 0.3;
/// While each round trip carries so much more than the one before, TCP is in
/// slow start, and the next one will carry up to twice as much.
const STILL_GROWING: f32 = 1.25;
const SLOW_START: f32 = 2.0;
/// Doubling from ten segments, no window has so many round trips to grow.
const SLOW_START_ROUNDS: u64 = 16;

/// The state of a TCP connection's sending side. Counters are totals since it
/// was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KernelState {
    /// Monotonic clock of the host, microseconds.
    pub now_us: u64,
    /// Bytes that the peer has acknowledged (`tcpi_bytes_acked`).
    pub acked_bytes: u64,
    /// Bytes in the send queue that were never sent (`tcpi_notsent_bytes`).
    pub unsent_bytes: u64,
    /// The smoothed round trip (`tcpi_rtt`), microseconds.
    pub rtt_us: u64,
    /// For how long there was something to send (`tcpi_busy_time`),
    /// microseconds.
    pub busy_us: u64,
    /// For how much of that the peer's receive window held it up
    /// (`tcpi_rwnd_limited`), microseconds.
    pub receiver_limited_us: u64,
}

/// What followed from a look.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Drain {
    /// The queue was not empty, but not for long enough yet.
    Unclear,
    /// The queue ran empty: we are slower than the path.
    Empty,
    /// It drains at this pace, bytes per nanosecond.
    At {
        pace: f32,
        elapsed_ns: f32,
        receiver_full: bool,
    },
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Kernel {
    /// The first look of the present stretch, in which the queue was never
    /// seen empty.
    from: Option<KernelState>,
    first_us: Option<u64>,
    last_us: Option<u64>,
    last_acked: u64,
    /// The pace of the stretch before.
    before: f32,
    /// TCP's slow start is over.
    settled: bool,
}

impl Kernel {
    /// Whether it is time for a look.
    pub fn due(&self, now_us: u64) -> bool {
        self.last_us
            .is_none_or(|last| now_us.saturating_sub(last) >= INTERVAL_US)
    }

    /// Whether the queue was last seen to hold something.
    pub fn backlog(&self) -> bool {
        self.from.is_some()
    }

    /// Whether the host tells at all.
    pub fn tells(&self) -> bool {
        self.last_us.is_some()
    }

    /// Bytes acknowledged since the last look.
    pub fn acked(&mut self, state: &KernelState) -> f32 {
        let before = std::mem::replace(&mut self.last_acked, state.acked_bytes);
        if self.tells() {
            state.acked_bytes.saturating_sub(before) as f32
        } else {
            0.0
        }
    }

    pub fn look(&mut self, state: KernelState) -> Drain {
        self.last_us = Some(state.now_us);
        let first_us = *self.first_us.get_or_insert(state.now_us);
        let age_us = state.now_us.saturating_sub(first_us);
        if state.unsent_bytes < BACKLOG {
            self.from = None;
            return Drain::Empty;
        }
        let Some(from) = self.from else {
            self.from = Some(state);
            return Drain::Unclear;
        };
        let elapsed_us = state.now_us.saturating_sub(from.now_us);
        if elapsed_us < SHORTEST_US.max(state.rtt_us) {
            return Drain::Unclear;
        }
        self.from = Some(state);
        let acked = state.acked_bytes.saturating_sub(from.acked_bytes);
        if acked == 0 {
            return Drain::Unclear;
        }
        let busy = state.busy_us.saturating_sub(from.busy_us);
        let limited = state
            .receiver_limited_us
            .saturating_sub(from.receiver_limited_us);
        let elapsed_ns = elapsed_us as f32 * 1e3;
        let pace = acked as f32 / elapsed_ns;
        self.settled |=
            pace < STILL_GROWING * self.before || age_us > SLOW_START_ROUNDS * state.rtt_us;
        self.before = pace;
        Drain::At {
            pace: if self.settled {
                pace
            } else {
                SLOW_START * pace
            },
            elapsed_ns,
            receiver_full: limited as f32 > RECEIVER_SHARE * busy as f32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(ms: u64, acked: u64, unsent: u64) -> KernelState {
        KernelState {
            now_us: ms * 1_000,
            acked_bytes: acked,
            unsent_bytes: unsent,
            rtt_us: 10_000,
            busy_us: ms * 1_000,
            receiver_limited_us: 0,
        }
    }

    #[test]
    fn a_queue_that_stays_tells_its_pace_after_a_round_trip() {
        let mut kernel = Kernel::default();
        assert_eq!(kernel.look(state(0, 0, 100_000)), Drain::Unclear);
        assert_eq!(kernel.look(state(5, 10_000, 100_000)), Drain::Unclear);
        let pace = |drain| match drain {
            Drain::At { pace, .. } => pace,
            _ => 0.0,
        };
        assert!(pace(kernel.look(state(10, 20_000, 100_000))) > 0.0);
        let steady = pace(kernel.look(state(20, 40_000, 90_000)));
        assert!((steady - 2e-3).abs() < 1e-6, "20 kB in 10 ms, not {steady}");
    }

    #[test]
    fn a_queue_that_ran_empty_tells_nothing() {
        let mut kernel = Kernel::default();
        kernel.look(state(0, 0, 100_000));
        assert_eq!(kernel.look(state(9, 90_000, 0)), Drain::Empty);
        assert_eq!(kernel.look(state(20, 100_000, 50_000)), Drain::Unclear);
        assert!(kernel.backlog());
    }

    #[test]
    fn a_peer_that_does_not_read_is_told_from_a_slow_path() {
        let mut kernel = Kernel::default();
        kernel.look(state(0, 0, 100_000));
        let mut held = state(10, 20_000, 100_000);
        held.receiver_limited_us = 9_000;
        assert!(matches!(
            kernel.look(held),
            Drain::At {
                receiver_full: true,
                ..
            }
        ));
    }

    #[test]
    fn slow_start_is_over_after_some_round_trips() {
        let pace_after = |ms| {
            let mut kernel = Kernel::default();
            kernel.look(state(0, 0, 0));
            kernel.look(state(ms, 20_000, 100_000));
            match kernel.look(state(ms + 10, 40_000, 100_000)) {
                Drain::At { pace, .. } => pace,
                _ => 0.0,
            }
        };
        assert!((pace_after(20) - 4e-3).abs() < 1e-6);
        assert!((pace_after(400) - 2e-3).abs() < 1e-6);
    }

    #[test]
    fn a_counter_that_runs_backwards_is_no_pace() {
        let mut kernel = Kernel::default();
        kernel.look(state(10, 1 << 40, 100_000));
        assert_eq!(kernel.look(state(5, 0, 100_000)), Drain::Unclear);
        assert_eq!(kernel.look(state(50, 0, 100_000)), Drain::Unclear);
    }
}
