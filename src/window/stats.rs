#![forbid(unsafe_code)]
//! What a host can show its user about one window.

use std::ffi::CStr;

/// Why a window last changed. The numbers are part of the ABI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u32)]
pub enum Reason {
    /// It never did: the stock window.
    #[default]
    Stock = 0,
    /// The path delivers more per round trip than the window has room for.
    Grow = 1,
    /// The path needs less than the window offers.
    Shrink = 2,
    /// Somebody types on the same connection: the queue was cut.
    Latency = 3,
    /// The channel rested: the excess is given back.
    Idle = 4,
    /// A larger window is being tried, or proved worth keeping.
    Probe = 5,
    /// A larger or smaller window was tried and undone.
    Undo = 6,
    /// Other channels need their share of the budget.
    Budget = 7,
    /// The host asked for it.
    Host = 8,
    /// The peer bears no more.
    Peer = 9,
}

impl Reason {
    /// A few words for a person, from the number.
    pub const fn words(number: u32) -> &'static CStr {
        match number {
            0 => c"stock window",
            1 => c"path needs more",
            2 => c"path needs less",
            3 => c"cut for latency",
            4 => c"idle",
            5 => c"probing",
            6 => c"probe undone",
            7 => c"shared budget",
            8 => c"asked by the host",
            9 => c"limit of the peer",
            _ => c"unknown",
        }
    }
}

/// The state and the history of one window. Fields are only ever added at the
/// end. In C it is `struct sshflow_window_stats`, because the function of that
/// name leaves no room for a typedef.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct WindowStats {
    /// Bytes received since the channel was opened.
    pub received: u64,
    /// Bytes handed on by the host.
    pub consumed: u64,
    /// Bytes of credit given, the initial window included.
    pub granted: u64,
    /// Bytes received and not yet consumed.
    pub backlog: u64,
    /// Bytes per second delivered in the last measured round; 0: none yet.
    pub rate: u64,
    /// Bytes: the window in force (credit + backlog never exceed it).
    pub window: u32,
    /// Bytes: the size the window is heading for.
    pub target: u32,
    /// Bytes: what the window would be without sshflow.
    pub stock: u32,
    /// Bytes the peer may still send.
    pub credit: u32,
    /// Bytes: the largest window this peer is given.
    pub peer_cap: u32,
    /// Microseconds: the path's minimum round trip; 0: not known.
    pub min_rtt_us: u32,
    /// How often `adjust` gave credit.
    pub adjusts: u32,
    /// How often the window grew.
    pub grows: u32,
    /// How often it was made smaller.
    pub shrinks: u32,
    /// How often another size was tried for its effect on the rate.
    pub probes: u32,
    /// Why it last changed; sshflow_window_reason() says it in words.
    pub reason: u32,
    /// 1 while latency mode holds on this connection, else 0.
    pub latency_mode: u32,
}
