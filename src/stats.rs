#![forbid(unsafe_code)]
//! What compressors and decompressors tell of themselves. The structures are
//! part of the C ABI: fields are only ever added at the end.

/// The number that stands for "stored" and for "auto" where a level is told.
pub const LEVEL_NONE: i32 = i32::MIN;
/// The lowest level of any wire.
pub const LEVEL_MIN: i8 = -7;
/// The levels from [`LEVEL_MIN`] to 19.
pub const LEVEL_COUNT: usize = (19 - LEVEL_MIN + 1) as usize;

/// Totals of one compressor since it was made; a re-key does not reset them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct CompressStats {
    /// Payload bytes taken.
    pub raw_bytes: u64,
    /// Bytes handed out for them.
    pub wire_bytes: u64,
    /// Payloads taken.
    pub packets: u64,
    /// Payloads that went out stored.
    pub stored_packets: u64,
    /// Time spent on them, in microseconds of the monotonic clock.
    pub spent_us: u64,
    /// How often the effort of a packet was not that of the packet before.
    pub effort_changes: u64,
    /// Bytes that the engines hold now.
    pub memory_bytes: u64,
    /// The most bytes that the engines ever held.
    pub memory_peak_bytes: u64,
    /// The method in use, an `SSHFLOW_METHOD_` number.
    pub method: i32,
    /// The level configured; INT32_MIN: auto.
    pub level: i32,
    /// The level of the latest packet; INT32_MIN: stored, or none yet. With a
    /// fixed level that does not fit `memory_limit`, the lower one that ran.
    pub last_level: i32,
    /// How many entries of `level_packets` there are.
    pub level_count: u32,
    /// Packets by level; the first entry is level -7, the eighth level 0.
    // The number stands here as such for the C header.
    pub level_packets: [u64; 27],
    /// The level that most payload bytes were sent with, of all levels and of
    /// stored; INT32_MIN: stored, or no packet yet. With a fixed level that
    /// does not fit `memory_limit`, the lower one that ran.
    pub main_level: i32,
    /// What sets the pace of the connection at present, an `SSHFLOW_PACE_`
    /// number. With a fixed level SSHFLOW_PACE_UNKNOWN.
    pub pace: i32,
    /// Bytes per second that the link is believed to carry, counted after
    /// compression; 0: not known, because the socket was never full, or the
    /// level is fixed. A peer slower than the link hides how fast that is.
    pub link_bytes_per_s: u64,
}

impl CompressStats {
    pub(crate) const fn new(method: i32, level: i32) -> Self {
        CompressStats {
            raw_bytes: 0,
            wire_bytes: 0,
            packets: 0,
            stored_packets: 0,
            spent_us: 0,
            effort_changes: 0,
            memory_bytes: 0,
            memory_peak_bytes: 0,
            method,
            level,
            last_level: LEVEL_NONE,
            level_count: LEVEL_COUNT as u32,
            level_packets: [0; LEVEL_COUNT],
            main_level: LEVEL_NONE,
            pace: 0,
            link_bytes_per_s: 0,
        }
    }
}

/// Totals of one decompressor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct DecompressStats {
    /// Bytes taken from the wire.
    pub wire_bytes: u64,
    /// Payload bytes handed out.
    pub raw_bytes: u64,
    /// Payloads handed out whole.
    pub packets: u64,
    /// Bytes that the decoders hold now.
    pub memory_bytes: u64,
    /// The most bytes that the decoders ever held.
    pub memory_peak_bytes: u64,
    /// The method in use, an `SSHFLOW_METHOD_` number.
    pub method: i32,
    /// Zero.
    pub reserved: i32,
}
