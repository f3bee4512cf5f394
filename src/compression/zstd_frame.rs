#![forbid(unsafe_code)]
//! The structure of a packet's body on the zstd wire (RFC 8878 section 3.1.1),
//! checked as a whole before libzstd sees any of it: what a peer may send is a
//! small part of what libzstd would decode.

use crate::{Error, Result};

/// Four bytes that begin every frame.
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Frame header: magic, descriptor, window descriptor.
const HEADER_LEN: usize = 6;
/// No checksum, no content size, no dictionary, no reserved bit.
const DESCRIPTOR: u8 = 0;
/// Block header.
pub(crate) const BLOCK_HEADER_LEN: usize = 3;
/// The largest block of any frame.
pub(crate) const MAX_BLOCK: usize = 128 * 1024;
/// The largest window a decoder accepts, as a power of two.
pub(crate) const MAX_WINDOW_LOG: u32 = 22;
/// The most that the windows of all open streams add up to.
pub(crate) const MAX_WINDOWS: usize = 8 << 20;
/// Limits on what one packet may hold.
pub(crate) const MAX_BLOCKS: u32 = 4096;
/// Blocks that say of themselves that they are empty.
pub(crate) const MAX_EMPTY_BLOCKS: u32 = 16;
/// Frames that begin.
pub(crate) const MAX_FRAMES: u32 = 16;

/// The header of a block that is not the last, raw, of this length.
pub(crate) fn raw_block_header(len: usize) -> [u8; BLOCK_HEADER_LEN] {
    let [a, b, c, _] = ((len as u32) << 3).to_le_bytes();
    [a, b, c]
}

/// The largest block in a frame with this window.
pub(crate) fn max_block(window: usize) -> usize {
    window.min(MAX_BLOCK)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    Raw,
    Rle,
    Compressed,
}

struct Block {
    last: bool,
    kind: BlockKind,
    size: usize,
}

impl Block {
    fn parse(header: [u8; BLOCK_HEADER_LEN]) -> Result<Block> {
        let word = u32::from_le_bytes([header[0], header[1], header[2], 0]);
        let kind = match word >> 1 & 3 {
            0 => BlockKind::Raw,
            1 => BlockKind::Rle,
            2 => BlockKind::Compressed,
            _ => return Err(Error::Corrupt),
        };
        Ok(Block {
            last: word & 1 == 1,
            kind,
            size: (word >> 3) as usize,
        })
    }

    fn body_len(&self) -> usize {
        match self.kind {
            BlockKind::Rle => 1,
            BlockKind::Raw | BlockKind::Compressed => self.size,
        }
    }
}

/// What a body turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scan {
    /// The window of the frame that is open behind the body, in bytes.
    pub(crate) open: Option<usize>,
    /// The largest window of all frames that were open in it.
    pub(crate) widest: usize,
}

/// Walks over a body. `open` is the window of the frame that is open before
/// it. Every block must be whole, as it is behind a flush.
pub(crate) fn scan(body: &[u8], open: Option<usize>) -> Result<Scan> {
    let mut scan = Scan {
        open,
        widest: open.unwrap_or(0),
    };
    let (mut rest, mut blocks, mut empty, mut frames) = (body, 0, 0, 0);
    while !rest.is_empty() {
        let Some(window) = scan.open else {
            let (header, after) = rest.split_first_chunk().ok_or(Error::Corrupt)?;
            let window = frame_window(header)?;
            frames += 1;
            scan.open = Some(window);
            scan.widest = scan.widest.max(window);
            rest = after;
            continue;
        };
        let (header, after) = rest.split_first_chunk().ok_or(Error::Corrupt)?;
        let block = Block::parse(*header)?;
        if block.size > max_block(window) {
            return Err(Error::Corrupt);
        }
        rest = after.get(block.body_len()..).ok_or(Error::Corrupt)?;
        blocks += 1;
        empty += u32::from(block.size == 0);
        if block.last {
            scan.open = None;
        }
        if blocks > MAX_BLOCKS || empty > MAX_EMPTY_BLOCKS || frames > MAX_FRAMES {
            return Err(Error::Corrupt);
        }
    }
    Ok(scan)
}

/// The window that a frame header asks for (RFC 8878 section 3.1.1.1.2).
fn frame_window(header: &[u8; HEADER_LEN]) -> Result<usize> {
    let [magic @ .., descriptor, window] = header;
    if *magic != MAGIC || *descriptor != DESCRIPTOR {
        return Err(Error::Corrupt);
    }
    let base = 1usize << (10 + (window >> 3));
    let window = base + base / 8 * usize::from(window & 7);
    if window > 1 << MAX_WINDOW_LOG {
        return Err(Error::Corrupt);
    }
    Ok(window)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame header with a window of 1 MiB.
    const HEADER: [u8; 6] = [0x28, 0xb5, 0x2f, 0xfd, 0, 10 << 3];

    fn body(pieces: &[&[u8]]) -> Vec<u8> {
        pieces.concat()
    }

    #[test]
    fn frames_open_and_close_where_their_blocks_say() {
        let raw = [&raw_block_header(2)[..], b"ab"].concat();
        let opened = scan(&body(&[&HEADER, &raw]), None).unwrap();
        assert_eq!(opened.open, Some(1 << 20));
        let closed = scan(&[1, 0, 0], opened.open).unwrap();
        assert_eq!((closed.open, closed.widest), (None, 1 << 20));
        let again = scan(&body(&[&[1, 0, 0], &HEADER, &raw]), opened.open).unwrap();
        assert_eq!(again.open, Some(1 << 20));
    }

    #[test]
    fn what_the_format_leaves_out_is_refused() {
        for header in [
            [0x27, 0xb5, 0x2f, 0xfd, 0, 80],          // legacy magic (0.7)
            [0x50, 0x2a, 0x4d, 0x18, 0, 80],          // skippable frame
            [0x28, 0xb5, 0x2f, 0xfd, 4, 80],          // checksum
            [0x28, 0xb5, 0x2f, 0xfd, 0x20, 80],       // single segment
            [0x28, 0xb5, 0x2f, 0xfd, 1, 80],          // dictionary
            [0x28, 0xb5, 0x2f, 0xfd, 8, 80],          // reserved bit
            [0x28, 0xb5, 0x2f, 0xfd, 0, 12 << 3 | 1], // 4.5 MiB of window
            [0x28, 0xb5, 0x2f, 0xfd, 0, 0xff],
        ] {
            assert_eq!(scan(&header, None), Err(Error::Corrupt), "{header:?}");
        }
        assert_eq!(scan(&HEADER[..5], None), Err(Error::Corrupt));
        assert_eq!(
            scan(&[6, 0, 0], Some(1024)),
            Err(Error::Corrupt),
            "reserved kind"
        );
        assert_eq!(
            scan(&[0, 8], Some(1024)),
            Err(Error::Corrupt),
            "half a header"
        );
        assert_eq!(
            scan(&[16, 0, 0, 1], Some(1024)),
            Err(Error::Corrupt),
            "half a block"
        );
    }

    #[test]
    fn blocks_larger_than_their_window_are_refused() {
        let mut rle = raw_block_header(1025);
        rle[0] |= 2;
        let body = body(&[&rle, b"x"]);
        assert_eq!(scan(&body, Some(1024)), Err(Error::Corrupt));
        assert!(scan(&body, Some(2048)).is_ok());
    }

    #[test]
    fn empty_blocks_and_frames_are_counted() {
        let empties = |n: usize| [0u8, 0, 0].repeat(n);
        assert!(scan(&empties(16), Some(1024)).is_ok());
        assert_eq!(scan(&empties(17), Some(1024)), Err(Error::Corrupt));
        // Each frame holds one empty last block.
        let frame = body(&[&HEADER, &[1, 0, 0]]);
        assert!(scan(&frame.repeat(16), None).is_ok());
        assert_eq!(scan(&frame.repeat(17), None), Err(Error::Corrupt));
        let ones = body(&[&raw_block_header(1), b"x"]);
        assert!(scan(&ones.repeat(4096), Some(1024)).is_ok());
        assert_eq!(scan(&ones.repeat(4097), Some(1024)), Err(Error::Corrupt));
    }
}
