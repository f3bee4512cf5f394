#![forbid(unsafe_code)]
//! A quick look at a payload: will it pack?
//!
//! A deflate attempt on data that does not pack costs a millisecond a packet
//! and gains nothing. The bytes of a few short runs, spread over the payload,
//! tell most such packets apart in less than a microsecond: what packs has an
//! uneven histogram. What repeats itself at a distance but has an even one (a
//! copy of random data) is missed; the controller finds that out by doubting
//! the probe now and then.

/// What a look at a payload says.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Probe {
    /// Entropy of the sampled bytes, as a share of 8 bits: about the size after
    /// packing over the size before for what has no repetitions, an upper
    /// bound for the rest.
    pub ratio: f32,
}

impl Probe {
    /// The class of data that the effort controller learns about: 0 does not
    /// pack, 1 barely, 2 as text does, 3 nearly vanishes.
    pub fn class(self) -> usize {
        match self.ratio {
            r if r >= 0.93 => 0,
            r if r >= 0.7 => 1,
            r if r >= 0.12 => 2,
            _ => 3,
        }
    }
}

/// Runs looked at in one payload, spread evenly, and their length in bytes.
const RUNS: usize = 8;
const RUN: usize = 64;
/// Histograms side by side: four counters of one byte value do not wait for
/// each other where the same byte comes again and again.
const LANES: usize = 4;

/// Looks at `payload`, which may be any length.
pub fn probe(payload: &[u8]) -> Probe {
    let mut counts = [[0u16; 256]; LANES];
    let total = if payload.len() <= RUNS * RUN {
        count(payload, &mut counts)
    } else {
        let step = (payload.len() - RUN) / (RUNS - 1);
        let run = |i: usize| payload.get(i * step..i * step + RUN).unwrap_or_default();
        (0..RUNS).map(|i| count(run(i), &mut counts)).sum()
    };
    if total < 2 {
        return Probe { ratio: 1.0 };
    }
    // Pairs of equal bytes: the order-2 (Rényi) entropy needs no logarithm per
    // byte value and is never above Shannon's.
    let [a, b, c, d] = &counts;
    let equal: u32 = (0..256)
        .map(|i| u32::from(a[i]) + u32::from(b[i]) + u32::from(c[i]) + u32::from(d[i]))
        .map(|n| n * n)
        .sum::<u32>()
        - total;
    let pairs = total * (total - 1);
    let bits = -((equal + 1) as f32 / (pairs + 1) as f32).log2();
    Probe {
        ratio: (bits / 8.0).clamp(0.0, 1.0),
    }
}

/// Counts at most `RUNS * RUN` bytes; returns how many there were.
fn count(bytes: &[u8], counts: &mut [[u16; 256]; LANES]) -> u32 {
    let mut groups = bytes.chunks_exact(LANES);
    for group in &mut groups {
        for (lane, &byte) in counts.iter_mut().zip(group) {
            lane[usize::from(byte)] += 1;
        }
    }
    for &byte in groups.remainder() {
        counts[0][usize::from(byte)] += 1;
    }
    bytes.len() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(len: usize, mut state: u64) -> Vec<u8> {
        (0..len)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 32) as u8
            })
            .collect()
    }

    #[test]
    fn random_bytes_are_left_alone() {
        for seed in 1..500 {
            assert_eq!(probe(&random(32_768, seed)).class(), 0, "seed {seed}");
        }
    }

    #[test]
    fn base64_of_random_bytes_packs_a_little() {
        let letters: Vec<u8> = random(32_768, 9).iter().map(|b| b'0' + (b & 63)).collect();
        assert_eq!(probe(&letters).class(), 1);
    }

    #[test]
    fn text_packs() {
        let text = "the quick brown fox jumps over the lazy dog, 31415 times\n".repeat(600);
        assert_eq!(probe(text.as_bytes()).class(), 2);
    }

    #[test]
    fn one_byte_again_and_again_nearly_vanishes() {
        assert_eq!(probe(&[7; 32_768]).class(), 3);
    }

    #[test]
    fn a_text_that_begins_with_noise_is_still_text() {
        let mut payload = random(8_192, 3);
        payload.extend("lorem ipsum dolor sit amet ".repeat(900).bytes());
        assert_ne!(probe(&payload).class(), 0);
    }

    #[test]
    fn every_length_has_an_answer() {
        for len in 0..2_000 {
            let seen = probe(&random(len, 5)).ratio;
            assert!((0.0..=1.0).contains(&seen), "length {len}: {seen}");
        }
    }
}
