#![forbid(unsafe_code)]
//! The zlib wire (RFC 4253 section 6.2, RFC 1950, RFC 1951): one deflate
//! stream for the life of the keys, a partial flush behind every packet.
//!
//! The Adler-32 is never sent on SSH, so a raw deflate stream behind a header
//! made by hand is the same bytes and saves both ends the checksum. Stored
//! packets are made by hand too: the engine does not see them, and starts a
//! new history, at a byte boundary, when it is asked again.

use super::effort::Effort;
use super::payload::Payload;
use super::zlib_engine::{Deflate, Inflater, Step, Stop};
use super::Encoded;
use crate::capi::alloc::Account;
use crate::{Error, Result};

/// Deflate with a 32 KiB window, default effort (RFC 1950 section 2.2).
const HEADER: [u8; 2] = [0x78, 0x9c];
/// The most that a packet up to 32,768 bytes grows: stock zlib's own figure.
/// Dropbear drops a packet that grew by more than 21.
const MAX_GROWTH: usize = 13;
/// The most bytes in one stored block (RFC 1951 section 3.2.4).
const MAX_STORED: usize = 0xffff;
/// The length field of a stored block and its complement.
const STORED_HEAD: usize = 4;
/// An empty stored block from a byte boundary on.
const EMPTY_STORED: [u8; 5] = [0, 0, 0, 0xff, 0xff];
/// What stands in front of an aligned stored block where the group changes:
/// three empty blocks with fixed codes, ten bits each, of which only the second
/// is set. With up to seven bits held back before and the three of the stored
/// block's head they fill five bytes, however many bits those were: the length
/// of a packet does not tell how the packet of another group ended.
const HIDING: u32 = 0b10 | 0b10 << 10 | 0b10 << 20;
/// More blocks than this that decode to nothing, in one packet, are an attack:
/// PuTTY pads with a few hundred at the most.
const MAX_EMPTY_BLOCKS: u32 = 1024;

/// The longest that a payload can become.
pub(crate) fn bound(payload_len: usize) -> usize {
    let stored = payload_len + stored_overhead(payload_len);
    // One byte more than a packet may take, so that the engine can show that
    // it was done within it.
    HEADER.len() + stored.max(payload_len + MAX_GROWTH) + 1
}

fn stored_overhead(payload_len: usize) -> usize {
    size_of_val(&HIDING) + payload_len.div_ceil(MAX_STORED) * (STORED_HEAD + 1)
}

/// One direction of the zlib wire, sending.
pub(crate) struct Encoder<E> {
    engine: Option<E>,
    account: Account,
    header_due: bool,
    /// Bits, all of them 0, that the engine holds back of the last packet: the
    /// tail of the flush's empty block (RFC 1951 section 3.2.6).
    pending_bits: u8,
    /// Whether the engine has seen all that is on the wire.
    in_step: bool,
    group: u16,
    /// The packet is the first of its group behind one of another.
    hiding: bool,
}

impl<E: Deflate> Encoder<E> {
    /// A stream before its first byte. Allocates nothing for the engine.
    pub(crate) fn new(account: Account) -> Self {
        Encoder {
            engine: None,
            account,
            header_due: true,
            pending_bits: 0,
            in_step: false,
            group: 0,
            hiding: false,
        }
    }

    /// Begins a fresh stream (key exchange); the engine is kept.
    pub(crate) fn restart(&mut self) {
        self.header_due = true;
        self.pending_bits = 0;
        self.in_step = false;
    }

    /// Gets the engine ready for packets to come.
    pub(crate) fn warm(&mut self) -> Result<()> {
        if self.engine.is_none() {
            self.engine = Some(E::new(&self.account)?);
        }
        Ok(())
    }

    /// Encodes one payload into `out`, which has room for [`bound`] bytes.
    pub(crate) fn encode<'a, I>(
        &mut self,
        payload: &Payload<I>,
        effort: Effort,
        group: u16,
        out: &mut [u8],
    ) -> Encoded
    where
        I: Iterator<Item = &'a [u8]> + Clone,
    {
        let head = if self.header_due { HEADER.len() } else { 0 };
        out[..head].copy_from_slice(&HEADER[..head]);
        if group != self.group {
            self.in_step = false;
            self.group = group;
            self.hiding = !self.header_due;
        }
        self.header_due = false;
        let packed = match effort {
            Effort::Stored => None,
            Effort::Level(level) => self.pack(payload, level, &mut out[head..]),
        };
        let effort = packed.map_or(Effort::Stored, |_| effort);
        let len = packed.unwrap_or_else(|| self.store(payload, &mut out[head..]));
        self.hiding = false;
        Encoded {
            len: head + len,
            effort,
        }
    }

    /// Lets the engine try. Nothing if it has no memory, fails or makes the
    /// packet grow by more than a packet may: then the wire is as before.
    fn pack<'a, I>(&mut self, payload: &Payload<I>, level: i8, out: &mut [u8]) -> Option<usize>
    where
        I: Iterator<Item = &'a [u8]> + Clone,
    {
        self.warm().ok()?;
        let fresh = !self.in_step;
        let start = if fresh { self.align(out) } else { 0 };
        let end = payload.len() + MAX_GROWTH + 1;
        let engine = self.engine.as_mut()?;
        match run(engine, payload, fresh, level, &mut out[start..end]) {
            Ok(Some((len, pending_bits))) => {
                self.in_step = true;
                self.pending_bits = pending_bits;
                Some(start + len)
            }
            Ok(None) => {
                self.in_step = false;
                None
            }
            Err(_) => {
                self.in_step = false;
                self.engine = None;
                None
            }
        }
    }

    /// Writes what brings the wire to a byte boundary: nothing, or an empty
    /// stored block.
    fn align(&self, out: &mut [u8]) -> usize {
        if self.pending_bits == 0 && !self.hiding {
            return 0;
        }
        let lead = self.lead(out);
        let end = lead + EMPTY_STORED.len();
        out[lead..end].copy_from_slice(&EMPTY_STORED);
        end
    }

    /// Writes what stands in front of a stored block's head, of which one zero
    /// byte is taken to begin at a byte boundary.
    fn lead(&self, out: &mut [u8]) -> usize {
        let (bits, len) = if self.hiding {
            (HIDING << self.pending_bits, size_of_val(&HIDING))
        } else {
            // The pending bits and three of the head, but for that byte.
            (0, usize::from(self.pending_bits + 3).div_ceil(8) - 1)
        };
        out[..len].copy_from_slice(&bits.to_le_bytes()[..len]);
        len
    }

    fn store<'a, I>(&mut self, payload: &Payload<I>, out: &mut [u8]) -> usize
    where
        I: Iterator<Item = &'a [u8]> + Clone,
    {
        let extra = self.lead(out);
        self.pending_bits = 0;
        self.in_step = false;
        extra + payload.copy_in_pieces(&mut out[extra..], MAX_STORED, stored_head)
    }
}

fn stored_head(len: usize) -> [u8; 5] {
    let [low, high] = (len as u16).to_le_bytes();
    [0, low, high, !low, !high]
}

/// Runs a payload through the engine: the length and the bits held back, or
/// nothing if it did not fit.
fn run<'a, E: Deflate, I>(
    engine: &mut E,
    payload: &Payload<I>,
    fresh: bool,
    level: i8,
    out: &mut [u8],
) -> Result<Option<(usize, u8)>>
where
    I: Iterator<Item = &'a [u8]> + Clone,
{
    if fresh {
        engine.reset()?;
    }
    let mut at = engine.set_level(level, out)?;
    for (mut part, last) in payload.parts() {
        while !part.is_empty() {
            let step = engine.write(part, &mut out[at..], last)?;
            at += step.written;
            part = &part[step.used..];
            // A full buffer leaves open whether the flush was complete.
            if at == out.len() || step == Step::default() {
                return Ok(None);
            }
        }
    }
    Ok(Some((at, engine.pending_bits()?)))
}

/// One direction of the zlib wire, receiving.
pub(crate) struct Decoder {
    engine: Option<Inflater>,
    account: Account,
    header_due: bool,
    empty_blocks: u32,
    block_has_output: bool,
}

impl Decoder {
    /// A stream before its first byte. Allocates nothing for the engine.
    pub(crate) fn new(account: Account) -> Self {
        Decoder {
            engine: None,
            account,
            header_due: true,
            empty_blocks: 0,
            block_has_output: false,
        }
    }

    /// Looks at a packet before any of it is decoded; returns how many of its
    /// bytes are done with.
    pub(crate) fn begin(&mut self, packet: &[u8]) -> Result<usize> {
        self.empty_blocks = 0;
        if self.engine.is_none() {
            self.engine = Some(Inflater::new(&self.account)?);
        }
        if !self.header_due {
            return Ok(0);
        }
        self.header_due = false;
        let header = packet.first_chunk::<2>().ok_or(Error::Corrupt)?;
        check_header(*header).map(|()| header.len())
    }

    /// Decodes until the input is used up, or `out` is full. True: all of the
    /// output that the input gives is out.
    pub(crate) fn read(&mut self, input: &[u8], out: &mut [u8]) -> Result<(Step, bool)> {
        let engine = self.engine.as_mut().ok_or(Error::Internal)?;
        let mut total = Step::default();
        loop {
            let (step, stop) = engine.read(&input[total.used..], &mut out[total.written..])?;
            total.used += step.used;
            total.written += step.written;
            self.block_has_output |= step.written > 0;
            if stop == Stop::Drained {
                return Ok((total, true));
            }
            if engine.at_block_end() {
                self.empty_blocks += u32::from(!self.block_has_output);
                self.block_has_output = false;
                if self.empty_blocks > MAX_EMPTY_BLOCKS {
                    return Err(Error::Corrupt);
                }
            }
            if total.written == out.len() {
                return Ok((total, false));
            }
        }
    }
}

/// RFC 1950 section 2.2: deflate, a window of 32 KiB at most, no dictionary.
fn check_header([cmf, flags]: [u8; 2]) -> Result<()> {
    let deflate = cmf & 0x0f == 8 && cmf >> 4 <= 7;
    let no_dictionary = flags & 0x20 == 0;
    let checks = u16::from_be_bytes([cmf, flags]) % 31 == 0;
    if deflate && no_dictionary && checks {
        Ok(())
    } else {
        Err(Error::Corrupt)
    }
}
