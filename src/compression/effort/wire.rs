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
    /// Nanoseconds per payload byte to decode it.
    pub decode: [f32; CLASSES],
    /// Bytes on the wire per payload byte, for each class.
    pub ratio: [f32; CLASSES],
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
    /// Packets that get the same effort in a row where two efforts are mixed.
    pub run: u8,
    /// What levels lose that know nothing of each other's packets: by this share
    /// the bytes grow for what is packed with another level than most is. Chosen
    /// with the simulator; 0 where all levels share one history.
    pub split: f32,
}

/// One line of a wire's table.
const fn rung(
    level: i8,
    cost: [f32; CLASSES],
    decode: [f32; CLASSES],
    ratio: [f32; CLASSES],
    cold_bytes: f32,
) -> Rung {
    Rung {
        effort: Effort::Level(level),
        cost,
        decode,
        ratio,
        cold_bytes,
    }
}

const STORED: Rung = Rung {
    effort: Effort::Stored,
    cost: [0.07; CLASSES],
    decode: [0.07; CLASSES],
    ratio: [1.0; CLASSES],
    cold_bytes: 0.0,
};

// Hoping for a tenth where the probe hopes for nothing (ratio 0.9 in the first
// class) lets a wrong probe be found out.

/// The zlib wire: the level changes at every packet for nothing, and a short
/// packet is shortest in fixed Huffman codes.
#[rustfmt::skip]
pub const ZLIB: Wire = Wire {
    rungs: &[
        STORED,
        rung(1, [25.0, 23.0,  9.0,  2.4], [0.5, 6.0, 3.0, 0.8], [0.9, 0.820, 0.260, 0.021], 0.0),
        rung(6, [30.0, 37.0, 28.0,  8.0], [0.5, 6.0, 3.2, 2.0], [0.9, 0.800, 0.214, 0.011], 0.0),
        rung(9, [30.0, 45.0, 55.0, 45.0], [0.5, 6.0, 2.9, 1.7], [0.9, 0.795, 0.210, 0.009], 0.0),
    ],
    small: Effort::Level(1),
    // After a stored packet the engine begins with an empty history.
    run: 8,
    split: 0.0,
};

/// The zstd wire: stored packets cost one byte at any moment, but a level that
/// was not in use begins a frame without history.
#[rustfmt::skip]
pub const ZSTD: Wire = Wire {
    rungs: &[
        STORED,
        rung(-1, [0.5,  1.4,  3.1, 0.54], [0.2, 0.7, 1.1, 0.34], [0.9, 0.93, 0.285, 0.0137], 2.6e3),
        rung(1,  [1.0,  2.7,  3.2, 0.55], [0.2, 1.1, 1.1, 0.34], [0.9, 0.84, 0.240, 0.0137], 2.6e3),
        rung(3,  [2.4,  4.6,  6.4, 0.76], [0.4, 1.3, 1.6, 0.44], [0.9, 0.81, 0.220, 0.0118], 8.5e3),
        rung(6,  [3.2,  8.5, 15.0, 1.73], [0.4, 1.3, 1.4, 0.39], [0.9, 0.79, 0.190, 0.0088], 15e3),
        rung(9,  [5.4, 14.0, 27.0, 2.80], [0.5, 1.3, 1.4, 0.54], [0.9, 0.78, 0.180, 0.0084], 26e3),
    ],
    small: Effort::Stored,
    run: 1,
    split: 0.12,
};
