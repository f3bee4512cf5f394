//! The order in which a file is sent.
#![forbid(unsafe_code)]

use rand::seq::SliceRandom;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::ops::Range;

/// Longer than what most efforts look back.
const CHUNK: usize = 256 * 1024;

/// Pieces of a file of `bytes` bytes: in order, or in an order by chance. A run that is cut by time
/// sees only a part, and that part is to be like the whole: a faster variant must not be compared
/// on other data than a slower one.
pub fn chunks(bytes: u64, seed: Option<u64>) -> Vec<Range<u64>> {
    let starts = (0..bytes).step_by(CHUNK);
    let mut chunks: Vec<_> = starts.map(|a| a..(a + CHUNK as u64).min(bytes)).collect();
    if let Some(seed) = seed {
        chunks.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    }
    chunks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_sent_once() {
        for seed in [None, Some(1)] {
            let mut all = chunks(1_000_000, seed);
            all.sort_by_key(|c| c.start);
            assert_eq!(all.first().map(|c| c.start), Some(0));
            assert_eq!(all.last().map(|c| c.end), Some(1_000_000));
            assert!(all.windows(2).all(|w| w[0].end == w[1].start));
        }
        assert!(chunks(0, Some(1)).is_empty());
    }
}
