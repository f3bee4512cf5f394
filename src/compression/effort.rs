#![forbid(unsafe_code)]
//! Choosing the effort: how hard each packet is worth packing.
//!
//! Pure: no clock, no input or output, no allocation. The codec tells the
//! controller the time and what a packet cost; the controller answers what to
//! do with the next one.

use super::probe::Probe;

/// What is done with one packet on the wire in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effort {
    /// The payload goes out as it is.
    Stored,
    /// The engine packs it: 1 to 9 on the zlib wire, -7 to 19 on the zstd wire.
    Level(i8),
}

/// What the controller has to know about a wire.
#[derive(Debug)]
pub struct Wire {
    /// The candidates, cheapest first, `Stored` among them.
    pub ladder: &'static [Effort],
    /// What a packet of a few bytes gets: the effort that makes it shortest.
    pub small: Effort,
    /// Whether a change between two levels ends a frame and loses its history.
    pub level_change_loses_history: bool,
}

/// The zlib wire: the level changes at every packet for nothing, and a short
/// packet is shortest in fixed Huffman codes.
pub const ZLIB: Wire = Wire {
    ladder: &[
        Effort::Stored,
        Effort::Level(1),
        Effort::Level(6),
        Effort::Level(9),
    ],
    small: Effort::Level(1),
    level_change_loses_history: false,
};

/// The zstd wire: stored packets cost one byte at any moment.
pub const ZSTD: Wire = Wire {
    ladder: &[
        Effort::Stored,
        Effort::Level(-1),
        Effort::Level(1),
        Effort::Level(3),
        Effort::Level(6),
        Effort::Level(9),
    ],
    small: Effort::Stored,
    level_change_loses_history: true,
};

/// Bounds that the configuration sets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// No packet shall keep the engine busy for longer than this.
    pub max_packet_time_us: u32,
    /// The highest level whose engine fits into the memory limit.
    pub highest_level: i8,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            max_packet_time_us: 20_000,
            highest_level: i8::MAX,
        }
    }
}

/// What is known when a packet comes in. All times are of one clock, the
/// codec's own monotonic one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Situation {
    /// Monotonic clock at the entry of `compress`, nanoseconds.
    pub now_ns: u64,
    /// Length of the payload in bytes.
    pub payload_len: usize,
    /// Latency comes first for this packet.
    pub interactive: bool,
}

/// What became of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// What was really done in the end.
    pub effort: Effort,
    /// What was tried first. Differs from `effort` when the attempt did not
    /// shrink the packet and it went out stored.
    pub tried: Effort,
    /// Length of the payload in bytes.
    pub payload_len: usize,
    /// Bytes put on the wire for it.
    pub wire_len: usize,
    /// Time spent in the engine, the failed attempt included, nanoseconds.
    pub spent_ns: u64,
}

/// Decides the effort of every packet of one direction of one connection.
#[derive(Debug)]
pub struct Controller {
    wire: &'static Wire,
    limits: Limits,
    rung: usize,
    pressure: i32,
    queued: Option<usize>,
    window_limited: bool,
}

/// Shorter packets are not worth any thought.
const SMALL_PACKET: usize = 128;
/// A queue this long says that the socket takes no more.
const FULL_QUEUE: usize = 64 * 1024;
/// Probes below this ratio are worth an attempt.
const WORTH_PACKING: f32 = 0.95;

impl Controller {
    /// A controller for one direction, before its first packet.
    pub fn new(wire: &'static Wire, limits: Limits) -> Self {
        Controller {
            wire,
            limits,
            rung: 1,
            pressure: 0,
            queued: None,
            window_limited: false,
        }
    }

    /// What the host knows: the bytes waiting in its own output queue (`None`:
    /// not known) and whether the peer's channel window holds the sender.
    pub fn feedback(&mut self, _now_us: u64, queued: Option<usize>, window_limited: bool) {
        self.queued = queued;
        self.window_limited = window_limited;
    }

    /// The effort for the next packet. `sample` looks at the payload; it is
    /// called at most once, and only if the answer matters.
    pub fn choose(&mut self, situation: &Situation, sample: impl FnOnce() -> Probe) -> Effort {
        if situation.payload_len < SMALL_PACKET || situation.interactive {
            return self.wire.small;
        }
        self.follow_queue();
        if sample().ratio > WORTH_PACKING {
            return Effort::Stored;
        }
        self.wire.ladder[self.rung]
    }

    /// Learns from a packet. Call it once after every packet, chosen or not.
    pub fn observe(&mut self, _outcome: &Outcome) {}

    /// A fresh wire stream begins (key exchange). What was learned stays.
    pub fn rekeyed(&mut self) {}

    /// The level that the next large packet is likely to need, so that its
    /// engine can be made ready before.
    pub fn likely(&self) -> Effort {
        self.wire.ladder[self.rung]
    }

    fn follow_queue(&mut self) {
        let Some(queued) = self.queued else { return };
        if self.window_limited {
            return;
        }
        self.pressure += if queued >= FULL_QUEUE { 1 } else { -1 };
        if self.pressure > 32 {
            self.pressure = 0;
            let next = (self.rung + 1).min(self.wire.ladder.len() - 1);
            if matches!(self.wire.ladder[next], Effort::Level(l) if l <= self.limits.highest_level)
            {
                self.rung = next;
            }
        } else if self.pressure < -32 {
            self.pressure = 0;
            self.rung = self.rung.saturating_sub(1);
        }
    }
}
