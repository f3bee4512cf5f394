#![forbid(unsafe_code)]
//! What the codecs and the controller say to each other.

use super::Controller;

/// What is done with one packet on the wire in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effort {
    /// The payload goes out as it is.
    Stored,
    /// The engine packs it: 1 to 9 on the zlib wire, -7 to 19 on the zstd wire.
    Level(i8),
}

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

/// What is known when a packet comes in.
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
    /// Time from the entry of `compress` to its end, nanoseconds.
    pub spent_ns: u64,
}

/// What sets the pace of a connection, as far as its sender can tell. The
/// numbers are those of the C interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// Too little was sent to tell.
    Unknown = 0,
    /// Our own CPU, or the source of the data.
    Sender = 1,
    /// The link.
    Link = 2,
    /// The peer's CPU.
    Peer = 3,
    /// The peer's channel window.
    Window = 4,
}

/// What was chosen and why, for `-v` and the statistics.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Summary {
    /// The effort that most of the recent payload got.
    pub effort: Effort,
    /// What sets the pace.
    pub pace: Pace,
    /// Bytes per second that the link is believed to carry; 0 while the socket
    /// was never full.
    pub link_bytes_per_s: u64,
    /// How often the effort that most of the payload got has changed.
    pub changes: u64,
}

/// The controller's beliefs in one line.
pub(super) struct Explanation<'a>(pub(super) &'a Controller);

impl std::fmt::Display for Explanation<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let c = self.0;
        let load = c.prices().load(&c.plan);
        write!(
            f,
            "{:?} B {:.2} P {:.2} x {:.2}/{:.2} w {:.2} h {:.2}+{:.2}; S {:.1} L {:.1} P {:.1};",
            c.pace,
            1e3 / c.downstream.link_ns(),
            c.downstream.peer(),
            c.engine_stretch,
            c.host_stretch,
            c.wire_miss,
            c.host.per_byte,
            c.host.per_wire_byte,
            load.sender,
            load.link,
            load.peer,
        )?;
        for (k, share) in c.plan.iter().enumerate() {
            if c.weight[k] > 0.03 {
                let name = |rung: u8| c.effort(usize::from(rung));
                write!(f, " [{k}: {:.2} {:?}", c.weight[k], name(share.base))?;
                if share.share > 0.0 {
                    write!(f, "+{:.2} {:?}", share.share, name(share.extra))?;
                }
                write!(f, "]")?;
            }
        }
        Ok(())
    }
}
