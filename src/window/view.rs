#![forbid(unsafe_code)]
//! What the policy sees of a channel and its connection at one moment.

use super::rounds::Totals;
use super::rtt::Path;
use super::sizes::Sizes;

#[derive(Debug, Clone, Copy)]
pub(super) struct View {
    /// Microseconds.
    pub now_us: u64,
    pub path: Path,
    pub sizes: Sizes,
    /// The size the window is heading for, in bytes.
    pub target: u32,
    /// Credit and backlog together, in bytes.
    pub held: u64,
    pub backlog: u64,
    /// Of this channel.
    pub totals: Totals,
    /// Of the connection. What one channel gains or loses may have come from
    /// or gone to its neighbours, so trials look at this.
    pub all: Totals,
}

impl View {
    /// The program behind this channel keeps up.
    pub fn keeps_up(&self) -> bool {
        self.backlog <= u64::from(self.target / 2)
    }

    /// It takes what comes as it comes: what arrives is not faster than it.
    pub fn keeps_up_well(&self) -> bool {
        self.backlog <= u64::from(self.target / 8)
    }
}
