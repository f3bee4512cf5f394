#![forbid(unsafe_code)]
//! Receive windows that fit the path.
//!
//! A [`Link`] is one SSH connection; it owns the flow control state of its
//! channels, each addressed by a [`ChannelId`]. The host reports what arrives
//! ([`Link::received`]) and what it handed on ([`Link::consumed`]), and asks
//! before it would send `SSH_MSG_CHANNEL_WINDOW_ADJUST` ([`Link::adjust`]).
//!
//! Nothing here does I/O, allocates behind the caller's back or reads a clock:
//! time is an argument, in microseconds of any monotonic clock, and the same
//! calls give the same answers. A clock that steps back is taken as one that
//! stands still.
//!
//! # Terms
//!
//! * *credit*: bytes the peer may still send (granted less received, never
//!   below 0).
//! * *backlog*: bytes received and not yet consumed.
//! * *window in force*: the upper bound of credit plus backlog. It grows at
//!   once and shrinks only as fast as the peer uses credit up, because credit
//!   once granted cannot be taken back (RFC 4254, 5.2).
//! * *stock window*: what the host would use without this library; on a short
//!   path nothing else is ever used.
//!
//! # How a window is chosen
//!
//! * Below 1 ms of round trip, and with [`Policy::Fixed`], by OpenSSH's own
//!   rule and nothing else.
//! * Otherwise once a round trip, from the rate at which bytes arrive *and* are
//!   handed on, times the minimum round trip: what the path holds, queues not
//!   counted. Six times that while the rate rises, three times later
//!   (`sizes`), less where the sender would have to keep it, within the peer's cap, the host's maximum and the
//!   connection's budget. A program that does not keep up gets no more.
//! * A smaller window, and without a round trip any other, is a trial: the rate
//!   of the connection decides whether it stays (`trial`). So a round trip that
//!   is out of date traps no window.
//! * While somebody types on the connection, half again what the path holds:
//!   the window is the queue that a keystroke waits in.
//!
//! # What always holds
//!
//! For every sequence of calls, hostile numbers included:
//!
//! 1. credit ≤ 2³¹ − 1, and no adjust lifts it above the peer's cap;
//! 2. credit + backlog ≤ the window in force;
//! 3. after [`Link::adjust`] a channel with an empty backlog has credit;
//! 4. what all windows exceed their stock windows by, together, stays within
//!    [`WindowConfig::budget`] (what the host granted by itself aside).

mod autotune;
mod budget;
mod channel;
mod config;
mod link;
mod peer;
mod rounds;
mod rtt;
mod sizes;
mod stats;
mod steady;
mod trial;
mod view;

pub use channel::Kind;
pub use config::{LatencyMode, Policy, WindowConfig};
pub use link::{ChannelId, Link, Target};
pub use peer::PEER_HAS_SSHFLOW;
pub use stats::{Reason, WindowStats};

/// The largest credit and window, in bytes: peers keep them in 32 bits, and
/// some of those are signed.
pub const WINDOW_LIMIT: u32 = i32::MAX as u32;

/// OpenSSH's window for sessions and TCP forwards, in bytes
/// (`CHAN_SES_WINDOW_DEFAULT`, channels.h). Its server gives it to sessions
/// with a terminal too; only the client halves it there.
pub const STOCK_WINDOW: u32 = 2 * 1024 * 1024;

/// OpenSSH's window for a forwarded X11 channel, in bytes
/// (`CHAN_X11_WINDOW_DEFAULT`, channels.h).
pub const STOCK_X11_WINDOW: u32 = 64 * 1024;
