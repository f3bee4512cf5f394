#![forbid(unsafe_code)]
//! The zstd wire, `zstd@sshflow.org`; specified in doc/zstd-sshflow.md.

use super::effort::Effort;
use super::payload::{copy_bytes, Payload};
use super::zlib_engine::Step;
use super::zstd_engine::{self, Compressor, Decompressor};
use super::zstd_frame::{
    max_block, raw_block_header, scan, BLOCK_HEADER_LEN, MAX_WINDOWS, MAX_WINDOW_LOG,
};
use super::Encoded;
use crate::capi::alloc::Account;
use crate::{Error, Result};

/// Independent streams in one direction.
const STREAMS: usize = 4;
/// Tag of a payload that enters no history.
const TAG_STORED: u8 = 0;
/// Behind a stream's tag by this much: stored, and part of its history.
const TAG_RAW: u8 = STREAMS as u8;
/// An empty last block: ends the frame that is open at the decoder.
const END_OF_FRAME: [u8; 3] = [1, 0, 0];
const FRAME_HEADER_LEN: usize = 6;
/// Shorter payloads cannot shrink: three bytes of block header and a literals
/// section stand against them.
const MIN_PAYLOAD: usize = 16;
/// Windows, as powers of two: the first stream carries the session's own data;
/// together they stay below what a decoder accepts.
const WINDOW_LOG_FIRST: u32 = 22;
const WINDOW_LOG_OTHERS: u32 = 20;
/// The smallest window that memory is saved down to.
const WINDOW_LOG_MIN: u32 = 10;
/// After an engine could not be had, so many packets go by before another try.
const RETRY_AFTER: u32 = 256;

/// The longest that a payload can become while it is worked on: libzstd writes
/// straight into the caller's buffer if that has room for its worst case.
pub(crate) fn bound(payload_len: usize) -> usize {
    let worst_case = payload_len + (payload_len >> 8) + 64;
    1 + END_OF_FRAME.len() + FRAME_HEADER_LEN + worst_case
}

/// One stream of frames, sending.
struct Stream {
    engine: Option<Compressor>,
    /// Level that was asked for and the level and window that fit the memory.
    asked: i8,
    level: i8,
    window_log: u32,
    group: u16,
    /// The decoder has a frame open.
    open: bool,
    /// The engine is at the start of a frame.
    fresh: bool,
    /// Packets to let go by before the engine is tried again.
    pause: u32,
    last_use: u64,
}

impl Stream {
    const fn new() -> Self {
        Stream {
            engine: None,
            asked: 0,
            level: 0,
            window_log: 0,
            group: 0,
            open: false,
            fresh: true,
            pause: 0,
            last_use: 0,
        }
    }

    /// Forgets the engine's frame; the decoder's is ended by the next body.
    fn begin_frame(&mut self) -> Result<()> {
        self.fresh = true;
        let engine = self.engine.as_mut().ok_or(Error::NoMemory)?;
        engine.begin_frame(self.level, self.window_log)
    }
}

/// One direction of the zstd wire, sending.
pub(crate) struct Encoder {
    streams: [Stream; STREAMS],
    account: Account,
    uses: u64,
}

impl Encoder {
    /// A wire before its first packet. Allocates nothing for the engines.
    pub(crate) fn new(account: Account) -> Self {
        Encoder {
            streams: [const { Stream::new() }; STREAMS],
            account,
            uses: 0,
        }
    }

    /// Begins a fresh wire (key exchange): the decoder has no stream open.
    pub(crate) fn restart(&mut self) {
        for stream in &mut self.streams {
            stream.open = false;
            // The engine's history must not be referred to: a new frame.
            stream.asked = 0;
        }
    }

    /// The level that really runs where this one is asked for.
    pub(crate) fn level_in_memory(&self, level: i8) -> i8 {
        fit(level, WINDOW_LOG_FIRST, share(0, self.account.limit())).map_or(0, |(level, _)| level)
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
        if let Effort::Level(level) = effort {
            if payload.len() >= MIN_PAYLOAD {
                let at = self.stream_of(group);
                if let Some(encoded) = self.pack(at, payload, level, out) {
                    return encoded;
                }
            }
        }
        out[0] = TAG_STORED;
        payload.copy_to(&mut out[1..]);
        Encoded {
            len: 1 + payload.len(),
            effort: Effort::Stored,
        }
    }

    /// The stream of a group: its own, or the one that was idle for longest.
    /// The session's own data keeps the first.
    fn stream_of(&mut self, group: u16) -> usize {
        self.uses += 1;
        let others = 1..STREAMS;
        let at = if group == 0 {
            0
        } else {
            let own = others.clone().find(|&at| self.streams[at].group == group);
            own.or_else(|| others.min_by_key(|&at| self.streams[at].last_use))
                .unwrap_or(1)
        };
        let stream = &mut self.streams[at];
        if stream.group != group {
            stream.group = group;
            stream.asked = 0;
        }
        stream.last_use = self.uses;
        at
    }

    /// Makes the stream's engine and frame fit the level asked for.
    fn prepare(&mut self, at: usize, level: i8) -> Result<()> {
        let limit = share(at, self.account.limit());
        let stream = &mut self.streams[at];
        if stream.pause > 0 {
            stream.pause -= 1;
            return Err(Error::NoMemory);
        }
        if stream.engine.is_none() {
            stream.engine = Some(Compressor::new(&self.account)?);
            stream.asked = 0;
        }
        if stream.asked != level {
            let most = if at == 0 {
                WINDOW_LOG_FIRST
            } else {
                WINDOW_LOG_OTHERS
            };
            let (fitting, window_log) = fit(level, most, limit).ok_or(Error::NoMemory)?;
            stream.asked = level;
            stream.level = fitting;
            stream.window_log = window_log;
            stream.begin_frame()?;
        }
        Ok(())
    }

    fn pack<'a, I>(
        &mut self,
        at: usize,
        payload: &Payload<I>,
        level: i8,
        out: &mut [u8],
    ) -> Option<Encoded>
    where
        I: Iterator<Item = &'a [u8]> + Clone,
    {
        let tried = self
            .prepare(at, level)
            .and_then(|()| self.streams[at].run(payload, out));
        let stream = &mut self.streams[at];
        match tried {
            Ok(Some((kind, len))) => {
                out[0] = kind + 1 + at as u8;
                stream.open = true;
                stream.fresh = false;
                Some(Encoded {
                    len: 1 + len,
                    effort: Effort::Level(stream.level),
                })
            }
            Ok(None) => {
                stream.begin_frame().ok()?;
                None
            }
            Err(_) => {
                // No memory, or a fault of the engine: packets go out stored.
                if stream.pause == 0 {
                    stream.pause = RETRY_AFTER;
                }
                stream.engine = None;
                stream.fresh = true;
                None
            }
        }
    }
}

/// A body of frames, as opposed to [`TAG_RAW`].
const KIND_FRAMES: u8 = 0;

impl Stream {
    /// Runs a payload through the engine: the kind and length of the body that
    /// stands at `out[1..]`, or nothing if it would be longer than the payload.
    fn run<'a, I>(&mut self, payload: &Payload<I>, out: &mut [u8]) -> Result<Option<(u8, usize)>>
    where
        I: Iterator<Item = &'a [u8]> + Clone,
    {
        let body = &mut out[1..];
        let mut len = 0;
        if self.fresh && self.open {
            body[..END_OF_FRAME.len()].copy_from_slice(&END_OF_FRAME);
            len = END_OF_FRAME.len();
        }
        let engine = self.engine.as_mut().ok_or(Error::NoMemory)?;
        for (part, last) in payload.parts() {
            let mut rest = part;
            loop {
                let step = engine.write(rest, &mut body[len..], last)?;
                rest = &rest[step.used..];
                len += step.written;
                if rest.is_empty() && (step.complete || !last) {
                    break;
                }
                if step.used == 0 && step.written == 0 {
                    return Ok(None);
                }
            }
        }
        if len <= payload.len() {
            return Ok(Some((KIND_FRAMES, len)));
        }
        let head = raw_block_header(payload.len());
        let one_raw_block = !self.fresh
            && len == payload.len() + BLOCK_HEADER_LEN
            && payload.len() <= max_block(1 << self.window_log)
            && body[..BLOCK_HEADER_LEN] == head;
        if one_raw_block {
            // The decoder makes the block's header itself.
            body.copy_within(BLOCK_HEADER_LEN..len, 0);
            return Ok(Some((TAG_RAW, payload.len())));
        }
        Ok(None)
    }
}

/// What a stream may take of the memory of all.
fn share(at: usize, limit: usize) -> usize {
    if at == 0 {
        limit / 2
    } else {
        limit / 2 / (STREAMS - 1)
    }
}

/// The highest level up to `level`, and the largest window up to `most`, that
/// fit the memory: the level is lowered first, since a smaller window costs
/// the fast levels more than a faster level costs.
fn fit(level: i8, most: u32, memory: usize) -> Option<(i8, u32)> {
    let levels = (-7..=level).rev().filter(|level| *level != 0);
    let natural = |level| zstd_engine::natural_window_log(level).min(most);
    let fits = |level: i8, log: u32| zstd_engine::memory_of(level, log) <= memory;
    levels
        .map(|level| (level, natural(level)))
        .find(|&(level, log)| fits(level, log))
        .or_else(|| {
            let fastest = level.min(-1);
            let logs = (WINDOW_LOG_MIN..natural(fastest)).rev();
            logs.map(|log| (fastest, log))
                .find(|&(level, log)| fits(level, log))
        })
}

/// One stream of frames, receiving.
#[derive(Default)]
struct Source {
    context: Option<Decompressor>,
    /// The window of the open frame, in bytes.
    open: Option<usize>,
    /// The largest window that the context has held memory for.
    held: usize,
}

/// How the rest of the packet in the works is to be read.
#[derive(Clone, Copy)]
enum Body {
    Stored,
    Frames(usize),
    /// A raw block of this length; its header is still to be fed.
    Raw(usize, usize),
}

/// One direction of the zstd wire, receiving.
pub(crate) struct Decoder {
    streams: [Source; STREAMS],
    account: Account,
    body: Body,
}

impl Decoder {
    /// A wire before its first packet. Allocates nothing for the contexts.
    pub(crate) fn new(account: Account) -> Self {
        Decoder {
            streams: Default::default(),
            account,
            body: Body::Stored,
        }
    }

    /// Checks a packet before any of it is decoded; returns how many of its
    /// bytes are done with.
    pub(crate) fn begin(&mut self, packet: &[u8]) -> Result<usize> {
        let (&tag, body) = packet.split_first().ok_or(Error::Corrupt)?;
        if body.is_empty() {
            return Err(Error::Corrupt);
        }
        self.body = match tag {
            TAG_STORED => Body::Stored,
            1..=TAG_RAW => self.begin_frames(usize::from(tag - 1), body)?,
            _ => self.begin_raw(usize::from(tag - TAG_RAW - 1), body.len())?,
        };
        Ok(1)
    }

    fn begin_frames(&mut self, at: usize, body: &[u8]) -> Result<Body> {
        let scan = scan(body, self.streams[at].open)?;
        let windows: usize = (0..STREAMS)
            .filter(|&other| other != at)
            .filter_map(|other| self.streams[other].open)
            .sum();
        if windows + scan.widest > MAX_WINDOWS {
            return Err(Error::Corrupt);
        }
        self.make_room(at, scan.widest);
        let stream = &mut self.streams[at];
        if stream.context.is_none() {
            stream.context = Some(Decompressor::new(&self.account, MAX_WINDOW_LOG)?);
        }
        stream.held = stream.held.max(scan.widest);
        stream.open = scan.open;
        Ok(Body::Frames(at))
    }

    /// Contexts keep the memory of frames that ended: where all together would
    /// hold more than the format allows for open ones, the idle ones go.
    fn make_room(&mut self, at: usize, window: usize) {
        let held: usize = self.streams.iter().map(|stream| stream.held).sum();
        if held + window.saturating_sub(self.streams[at].held) <= MAX_WINDOWS {
            return;
        }
        for stream in &mut self.streams {
            if stream.open.is_none() {
                *stream = Source::default();
            }
        }
    }

    fn begin_raw(&mut self, at: usize, len: usize) -> Result<Body> {
        let window = self
            .streams
            .get(at)
            .and_then(|stream| stream.open)
            .ok_or(Error::Corrupt)?;
        if len > max_block(window) {
            return Err(Error::Corrupt);
        }
        Ok(Body::Raw(at, len))
    }

    /// Decodes until the input is used up, or `out` is full. True: all of the
    /// output that the input gives is out.
    pub(crate) fn read(&mut self, input: &[u8], out: &mut [u8]) -> Result<(Step, bool)> {
        let at = match self.body {
            Body::Stored => return Ok(copy(input, out)),
            Body::Frames(at) => at,
            Body::Raw(at, len) => {
                self.feed_header(at, raw_block_header(len))?;
                self.body = Body::Frames(at);
                at
            }
        };
        let context = self.streams[at].context.as_mut().ok_or(Error::Internal)?;
        let mut total = Step::default();
        loop {
            let step = context.read(&input[total.used..], &mut out[total.written..])?;
            total.used += step.used;
            total.written += step.written;
            if total.written == out.len() {
                return Ok((total, false));
            }
            if total.used == input.len() {
                return Ok((total, true));
            }
            if step.used == 0 && step.written == 0 {
                return Err(Error::Corrupt);
            }
        }
    }

    fn feed_header(&mut self, at: usize, header: [u8; BLOCK_HEADER_LEN]) -> Result<()> {
        let context = self.streams[at].context.as_mut().ok_or(Error::Internal)?;
        let step = context.read(&header, &mut [])?;
        if step.used == header.len() {
            Ok(())
        } else {
            Err(Error::Corrupt)
        }
    }
}

fn copy(input: &[u8], out: &mut [u8]) -> (Step, bool) {
    let len = input.len().min(out.len());
    copy_bytes(&input[..len], &mut out[..len]);
    let step = Step {
        used: len,
        written: len,
    };
    (step, len == input.len())
}
