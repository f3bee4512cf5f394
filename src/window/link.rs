#![forbid(unsafe_code)]
//! One connection: its clock, its round trip, its peer, its channels.

use super::autotune::Change;
use super::budget::fair_share;
use super::channel::{Channel, Kind};
use super::config::{LatencyMode, Policy, WindowConfig};
use super::peer::{self, UNKNOWN_PEER_CAP};
use super::rounds::Totals;
use super::rtt::{MinRtt, Path};
use super::sizes::{Peer, Sizes};
use super::stats::{Reason, WindowStats};
use super::view::View;
use super::WINDOW_LIMIT;
use crate::{Error, Result};

/// Names one channel of one [`Link`] for as long as it is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChannelId {
    slot: u32,
    serial: u64,
}

/// What the host should plan with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// The window in force, in bytes: more than this the peer can never have
    /// under way and waiting.
    pub window: u32,
    /// Bytes of requests that a protocol above (SFTP) should keep in flight
    /// so that it neither starves the window nor waits behind it.
    pub outstanding: u32,
}

#[derive(Debug)]
struct Slot {
    serial: u64,
    channel: Option<Channel>,
}

/// Latency mode ends when no interactive channel has received anything for
/// this long, in microseconds: a reader's pause, not a forgotten terminal.
const TYPING_US: u64 = 60_000_000;

/// The flow control of one SSH connection.
#[derive(Debug)]
pub struct Link {
    config: WindowConfig,
    slots: Vec<Slot>,
    next_serial: u64,
    peer_cap: u32,
    now_us: u64,
    min_rtt: MinRtt,
    typed_us: Option<u64>,
    /// Of all channels, those that were closed included.
    totals: Totals,
}

impl Link {
    /// A connection without channels, to a peer of which nothing is known.
    /// Allocates nothing.
    ///
    /// # Errors
    /// `InvalidArgument`: a size in `config` is 0 where it must not be, or
    /// above [`WINDOW_LIMIT`].
    pub fn new(config: WindowConfig) -> Result<Link> {
        config.check()?;
        Ok(Link {
            config,
            slots: Vec::new(),
            next_serial: 0,
            peer_cap: UNKNOWN_PEER_CAP,
            now_us: 0,
            min_rtt: MinRtt::default(),
            typed_us: None,
            totals: Totals::default(),
        })
    }

    /// Tells which software answers: `ident` is its identification line
    /// (RFC 4253, 4.2), with or without CR LF; `flags` is 0 or
    /// [`super::PEER_HAS_SSHFLOW`]. May be called again.
    ///
    /// # Errors
    /// `InvalidArgument`: no identification line, or an unknown flag; nothing
    /// changes.
    pub fn peer(&mut self, ident: &[u8], flags: u32) -> Result<()> {
        self.peer_cap = peer::cap(ident, flags)?;
        for channel in self
            .slots
            .iter_mut()
            .filter_map(|slot| slot.channel.as_mut())
        {
            channel.limit(self.peer_cap);
        }
        Ok(())
    }

    /// A sample of the path's minimum round trip, in microseconds. Optional:
    /// without one the windows probe.
    ///
    /// # Errors
    /// `InvalidArgument`: `u32::MAX`, by which kernels say that they do not
    /// know.
    pub fn rtt(&mut self, now_us: u64, min_rtt_us: u32) -> Result<()> {
        if min_rtt_us == u32::MAX {
            return Err(Error::InvalidArgument);
        }
        self.advance(now_us);
        self.min_rtt.sample(self.now_us, min_rtt_us);
        Ok(())
    }

    /// Adds a channel.
    ///
    /// `initial_window` is the credit the peer already has, from the open or
    /// its confirmation; 0 when it has none yet (OpenSSH's server sessions):
    /// the first [`adjust`](Self::adjust) then grants the stock window.
    /// `max_packet` is the largest packet the peer was allowed, in bytes.
    ///
    /// # Errors
    /// `InvalidArgument`: `initial_window` above [`WINDOW_LIMIT`], or a
    /// `max_packet` of 0; `NoMemory`.
    pub fn open(&mut self, kind: Kind, initial_window: u32, max_packet: u32) -> Result<ChannelId> {
        let cap = self.peer_cap;
        let channel = Channel::new(&self.config, cap, kind, initial_window, max_packet)?;
        let free = self.slots.iter().position(|slot| slot.channel.is_none());
        let index = free.unwrap_or(self.slots.len());
        let slot = u32::try_from(index).map_err(|_| Error::NoMemory)?;
        let serial = self.next_serial;
        let entry = Slot {
            serial,
            channel: Some(channel),
        };
        match self.slots.get_mut(index) {
            Some(place) => *place = entry,
            None => {
                self.slots.try_reserve(1).map_err(|_| Error::NoMemory)?;
                self.slots.push(entry);
            }
        }
        self.next_serial += 1;
        Ok(ChannelId { slot, serial })
    }

    /// Removes a channel and gives its share of the budget back.
    ///
    /// # Errors
    /// `State`: there is no such channel (any more). So for every function
    /// that takes a [`ChannelId`].
    pub fn close(&mut self, id: ChannelId) -> Result<()> {
        self.channel(id)?;
        self.slots[id.slot as usize].channel = None;
        if !self
            .channels()
            .any(|channel| channel.kind == Kind::Interactive)
        {
            self.typed_us = None;
        }
        while self.slots.last().is_some_and(|slot| slot.channel.is_none()) {
            self.slots.pop();
        }
        Ok(())
    }

    /// `bytes` of data arrived from the peer. More than its credit is counted
    /// as backlog and leaves it 0 credit.
    pub fn received(&mut self, id: ChannelId, now_us: u64, bytes: u32) -> Result<()> {
        self.advance(now_us);
        let now_us = self.now_us;
        let channel = self.channel_mut(id)?;
        channel.receive(now_us, bytes);
        if channel.kind == Kind::Interactive {
            self.typed_us = Some(now_us);
        }
        self.totals.received = self.totals.received.saturating_add(u64::from(bytes));
        Ok(())
    }

    /// The host handed `bytes` of received data on, or dropped them.
    ///
    /// # Errors
    /// `State`: more than the backlog; nothing changes.
    pub fn consumed(&mut self, id: ChannelId, now_us: u64, bytes: u32) -> Result<()> {
        self.channel_mut(id)?.consume(bytes)?;
        self.totals.consumed = self.totals.consumed.saturating_add(u64::from(bytes));
        self.advance(now_us);
        Ok(())
    }

    /// The increment to send in `SSH_MSG_CHANNEL_WINDOW_ADJUST` now, in bytes;
    /// 0: send nothing. What is returned counts as granted: a host that cannot
    /// send it now sends the same number later.
    pub fn adjust(&mut self, id: ChannelId, now_us: u64) -> Result<u32> {
        self.advance(now_us);
        self.tune(id)?;
        let room = match self.channel(id)?.required {
            0 => 0,
            _ => self.room(id)?,
        };
        let cap = self.peer_cap;
        let channel = self.channel_mut(id)?;
        let increment = channel.due(cap, room);
        if increment > 0 {
            channel.grant(increment, WINDOW_LIMIT)?;
            channel.adjusts = channel.adjusts.saturating_add(1);
            channel.required = 0;
        }
        Ok(increment)
    }

    /// The host gives `bytes` of credit by itself (libssh2's
    /// `libssh2_channel_receive_window_adjust2`).
    ///
    /// # Errors
    /// `InvalidArgument`: the peer's credit would pass its cap or
    /// [`WINDOW_LIMIT`]; nothing is counted, and nothing should be sent.
    pub fn granted(&mut self, id: ChannelId, now_us: u64, bytes: u32) -> Result<()> {
        self.advance(now_us);
        let cap = self.peer_cap;
        self.channel_mut(id)?.grant(bytes, cap)
    }

    /// The host wants the peer to have at least `bytes` of credit after the
    /// next [`adjust`](Self::adjust), for instance because it is asked to read
    /// that much. Granted as far as the peer's cap and the budget allow.
    pub fn require(&mut self, id: ChannelId, bytes: u32) -> Result<()> {
        let channel = self.channel_mut(id)?;
        channel.required = bytes.min(WINDOW_LIMIT);
        Ok(())
    }

    /// What the host should plan with now.
    pub fn target(&self, id: ChannelId) -> Result<Target> {
        let channel = self.channel(id)?;
        Ok(Target {
            window: clamp(channel.in_force()),
            outstanding: channel.target,
        })
    }

    /// The channel's state and history.
    pub fn stats(&self, id: ChannelId) -> Result<WindowStats> {
        let channel = self.channel(id)?;
        Ok(WindowStats {
            received: channel.received,
            consumed: channel.consumed,
            granted: channel.granted,
            backlog: channel.backlog,
            window: clamp(channel.in_force()),
            target: channel.target,
            stock: channel.stock,
            credit: channel.credit,
            peer_cap: self.peer_cap,
            min_rtt_us: self.min_rtt.get().unwrap_or(0),
            adjusts: channel.adjusts,
            grows: channel.grows,
            shrinks: channel.shrinks,
            probes: channel.autotune.trials.started,
            reason: channel.reason as u32,
            latency_mode: u32::from(self.latency_mode()),
            rate: channel.autotune.rate(),
        })
    }

    /// Lets the policy look at a channel that is about to get credit, or that
    /// has more than it should.
    fn tune(&mut self, id: ChannelId) -> Result<()> {
        if self.config.policy == Policy::Fixed {
            return Ok(());
        }
        let (path, latency, cap) = (self.min_rtt.path(), self.latency_mode(), self.peer_cap);
        let (now_us, window_max, all) = (self.now_us, self.config.window_max, self.totals);
        let channel = self.channel_mut(id)?;
        if path == Path::Short {
            channel.reset(cap, Reason::Stock);
            return Ok(());
        }
        let shrinking = channel.held() > u64::from(channel.target);
        if !shrinking && channel.due(cap, 0) == 0 {
            return Ok(());
        }
        let peer = Peer {
            cap: window_max.max(channel.stock).min(cap),
            reads_ahead: cap != WINDOW_LIMIT,
        };
        let view = View {
            now_us,
            path,
            sizes: Sizes::new(path, latency, channel.stock, channel.max_packet, peer),
            target: channel.target,
            held: channel.held(),
            backlog: channel.backlog,
            totals: channel.totals(),
            all,
        };
        let change = channel.autotune.evaluate(&view);
        if let Some(change) = change {
            channel.wants = change.target.saturating_sub(channel.stock);
        }
        let change = change.unwrap_or(Change {
            target: channel.target,
            reason: channel.reason,
        });
        let change = self.within_budget(id, change)?;
        self.channel_mut(id)?.head_for(change.target, change.reason);
        Ok(())
    }

    /// The change, or less of it where others want their share of the budget
    /// or hold more than theirs.
    fn within_budget(&mut self, id: ChannelId, change: Change) -> Result<Change> {
        let channel = self.channel(id)?;
        let excess = change.target.saturating_sub(channel.stock);
        if excess == 0 {
            return Ok(change);
        }
        let wants = self.channels().map(|channel| channel.wants);
        let share = fair_share(wants, self.config.budget);
        let left = self.room(id)? - u64::from(channel.stock);
        let allowed = u64::from(share.min(excess)).min(left) as u32;
        if allowed == excess {
            return Ok(change);
        }
        let target = channel.stock + allowed;
        self.channel_mut(id)?.autotune.trials.abandon();
        Ok(Change {
            target,
            reason: Reason::Budget,
        })
    }

    /// How large a channel's window may be beside the others.
    fn room(&self, id: ChannelId) -> Result<u64> {
        let channel = self.channel(id)?;
        let all: u64 = self.channels().map(Channel::excess).sum();
        let others = all - channel.excess();
        let left = self.config.budget.saturating_sub(others);
        Ok(u64::from(channel.stock).saturating_add(left))
    }

    /// Somebody types, on a path where a queue can be felt.
    fn latency_mode(&self) -> bool {
        let typing = self
            .typed_us
            .is_some_and(|typed_us| self.now_us - typed_us < TYPING_US);
        let felt = matches!(self.min_rtt.path(), Path::Long(_));
        let wanted = self.config.latency_mode == LatencyMode::Auto;
        typing && felt && wanted && self.config.policy == Policy::Auto
    }

    fn channels(&self) -> impl Iterator<Item = &Channel> + Clone {
        self.slots.iter().filter_map(|slot| slot.channel.as_ref())
    }

    fn advance(&mut self, now_us: u64) {
        self.now_us = self.now_us.max(now_us);
    }

    fn channel(&self, id: ChannelId) -> Result<&Channel> {
        let slot = self
            .slots
            .get(id.slot as usize)
            .filter(|slot| slot.serial == id.serial);
        slot.and_then(|slot| slot.channel.as_ref())
            .ok_or(Error::State)
    }

    fn channel_mut(&mut self, id: ChannelId) -> Result<&mut Channel> {
        let slot = self
            .slots
            .get_mut(id.slot as usize)
            .filter(|slot| slot.serial == id.serial);
        slot.and_then(|slot| slot.channel.as_mut())
            .ok_or(Error::State)
    }
}

fn clamp(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}
