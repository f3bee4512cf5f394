#![forbid(unsafe_code)]
//! What the controller knows about a wire before it has seen any data on it.

use super::Effort;

/// Kinds of payload that the probe tells apart. Costs and ratios are learned
/// for each of them.
pub const CLASSES: usize = 4;
/// Most candidates that a wire may have.
pub const MAX_RUNGS: usize = 8;

/// One candidate of a wire, with what it costs and gains on typical data.
///
/// The figures are starting points, from one core of a 3 GHz x86-64 machine;
/// the controller corrects them from the first packets on.
#[derive(Debug)]
pub struct Rung {
    /// What is done with a packet.
    pub effort: Effort,
    /// Nanoseconds per payload byte, for each class.
    pub cost: [f32; CLASSES],
    /// Bytes on the wire per payload byte, for each class.
    pub ratio: [f32; CLASSES],
    /// Time to decode over time to encode.
    pub decode: f32,
    /// Extra bytes on the wire until a stream that begins without a history
    /// packs as well as one in the middle.
    pub cold_bytes: f32,
}

/// A wire and its candidates.
#[derive(Debug)]
pub struct Wire {
    /// The candidates, cheapest first; the first one is `Stored`.
    pub rungs: &'static [Rung],
    /// What a packet of a few bytes gets: the effort that makes it shortest.
    pub small: Effort,
}

const fn rung(
    effort: Effort,
    cost: [f32; CLASSES],
    ratio: [f32; CLASSES],
    decode: f32,
    cold_bytes: f32,
) -> Rung {
    Rung {
        effort,
        cost,
        ratio,
        decode,
        cold_bytes,
    }
}

const STORED: Rung = rung(Effort::Stored, [0.07; CLASSES], [1.0; CLASSES], 1.0, 0.0);

/// The zlib wire: the level changes at every packet for nothing, and a short
/// packet is shortest in fixed Huffman codes.
pub const ZLIB: Wire = Wire {
    rungs: &[
        STORED,
        rung(
            Effort::Level(1),
            [25.0, 23.0, 9.0, 2.4],
            [0.9, 0.82, 0.26, 0.021],
            0.32,
            0.0,
        ),
        rung(
            Effort::Level(6),
            [30.0, 37.0, 28.0, 8.0],
            [0.9, 0.80, 0.214, 0.011],
            0.12,
            0.0,
        ),
        rung(
            Effort::Level(9),
            [30.0, 45.0, 55.0, 45.0],
            [0.9, 0.795, 0.21, 0.009],
            0.05,
            0.0,
        ),
    ],
    small: Effort::Level(1),
};

/// The zstd wire: stored packets cost one byte at any moment, but a level that
/// was not in use begins a frame without history.
pub const ZSTD: Wire = Wire {
    rungs: &[
        STORED,
        rung(
            Effort::Level(-1),
            [0.5, 1.4, 3.1, 0.54],
            [0.9, 0.93, 0.285, 0.0137],
            0.3,
            2.6e3,
        ),
        rung(
            Effort::Level(1),
            [1.0, 2.7, 3.2, 0.55],
            [0.9, 0.84, 0.24, 0.0137],
            0.33,
            2.6e3,
        ),
        rung(
            Effort::Level(3),
            [2.4, 4.6, 6.4, 0.76],
            [0.9, 0.81, 0.22, 0.0118],
            0.23,
            8.5e3,
        ),
        rung(
            Effort::Level(6),
            [3.2, 8.5, 15.0, 1.73],
            [0.9, 0.79, 0.19, 0.0088],
            0.08,
            15e3,
        ),
        rung(
            Effort::Level(9),
            [5.4, 14.0, 27.0, 2.8],
            [0.9, 0.78, 0.18, 0.0084],
            0.05,
            26e3,
        ),
    ],
    small: Effort::Stored,
};
