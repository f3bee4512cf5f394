#![forbid(unsafe_code)]
//! Whether the classes of data come mixed or one after another.
//!
//! Where they are mixed packet by packet, one that costs our CPU much and one
//! that costs the link much make up for each other. In stretches longer than
//! what the buffers and the peer's window hold they do not: each stretch has
//! to be in balance by itself.

use super::wire::CLASSES;

/// Packets in a block: about what lies between us and the peer.
const BLOCK: u32 = 32;
/// How fast old blocks are forgotten.
const MEMORY: f32 = 0.1;
/// Classes that hardly mix at all tell nothing.
const VARIED: f32 = 0.05;

#[derive(Clone, Copy, Debug, Default)]
pub struct Patches {
    counts: [u32; CLASSES],
    packets: u32,
    mean: [f32; CLASSES],
    /// The mean of the sums of squared shares, block by block.
    squares: f32,
    blocks: u32,
}

impl Patches {
    /// A large packet of this class was sent.
    pub fn note(&mut self, class: usize) {
        self.counts[class] += 1;
        self.packets += 1;
        if self.packets == BLOCK {
            self.close();
        }
    }

    fn close(&mut self) {
        self.blocks = self.blocks.saturating_add(1);
        let weight = MEMORY.max(1.0 / self.blocks as f32);
        let mut squares = 0.0;
        for (mean, count) in self.mean.iter_mut().zip(&mut self.counts) {
            let share = std::mem::take(count) as f32 / BLOCK as f32;
            *mean += (share - *mean) * weight;
            squares += share * share;
        }
        self.squares += (squares - self.squares) * weight;
        self.packets = 0;
    }

    /// 0 where every block is a fair sample of all, 1 where each is of one
    /// class only: how much of the variety lies between the blocks.
    pub fn apart(&self) -> f32 {
        let even: f32 = self.mean.iter().map(|m| m * m).sum();
        let varied = 1.0 - even;
        if varied < VARIED {
            return 0.0;
        }
        // Chance alone makes blocks differ by this much.
        let chance = varied / BLOCK as f32;
        ((self.squares - even - chance) / (varied - chance)).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(classes: impl Iterator<Item = usize>) -> f32 {
        let mut patches = Patches::default();
        classes.for_each(|class| patches.note(class));
        patches.apart()
    }

    #[test]
    fn what_alternates_is_mixed_and_what_comes_in_runs_is_apart() {
        assert_eq!(after((0..2000).map(|i| 2 + i % 2)), 0.0);
        assert!(after((0..2000).map(|i| 2 + i / 100 % 2)) > 0.6);
        assert_eq!(after(std::iter::repeat_n(2, 2000)), 0.0);
    }
}
