#![forbid(unsafe_code)]
//! What a packet costs the host outside the engine: reading the payload,
//! cipher, MAC and write. Fitted as `a + b × ratio` nanoseconds per byte from
//! the gaps between packets.

/// Share of the past that a new sample leaves.
const FORGET: f32 = 0.985;
/// Weight of the belief that half of a stored packet's cost goes with the
/// bytes on the wire.
const SLOPE_TRUST: f32 = 0.05;
/// A gap beyond this multiple of the expected one counts as this multiple.
const CLIP: f32 = 3.0;
/// Nor does any host need more, nanoseconds per byte: the rest was waiting.
const MOST: f32 = 100.0;

#[derive(Clone, Copy, Debug)]
pub struct HostCost {
    n: f32,
    x: f32,
    y: f32,
    xx: f32,
    xy: f32,
    /// Nanoseconds per payload byte.
    pub per_byte: f32,
    /// Nanoseconds per byte on the wire.
    pub per_wire_byte: f32,
}

impl HostCost {
    pub fn new() -> Self {
        HostCost {
            n: 0.0,
            x: 0.0,
            y: 0.0,
            xx: 0.0,
            xy: 0.0,
            per_byte: 2.3,
            per_wire_byte: 2.0,
        }
    }

    /// Nanoseconds per payload byte at this ratio.
    pub fn at(&self, ratio: f32) -> f32 {
        self.per_byte + self.per_wire_byte * ratio
    }

    /// A gap of `ns` nanoseconds followed a packet of `len` bytes that went
    /// out with `ratio`.
    pub fn learn(&mut self, len: f32, ratio: f32, ns: f32) {
        let x = ratio.min(1.0);
        let mut y = (ns / len).min(MOST);
        if self.n >= 1.0 {
            y = y.min(CLIP * self.at(x));
        }
        self.n = self.n * FORGET + 1.0;
        self.x = self.x * FORGET + x;
        self.y = self.y * FORGET + y;
        self.xx = self.xx * FORGET + x * x;
        self.xy = self.xy * FORGET + x * y;
        let (mx, my) = (self.x / self.n, self.y / self.n);
        let var = (self.xx / self.n - mx * mx).max(0.0);
        let cov = self.xy / self.n - mx * my;
        let trust = SLOPE_TRUST / self.n.min(20.0);
        let believed = my / (1.0 + mx);
        let slope = ((cov + trust * believed) / (var + trust))
            .clamp(0.1 * believed, 0.95 * my / mx.max(0.05));
        self.per_wire_byte = slope;
        self.per_byte = (my - slope * mx).max(0.02 * my);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_parts_are_found() {
        let mut host = HostCost::new();
        for i in 0..400 {
            let ratio = if i % 2 == 0 { 1.0 } else { 0.2 };
            host.learn(32_768.0, ratio, 32_768.0 * (3.0 + 5.0 * ratio));
        }
        assert!((host.per_byte - 3.0).abs() < 0.4, "{host:?}");
        assert!((host.per_wire_byte - 5.0).abs() < 0.6, "{host:?}");
    }

    #[test]
    fn a_stall_counts_little() {
        let mut host = HostCost::new();
        for i in 0..200 {
            let stall = if i % 50 == 49 { 80e6 } else { 0.0 };
            host.learn(32_768.0, 1.0, 32_768.0 * 4.0 + stall);
        }
        assert!(host.at(1.0) < 5.0, "{host:?}");
    }
}
