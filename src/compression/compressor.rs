#![forbid(unsafe_code)]
//! One direction of a connection, sending: the effort of each packet is chosen
//! and carried out here.

use std::time::Instant;

use super::effort::{self, Controller, Effort, KernelState, Limits, Outcome, Situation};
use super::payload::{Payload, MAX_LEN};
use super::probe::probe;
use super::zlib_engine::Deflater;
use super::{zlib, zstd, Encoded, Method};
use crate::capi::alloc::Account;
use crate::config::Config;
use crate::stats::{CompressStats, LEVEL_COUNT, LEVEL_MIN, LEVEL_NONE};
use crate::{Error, Result};

/// What the host says of one packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags {
    /// Latency comes first.
    pub interactive: bool,
    /// Stored, and in no history that later packets are matched against.
    pub secret: bool,
    /// Packets of different groups share no history.
    pub group: u16,
}

impl Flags {
    const INTERACTIVE: u32 = 1;
    const SECRET: u32 = 2;
    const GROUP_SHIFT: u32 = 8;
    const KNOWN: u32 = Self::INTERACTIVE | Self::SECRET | 0xffff << Self::GROUP_SHIFT;

    /// The flags of the C interface.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for bits that mean nothing.
    pub fn from_bits(bits: u32) -> Result<Flags> {
        if bits & !Self::KNOWN != 0 {
            return Err(Error::InvalidArgument);
        }
        Ok(Flags {
            interactive: bits & Self::INTERACTIVE != 0,
            secret: bits & Self::SECRET != 0,
            group: (bits >> Self::GROUP_SHIFT) as u16,
        })
    }
}

/// The room that [`Compressor::compress`] asks for; 0 for a payload that is
/// longer than any compressor takes (1 GiB).
pub fn compress_bound(method: Method, payload_len: usize) -> usize {
    if payload_len > MAX_LEN {
        return 0;
    }
    match method {
        Method::None => payload_len,
        Method::Zlib | Method::ZlibDelayed => zlib::bound(payload_len),
        Method::Zstd => zstd::bound(payload_len),
    }
}

enum Wire {
    None,
    Zlib(zlib::Encoder<Deflater>),
    Zstd(zstd::Encoder),
}

impl Wire {
    fn new(method: Method, account: &Account) -> Self {
        match method {
            Method::None => Wire::None,
            Method::Zlib | Method::ZlibDelayed => Wire::Zlib(zlib::Encoder::new(account.clone())),
            Method::Zstd => Wire::Zstd(zstd::Encoder::new(account.clone())),
        }
    }

    fn controller(&self, config: &Config) -> Controller {
        let (wire, highest_level) = match self {
            Wire::Zstd(encoder) => (&effort::ZSTD, encoder.level_in_memory(19)),
            Wire::None | Wire::Zlib(_) => (&effort::ZLIB, 9),
        };
        let limits = Limits {
            max_packet_time_us: config.max_packet_time_us(),
            highest_level,
        };
        Controller::new(wire, limits)
    }

    /// What a fixed level means on this wire.
    fn fixed(&self, level: i8) -> Effort {
        let level = match self {
            Wire::Zlib(_) => level.clamp(0, 9),
            Wire::None | Wire::Zstd(_) => level,
        };
        if level == 0 {
            Effort::Stored
        } else {
            Effort::Level(level)
        }
    }

    fn encode<'a, I>(
        &mut self,
        payload: &Payload<I>,
        effort: Effort,
        group: u16,
        out: &mut [u8],
    ) -> Encoded
    where
        I: Iterator<Item = &'a [u8]> + Clone,
    {
        match self {
            Wire::None => {
                payload.copy_to(out);
                Encoded {
                    len: payload.len(),
                    effort: Effort::Stored,
                }
            }
            Wire::Zlib(encoder) => encoder.encode(payload, effort, group, out),
            Wire::Zstd(encoder) => encoder.encode(payload, effort, group, out),
        }
    }
}

/// Monotonic time since the compressor was made, or a clock given by a test.
struct Clock {
    start: Instant,
    replacement: Option<fn() -> u64>,
}

impl Clock {
    fn now_ns(&self) -> u64 {
        match self.replacement {
            Some(clock) => clock(),
            None => self.start.elapsed().as_nanos() as u64,
        }
    }
}

/// Compresses the payloads of one direction, for one method and key epoch at a
/// time.
pub struct Compressor {
    method: Method,
    config: Config,
    wire: Wire,
    account: Account,
    controller: Controller,
    clock: Clock,
    /// The group of the latest packet.
    group: u16,
    spent_ns: u64,
    /// Payload bytes that went out stored, and with each level.
    stored_bytes: u64,
    level_bytes: [u64; LEVEL_COUNT],
    totals: CompressStats,
}

impl Compressor {
    /// A compressor at the start of a wire stream. Cheap: the engines are
    /// allocated by the first packet that needs them.
    ///
    /// # Errors
    /// [`Error::NoMemory`].
    pub fn new(method: Method, config: &Config) -> Result<Compressor> {
        let account = Account::new(config.memory_limit())?;
        let wire = Wire::new(method, &account);
        let level = config.level().map_or(LEVEL_NONE, i32::from);
        Ok(Compressor {
            method,
            config: config.clone(),
            controller: wire.controller(config),
            wire,
            account,
            clock: Clock {
                start: Instant::now(),
                replacement: None,
            },
            group: 0,
            spent_ns: 0,
            stored_bytes: 0,
            level_bytes: [0; LEVEL_COUNT],
            totals: CompressStats::new(method as i32, level),
        })
    }

    /// Replaces the monotonic clock (nanoseconds), so that the choice of effort
    /// can be repeated exactly.
    pub fn set_clock(&mut self, clock: fn() -> u64) {
        self.clock.replacement = Some(clock);
    }

    /// Compresses one payload, given in parts, into `out`, and returns the
    /// bytes written. The peer can decode them as soon as they arrive.
    ///
    /// # Errors
    /// [`Error::BufferTooSmall`] if `out` has less room than
    /// [`compress_bound`] says, [`Error::InvalidArgument`] for an empty
    /// payload, [`Error::TooLarge`] for one over 1 GiB. The wire is untouched
    /// then, and the call can be repeated.
    pub fn compress<'a, I>(&mut self, parts: I, flags: Flags, out: &mut [u8]) -> Result<usize>
    where
        I: IntoIterator<Item = &'a [u8]>,
        I::IntoIter: Clone,
    {
        let payload = Payload::new(parts.into_iter())?;
        if out.len() < compress_bound(self.method, payload.len()) {
            return Err(Error::BufferTooSmall);
        }
        let group = if self.config.isolation() {
            flags.group
        } else {
            0
        };
        if group != self.group {
            self.group = group;
            self.controller.group_changed();
        }
        let start = self.clock.now_ns();
        let tried = self.choose(&payload, flags, start);
        let encoded = self.wire.encode(&payload, tried, group, out);
        let spent_ns = self.clock.now_ns().saturating_sub(start);
        self.controller.observe(&Outcome {
            effort: encoded.effort,
            tried,
            payload_len: payload.len(),
            wire_len: encoded.len,
            spent_ns,
        });
        self.count(payload.len(), &encoded, spent_ns);
        Ok(encoded.len)
    }

    fn choose<'a, I>(&mut self, payload: &Payload<I>, flags: Flags, now_ns: u64) -> Effort
    where
        I: Iterator<Item = &'a [u8]> + Clone,
    {
        if flags.secret || self.method == Method::None {
            return Effort::Stored;
        }
        if let Some(level) = self.config.level() {
            return self.wire.fixed(level);
        }
        let situation = Situation {
            now_ns,
            payload_len: payload.len(),
            interactive: flags.interactive,
        };
        self.controller
            .choose(&situation, || probe(payload.longest_part()))
    }

    fn count(&mut self, raw: usize, encoded: &Encoded, spent_ns: u64) {
        let totals = &mut self.totals;
        totals.raw_bytes += raw as u64;
        totals.wire_bytes += encoded.len as u64;
        totals.packets += 1;
        self.spent_ns += spent_ns;
        let level = match encoded.effort {
            Effort::Stored => {
                totals.stored_packets += 1;
                self.stored_bytes += raw as u64;
                LEVEL_NONE
            }
            Effort::Level(level) => {
                let at = usize::from(level.abs_diff(LEVEL_MIN));
                if let Some(packets) = totals.level_packets.get_mut(at) {
                    *packets += 1;
                    self.level_bytes[at] += raw as u64;
                }
                level.into()
            }
        };
        if totals.packets > 1 && level != totals.last_level {
            totals.effort_changes += 1;
        }
        totals.last_level = level;
    }

    /// What the host knows for free: the bytes waiting in its own output queue
    /// (`None`: not known), and whether the peer's channel window is what holds
    /// the sender. Optional.
    pub fn feedback(&mut self, queued: Option<usize>, window_limited: bool) {
        self.controller.feedback(queued, window_limited);
    }

    /// Whether it is time to pass on what the kernel says, at `now_us` of the
    /// host's monotonic clock in microseconds. Never where nothing is chosen.
    pub fn kernel_due(&self, now_us: u64) -> bool {
        self.method != Method::None
            && self.config.level().is_none()
            && self.controller.kernel_due(now_us)
    }

    /// What the host's kernel says of the connection. Optional.
    pub fn kernel(&mut self, state: KernelState) {
        self.controller.kernel(state);
    }

    /// Begins a fresh wire stream for a new key epoch, perhaps with another
    /// method. What was learned, and the totals, stay.
    pub fn rekey(&mut self, method: Method) {
        match &mut self.wire {
            Wire::Zlib(encoder) if method.is_zlib() => encoder.restart(),
            Wire::Zstd(encoder) if method == Method::Zstd => encoder.restart(),
            wire => {
                *wire = Wire::new(method, &self.account);
                self.controller = wire.controller(&self.config);
            }
        }
        self.controller.rekeyed();
        self.method = method;
        self.totals.method = method as i32;
    }

    /// The method in use.
    pub fn method(&self) -> Method {
        self.method
    }

    /// The level that most payload bytes were sent with.
    fn main_level(&self) -> i32 {
        let levels = i32::from(LEVEL_MIN)..;
        let by_level = levels.zip(self.level_bytes);
        let stored = (LEVEL_NONE, self.stored_bytes);
        std::iter::once(stored)
            .chain(by_level)
            .max_by_key(|&(level, bytes)| (bytes, std::cmp::Reverse(level)))
            .map_or(LEVEL_NONE, |(level, _)| level)
    }

    /// The totals since the compressor was made, and what was chosen and why.
    pub fn stats(&self) -> CompressStats {
        let summary = self.controller.summary();
        CompressStats {
            main_level: self.main_level(),
            pace: summary.pace as i32,
            link_bytes_per_s: summary.link_bytes_per_s,
            spent_us: self.spent_ns / 1000,
            memory_bytes: self.account.used() as u64,
            memory_peak_bytes: self.account.peak() as u64,
            ..self.totals
        }
    }
}
