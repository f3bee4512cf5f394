#![forbid(unsafe_code)]
//! One SSH payload as a gather list.

use crate::{Error, Result};

/// The longest payload that a compressor takes: far above any SSH packet, and
/// small enough for every engine's length type.
pub(crate) const MAX_LEN: usize = 1 << 30;

/// The most that is copied in one go. For more, the C library takes the
/// processor's string move, which on some (AMD Zen) is twenty times slower where
/// target and source are the same but for a few bytes modulo the page size: what
/// a tag or a head in front of the payload makes of two buffers of the same kind.
const COPY_PIECE: usize = 1024;

/// Copies a slice to another of the same length.
pub(crate) fn copy_bytes(from: &[u8], to: &mut [u8]) {
    debug_assert_eq!(from.len(), to.len());
    for (to, from) in to.chunks_mut(COPY_PIECE).zip(from.chunks(COPY_PIECE)) {
        to.copy_from_slice(from);
    }
}

/// A payload in parts, with its length counted once.
#[derive(Clone)]
pub(crate) struct Payload<I> {
    parts: I,
    len: usize,
}

impl<'a, I: Iterator<Item = &'a [u8]> + Clone> Payload<I> {
    /// Counts the parts; an empty payload is an invalid argument.
    pub(crate) fn new(parts: I) -> Result<Self> {
        let len = parts
            .clone()
            .try_fold(0usize, |sum, part| sum.checked_add(part.len()))
            .filter(|len| *len <= MAX_LEN)
            .ok_or(Error::TooLarge)?;
        if len == 0 {
            return Err(Error::InvalidArgument);
        }
        Ok(Payload { parts, len })
    }

    /// Bytes in all parts.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The parts that are not empty, each with "this is the last byte's part".
    pub(crate) fn parts(&self) -> impl Iterator<Item = (&'a [u8], bool)> {
        let mut left = self.len;
        self.parts
            .clone()
            .filter(|part| !part.is_empty())
            .map(move |part| {
                left -= part.len();
                (part, left == 0)
            })
    }

    /// The part that tells most about the payload.
    pub(crate) fn longest_part(&self) -> &'a [u8] {
        let parts = self.parts.clone();
        parts.max_by_key(|part| part.len()).unwrap_or_default()
    }

    /// Copies the payload to the front of `out`, which is long enough.
    pub(crate) fn copy_to(&self, out: &mut [u8]) {
        let mut at = 0;
        for (part, _) in self.parts() {
            copy_bytes(part, &mut out[at..at + part.len()]);
            at += part.len();
        }
    }

    /// Copies the payload in pieces of at most `max` bytes, each behind what
    /// `head` makes for its length. Returns the bytes written.
    pub(crate) fn copy_in_pieces<const N: usize>(
        &self,
        out: &mut [u8],
        max: usize,
        head: impl Fn(usize) -> [u8; N],
    ) -> usize {
        let (mut at, mut left, mut piece) = (0, self.len, 0);
        for (mut part, _) in self.parts() {
            while !part.is_empty() {
                if piece == 0 {
                    piece = left.min(max);
                    out[at..at + N].copy_from_slice(&head(piece));
                    at += N;
                }
                let take = part.len().min(piece);
                copy_bytes(&part[..take], &mut out[at..at + take]);
                (at, piece, left) = (at + take, piece - take, left - take);
                part = &part[take..];
            }
        }
        at
    }
}
