//! Random, base64, zeros, and a stream that changes its mind.
#![forbid(unsafe_code)]

use super::text;
use crate::error::Result;
use crate::work::Work;
use flate2::write::GzEncoder;
use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha20Rng;
use std::io::Write;

const MIB: usize = 1 << 20;
/// Base64 as MIME lays it out: 57 bytes to a line of 76 letters.
const LINE_BYTES: usize = 57;
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn random_block(rng: &mut ChaCha20Rng, len: usize) -> Vec<u8> {
    let mut block = vec![0; len];
    rng.fill_bytes(&mut block);
    block
}

pub fn random(_: &Work, out: &mut dyn Write) -> Result<()> {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    for _ in 0..64 {
        out.write_all(&random_block(&mut rng, MIB))?;
    }
    Ok(())
}

pub fn zero(_: &Work, out: &mut dyn Write) -> Result<()> {
    for _ in 0..64 {
        out.write_all(&vec![0; MIB])?;
    }
    Ok(())
}

pub fn base64(_: &Work, out: &mut dyn Write) -> Result<()> {
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    for _ in 0..900_000 {
        let line = random_block(&mut rng, LINE_BYTES);
        let mut text = Vec::with_capacity(77);
        for three in line.chunks_exact(3) {
            let v = u32::from(three[0]) << 16 | u32::from(three[1]) << 8 | u32::from(three[2]);
            text.extend([18, 12, 6, 0].map(|s| LETTERS[(v >> s & 63) as usize]));
        }
        text.push(b'\n');
        out.write_all(&text)?;
    }
    Ok(())
}

/// Random, text, zeros and .gz members in turn, each 0.5 to 3 MiB long.
pub fn mixed(_: &Work, out: &mut dyn Write) -> Result<()> {
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let mut log = text::Log::new(4);
    for _ in 0..12 {
        for kind in 0..4 {
            let len = rng.gen_range(MIB / 2..3 * MIB);
            match kind {
                0 => out.write_all(&random_block(&mut rng, len))?,
                1 => out.write_all(&log.block(len))?,
                2 => out.write_all(&vec![0; len])?,
                _ => {
                    let mut gz = GzEncoder::new(&mut *out, flate2::Compression::new(6));
                    // Log text packs about eight times.
                    gz.write_all(&log.block(len * 8))?;
                    gz.finish()?;
                }
            }
        }
    }
    Ok(())
}
