#![forbid(unsafe_code)]
//! One channel's flow control: what was granted, received and consumed, and
//! when an adjust is due.

use super::autotune::Autotune;
use super::config::{Policy, WindowConfig};
use super::rounds::Totals;
use super::stats::Reason;
use super::{STOCK_WINDOW, STOCK_X11_WINDOW, WINDOW_LIMIT};
use crate::{Error, Result};
use std::cmp::Ordering;

/// What a channel carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A command, a subsystem, a forward: throughput first.
    Bulk,
    /// A terminal: somebody waits for each answer.
    Interactive,
    /// A forwarded X11 client.
    X11,
}

impl Kind {
    /// What OpenSSH grants a channel of this kind that starts with nothing.
    const fn stock_window(self) -> u32 {
        match self {
            Kind::Bulk | Kind::Interactive => STOCK_WINDOW,
            Kind::X11 => STOCK_X11_WINDOW,
        }
    }
}

/// OpenSSH sends an adjust as soon as more than this many packets are missing
/// from the window (`channel_check_window`, channels.c).
const STOCK_MISSING_PACKETS: u64 = 3;

/// Bounds, in bytes, of the credit worth a message once a window has left its
/// stock size. An eighth of the window keeps the peer supplied; at least two
/// of the usual 16 KiB packets, so that a message of 28 to 80 bytes on the wire
/// stays under 0.3 %; at most 1 MiB, so that no burst of credit longer than
/// what senders read ahead is made.
const ADJUST_MIN: u32 = 32 * 1024;
const ADJUST_MAX: u32 = 1024 * 1024;
const ADJUST_FRACTION: u32 = 8;

#[derive(Debug)]
pub(super) struct Channel {
    pub kind: Kind,
    pub max_packet: u32,
    /// The window without this library; also the floor outside latency mode.
    pub stock: u32,
    /// The size the window is heading for.
    pub target: u32,
    pub credit: u32,
    pub backlog: u64,
    pub received: u64,
    pub consumed: u64,
    pub granted: u64,
    /// Credit the host wants at the next adjust.
    pub required: u32,
    /// What it would exceed its stock window by if there were no budget.
    pub wants: u32,
    pub autotune: Autotune,
    pub reason: Reason,
    pub adjusts: u32,
    pub grows: u32,
    pub shrinks: u32,
}

impl Channel {
    /// A channel whose peer has been given `initial` bytes.
    pub fn new(
        config: &WindowConfig,
        cap: u32,
        kind: Kind,
        initial: u32,
        max_packet: u32,
    ) -> Result<Channel> {
        if initial > WINDOW_LIMIT || max_packet == 0 {
            return Err(Error::InvalidArgument);
        }
        let own = match initial {
            0 => kind.stock_window(),
            size => size,
        };
        let stock = match (config.policy, config.fixed_window) {
            (Policy::Fixed, size) if size != 0 => size,
            _ => own,
        };
        let mut channel = Channel {
            kind,
            max_packet,
            stock,
            target: stock,
            credit: initial,
            backlog: 0,
            received: 0,
            consumed: 0,
            granted: u64::from(initial),
            required: 0,
            wants: 0,
            autotune: Autotune::default(),
            reason: Reason::Stock,
            adjusts: 0,
            grows: 0,
            shrinks: 0,
        };
        channel.limit(cap);
        Ok(channel)
    }

    /// Never head for more than the peer bears.
    pub fn limit(&mut self, cap: u32) {
        self.head_for(self.target.min(cap), Reason::Peer);
    }

    pub fn head_for(&mut self, target: u32, reason: Reason) {
        let counter = match target.cmp(&self.target) {
            Ordering::Equal => return,
            Ordering::Greater => &mut self.grows,
            Ordering::Less => &mut self.shrinks,
        };
        *counter = counter.saturating_add(1);
        self.target = target;
        self.reason = reason;
    }

    /// Back to what the host would use without this library.
    pub fn reset(&mut self, cap: u32, reason: Reason) {
        self.autotune.trials.abandon();
        self.wants = 0;
        self.head_for(self.stock.min(cap), reason);
    }

    pub fn totals(&self) -> Totals {
        Totals {
            received: self.received,
            consumed: self.consumed,
        }
    }

    /// What the window in force exceeds the stock window by.
    pub fn excess(&self) -> u64 {
        self.in_force().saturating_sub(u64::from(self.stock))
    }

    /// What the peer may still send, and what it sent and the host still has.
    pub fn held(&self) -> u64 {
        u64::from(self.credit) + self.backlog
    }

    /// The window in force: a target that shrank is reached only as the peer
    /// uses its credit.
    pub fn in_force(&self) -> u64 {
        self.held().max(u64::from(self.target))
    }

    /// Data arrives. After a pause of the peer the excess is given back.
    pub fn receive(&mut self, now_us: u64, bytes: u32) {
        let had_credit = self.credit > 0;
        if self.autotune.arrives(now_us, self.totals(), had_credit) && self.target > self.stock {
            self.reset(self.target, Reason::Idle);
        }
        self.credit = self.credit.saturating_sub(bytes);
        self.backlog = self.backlog.saturating_add(u64::from(bytes));
        self.received = self.received.saturating_add(u64::from(bytes));
    }

    pub fn consume(&mut self, bytes: u32) -> Result<()> {
        let left = self.backlog.checked_sub(u64::from(bytes));
        self.backlog = left.ok_or(Error::State)?;
        self.consumed = self.consumed.saturating_add(u64::from(bytes));
        Ok(())
    }

    /// Counts credit that goes out.
    pub fn grant(&mut self, bytes: u32, cap: u32) -> Result<()> {
        let credit = self.credit.checked_add(bytes);
        let credit = credit.filter(|&credit| credit <= cap.min(WINDOW_LIMIT));
        self.credit = credit.ok_or(Error::InvalidArgument)?;
        self.granted = self.granted.saturating_add(u64::from(bytes));
        Ok(())
    }

    /// The credit that fills the window again; 0 while a window that shrank
    /// is still more than full.
    fn missing_credit(&self, cap: u32) -> u32 {
        let room = u64::from(self.target).saturating_sub(self.held());
        let room = u32::try_from(room).unwrap_or(WINDOW_LIMIT);
        room.min(cap.saturating_sub(self.credit))
    }

    /// The credit to give now, 0 for none. What the host requires may make the
    /// window as large as `room`.
    pub fn due(&self, cap: u32, room: u64) -> u32 {
        let missing = self.missing_credit(cap);
        let starved = self.credit == 0 && self.backlog == 0;
        let due = missing > 0
            && (starved
                || match self.target == self.stock {
                    true => self.stock_rule(),
                    false => missing >= self.adjust_threshold(),
                });
        let room = u32::try_from(room.saturating_sub(self.held())).unwrap_or(WINDOW_LIMIT);
        let wanted = self.required.min(cap).saturating_sub(self.credit).min(room);
        match due {
            true => missing.max(wanted),
            false => wanted,
        }
    }

    /// `channel_check_window` of OpenSSH; that something was consumed is known
    /// already, since credit is missing beyond the backlog.
    fn stock_rule(&self) -> bool {
        let absent = u64::from(self.target.saturating_sub(self.credit));
        absent > STOCK_MISSING_PACKETS * u64::from(self.max_packet) || self.credit < self.target / 2
    }

    fn adjust_threshold(&self) -> u32 {
        let fraction = self.target / ADJUST_FRACTION;
        fraction
            .clamp(ADJUST_MIN, ADJUST_MAX)
            .min(self.target / 2)
            .max(1)
    }
}
