//! What the engines cost on which data: the table of measured speeds, with the
//! scatter from packet to packet that real data has.

use crate::random::Random;
use sshflow::compression::effort::Effort;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WireKind {
    Zlib,
    Zstd,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Data {
    Syslog,
    Raster,
    VmImage,
    Random,
    SourceTar,
    Zeros,
    /// Barely compressible: object code, encoded media.
    Dense,
}

/// Compress MB/s, decompress MB/s, ratio (raw / packed).
type Speed = (f64, f64, f64);

/// The fixed choices of a wire.
pub fn fixed_choices(wire: WireKind) -> &'static [Effort] {
    use Effort::{Level, Stored};
    match wire {
        WireKind::Zlib => &[Stored, Level(1), Level(6), Level(9)],
        WireKind::Zstd => &[Stored, Level(-1), Level(1), Level(3), Level(6), Level(9)],
    }
}

/// Speeds of every level of `fixed_choices`, without `Stored`.
fn table(wire: WireKind, data: Data) -> &'static [Speed] {
    use Data::{Dense, Random, Raster, SourceTar, Syslog, VmImage, Zeros};
    match (wire, data) {
        (WireKind::Zlib, Syslog) => &[(120., 345., 3.9), (40., 312., 4.7), (24., 353., 4.7)],
        (WireKind::Zlib, Raster) => &[(424., 1207., 49.), (123., 484., 93.), (20., 606., 114.)],
        (WireKind::Zlib, VmImage) => &[(89., 328., 3.3), (28., 329., 3.7), (8., 297., 3.7)],
        (WireKind::Zlib, Random) => &[(39., 1991., 1.0), (33., 1858., 1.0), (36., 1962., 1.0)],
        (WireKind::Zlib, SourceTar) => &[(108., 325., 4.1), (30., 293., 4.9), (16., 356., 5.0)],
        (WireKind::Zlib, Zeros) => &[
            (520., 1500., 200.),
            (300., 1400., 900.),
            (290., 1400., 900.),
        ],
        (WireKind::Zlib, Dense) => &[(42., 160., 1.25), (26., 165., 1.28), (22., 165., 1.28)],
        (WireKind::Zstd, Syslog) => &[
            (237., 816., 3.5),
            (292., 986., 4.6),
            (128., 511., 4.6),
            (54., 659., 5.0),
            (31., 756., 5.2),
        ],
        (WireKind::Zstd, Raster) => &[
            (1865., 2920., 73.),
            (1829., 2969., 73.),
            (1315., 2275., 85.),
            (578., 2551., 113.),
            (354., 1846., 119.),
        ],
        (WireKind::Zstd, VmImage) => &[
            (409., 1166., 3.1),
            (355., 1013., 3.5),
            (187., 828., 3.8),
            (78., 774., 4.0),
            (39., 546., 4.1),
        ],
        (WireKind::Zstd, Random) => &[
            (2308., 5047., 1.0),
            (1052., 4897., 1.0),
            (420., 2772., 1.0),
            (315., 2517., 1.0),
            (184., 1909., 1.0),
        ],
        (WireKind::Zstd, SourceTar) => &[
            (339., 1191., 3.8),
            (272., 919., 4.6),
            (164., 747., 5.2),
            (69., 870., 5.9),
            (43., 667., 6.2),
        ],
        (WireKind::Zstd, Zeros) => &[
            (3000., 5000., 1500.),
            (3000., 5000., 1500.),
            (2500., 5000., 1500.),
            (1500., 5000., 1500.),
            (900., 5000., 1500.),
        ],
        (WireKind::Zstd, Dense) => &[
            (700., 1500., 1.08),
            (380., 900., 1.2),
            (220., 800., 1.24),
            (120., 780., 1.27),
            (70., 750., 1.28),
        ],
    }
}

/// How one engine behaves on one packet, nanoseconds per byte.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    pub pack: f64,
    pub unpack: f64,
    /// Packed size over raw size.
    pub ratio: f64,
}

/// One packet's worth of data: where it sits in the scatter of its kind.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    pub data: Data,
    cost_factor: f64,
    ratio_power: f64,
    /// What the probe will say.
    pub probe: f64,
}

impl Piece {
    pub fn draw(data: Data, random: &mut Random) -> Piece {
        // A disk image is made of pages of several kinds.
        let (data, spread) = match data {
            Data::VmImage => match random.next() % 20 {
                0..=2 => (Data::Zeros, 0.1),
                3..=5 => (Data::Dense, 0.1),
                _ => (Data::VmImage, 0.3),
            },
            Data::Raster => (Data::Raster, 0.4),
            Data::Syslog | Data::Zeros => (data, 0.05),
            _ => (data, 0.15),
        };
        let normal = random.normal();
        let (mean, error) = match data {
            Data::Syslog => (0.45, 0.03),
            Data::Raster => (0.05, 0.03),
            Data::VmImage => (0.45, 0.1),
            Data::Random => (0.99, 0.01),
            Data::SourceTar => (0.45, 0.06),
            Data::Zeros => (0.01, 0.005),
            Data::Dense => (0.85, 0.05),
        };
        let mut probe: f64 = mean + error * random.normal();
        // The probe errs: 1 packet in 1,000 (the real one erred on none of 870).
        if random.next() % 1000 == 0 {
            probe = random.unit();
        }
        Piece {
            data,
            cost_factor: (0.08 * random.normal() + 0.5 * spread * normal).exp(),
            ratio_power: (1.0 - 0.5 * spread * normal).clamp(0.3, 1.6),
            probe: probe.clamp(0.0, 1.0),
        }
    }

    /// What the fixed choice number `rung` (0 is stored) costs on this packet.
    pub fn cost(&self, wire: WireKind, rung: usize) -> Cost {
        if rung == 0 {
            return Cost {
                pack: 0.065,
                unpack: 0.065,
                ratio: 1.0,
            };
        }
        let (pack, unpack, ratio) = table(wire, self.data)[rung - 1];
        Cost {
            pack: self.cost_factor * 1000.0 / pack,
            unpack: self.cost_factor * 1000.0 / unpack,
            ratio: (1.0 / ratio).powf(self.ratio_power).min(1.0),
        }
    }
}

/// Bytes that a stream without history costs more than one with it, by rung.
pub fn cold_bytes(wire: WireKind, rung: usize) -> f64 {
    match (wire, rung) {
        (WireKind::Zlib, _) | (_, 0) => 0.0,
        (WireKind::Zstd, 1 | 2) => 2_600.0,
        (WireKind::Zstd, 3) => 8_500.0,
        (WireKind::Zstd, 4) => 15_000.0,
        (WireKind::Zstd, _) => 26_000.0,
    }
}
