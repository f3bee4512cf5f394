#![forbid(unsafe_code)]
//! What a host may set.

use super::WINDOW_LIMIT;
use crate::{Error, Result};

const MIB: u32 = 1024 * 1024;

/// Configuration key `window_policy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Policy {
    /// Windows follow the path.
    #[default]
    Auto,
    /// Windows keep their size, and adjusts follow OpenSSH's own rule.
    Fixed,
}

/// Configuration key `latency_mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LatencyMode {
    /// While somebody types, bulk windows hold no more than the path needs,
    /// so that the queue they make stays short.
    #[default]
    Auto,
    /// Windows never fall below their stock size.
    Off,
}

/// Everything the windows of one connection can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowConfig {
    /// Whether windows follow the path.
    pub policy: Policy,
    /// `window_max`, bytes: the largest window that the host's own buffers
    /// bear. Growth stops there; a larger initial window is left as it is.
    pub window_max: u32,
    /// `window_budget`, bytes: how far all windows of the connection together
    /// may exceed their stock sizes.
    pub budget: u64,
    /// Whether interactive channels keep the windows beside them small.
    pub latency_mode: LatencyMode,
    /// A fixed size in bytes for every channel, or 0 for each channel's own
    /// initial window. Used with [`Policy::Fixed`] only: this is how
    /// `ChannelWindow 8M` of ssh_config(5) reads. A window that was opened
    /// with another size reaches this one at its first due adjust.
    pub fixed_window: u32,
}

impl Default for WindowConfig {
    fn default() -> Self {
        WindowConfig {
            policy: Policy::Auto,
            window_max: 4 * MIB,
            budget: 64 * u64::from(MIB),
            latency_mode: LatencyMode::Auto,
            fixed_window: 0,
        }
    }
}

impl WindowConfig {
    pub(super) fn check(&self) -> Result<()> {
        let size_fits = |size: u32| size <= WINDOW_LIMIT;
        if self.window_max == 0 || !size_fits(self.window_max) || !size_fits(self.fixed_window) {
            return Err(Error::InvalidArgument);
        }
        Ok(())
    }
}
