#![forbid(unsafe_code)]
//! How large a window a path needs. Every number here is a choice, made with
//! the simulator (tests/window_sim) and the laboratory (lab/).

use super::rtt::Path;
use super::STOCK_WINDOW;

/// While the rate still rises the window is this many times what the path
/// delivers in one minimum round trip. In slow start the rate doubles each
/// round trip; credit given now is on its way for half a round trip, has to
/// last for one until the next is measured, and what it lets go arrives half a
/// round trip later: twice the round trip's growth, (2² − 1) / (1 − 1/2) = 6
/// times what the last one brought. In the simulator a transfer over
/// 400 Mbit/s and 200 ms then loses nothing to its window; with 4 it loses
/// 0.04 to 0.16 s, with 3 up to 0.5 s.
const START_FACTOR: u64 = 6;

/// Later this many times: one for what is under way, one for what the sender
/// goes on sending in the round trip in which a lost segment holds everything
/// up, and one for the queue at the bottleneck, which may be as long as the
/// path.
const GROW_FACTOR: u64 = 3;

/// It shrinks to the same when it is more than this many times the need, so
/// that growing and shrinking never chase each other.
const SHRINK_FACTOR: u64 = 4;

/// A sender that reads ahead as far as the window goes (OpenSSH) keeps what its
/// socket does not take in a buffer that it moves as it grows. Towards such a
/// sender the window is what the path holds, which its socket takes, and a stock
/// window, which it has to bear anyway; while the rate still rises this many
/// times the path. With the kernel's usual send buffer over 400 Mbit/s and 50 ms
/// fixed windows of 2, 4, 8 and 16 MiB gave 27.5, 29.1, 20.2 and 13.1 MB/s.
const AHEAD_START_FACTOR: (u64, u64) = (5, 4);

/// It shrinks when it is an eighth above that.
const AHEAD_EXCESS: (u64, u64) = (9, 8);

/// In latency mode the window is the queue's size: half a round trip's worth
/// more than the path holds keeps it full while the credit comes back, and
/// leaves a window that is the limit room to show it (what it delivers grows
/// with it, so it grows again).
const LATENCY_FACTOR: (u64, u64) = (3, 2);

/// In latency mode the window shrinks when it is a quarter above that, so that
/// what a trial of the smaller one shows is more than noise.
const LATENCY_EXCESS: (u64, u64) = (5, 4);

/// Added where the path's need may be next to nothing, in bytes: two adjusts,
/// each of at least 32 KiB.
const SLACK: u64 = 64 * 1024;

/// The floor in latency mode, in bytes: on a slow path the window in which a
/// few packets and the adjusts for them fit.
const LATENCY_FLOOR: u32 = 128 * 1024;

/// A change of less than a twentieth is none.
const WORTH_A_CHANGE: (u64, u64) = (21, 20);

/// What the other end bears.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer {
    /// The largest window, in bytes.
    pub cap: u32,
    /// It reads ahead as far as the window goes.
    pub reads_ahead: bool,
}

/// Sizes one channel's window may have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub rtt_us: u32,
    pub latency: bool,
    /// The window without this library, in bytes.
    pub stock: u32,
    /// Bounds in bytes.
    pub floor: u32,
    pub cap: u32,
    /// The sender reads ahead as far as the window goes.
    pub reads_ahead: bool,
}

impl Sizes {
    pub fn new(path: Path, latency: bool, stock: u32, max_packet: u32, peer: Peer) -> Sizes {
        let Peer { cap, reads_ahead } = peer;
        let rtt_us = match path {
            Path::Long(rtt_us) => rtt_us,
            Path::Short | Path::Unknown => 0,
        };
        let least = LATENCY_FLOOR.max(max_packet.saturating_mul(4));
        let floor = if latency { least.min(stock) } else { stock };
        Sizes {
            rtt_us,
            latency,
            stock,
            floor: floor.min(cap),
            cap,
            reads_ahead,
        }
    }

    /// What `rate` bytes per second are in one minimum round trip; no more than
    /// any window, so that nothing made of it overflows.
    fn per_round_trip(&self, rate: u64) -> u64 {
        let path = rate.saturating_mul(u64::from(self.rtt_us)) / 1_000_000;
        path.min(u64::from(u32::MAX))
    }

    /// The window for this rate (bytes per second), more where it is still
    /// `rising`.
    pub fn wanted(&self, rate: u64, rising: bool) -> u32 {
        let path = self.per_round_trip(rate);
        self.bound(match (self.latency, rising) {
            (true, _) => latency_size(path),
            (false, true) => self
                .bearable(path * AHEAD_START_FACTOR.0 / AHEAD_START_FACTOR.1)
                .min(path * START_FACTOR),
            (false, false) => self.bearable(path).min(path * GROW_FACTOR),
        })
    }

    /// The largest window that the sender bears on a path that holds so much.
    fn bearable(&self, path: u64) -> u64 {
        match self.reads_ahead {
            true => path + u64::from(STOCK_WINDOW),
            false => u64::MAX,
        }
    }

    /// The window above which a channel that never had more than this rate
    /// (bytes per second) gives some back.
    pub fn too_large(&self, rate: u64) -> u32 {
        let path = self.per_round_trip(rate);
        self.bound(match self.latency {
            true => latency_size(path) * LATENCY_EXCESS.0 / LATENCY_EXCESS.1,
            false => (path * SHRINK_FACTOR + SLACK)
                .min(self.bearable(path).saturating_mul(AHEAD_EXCESS.0) / AHEAD_EXCESS.1),
        })
    }

    /// The next larger window to try: twice this one, or what the sender bears to
    /// keep if it is in vain.
    pub fn larger(&self, than: u32) -> u32 {
        let more = match self.reads_ahead {
            true => than.min(STOCK_WINDOW),
            false => than,
        };
        self.bound(u64::from(than) + u64::from(more))
    }

    pub fn bound(&self, size: u64) -> u32 {
        size.clamp(u64::from(self.floor), u64::from(self.cap)) as u32
    }
}

fn latency_size(path: u64) -> u64 {
    path * LATENCY_FACTOR.0 / LATENCY_FACTOR.1 + SLACK
}

/// Whether `size` is enough above `than` to act on.
pub(super) fn clearly_above(size: u32, than: u32) -> bool {
    u64::from(size) * WORTH_A_CHANGE.1 > u64::from(than) * WORTH_A_CHANGE.0
}
