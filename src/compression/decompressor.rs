#![forbid(unsafe_code)]
//! One direction of a connection, receiving.

use super::payload::copy_bytes;
use super::zlib_engine::Step;
use super::{zlib, zstd, Method};
use crate::capi::alloc::Account;
use crate::config::Config;
use crate::stats::DecompressStats;
use crate::{Error, Result};

/// A hard stop for what the decoders of one connection may hold: the windows
/// that the zstd wire allows, and what contexts need around them.
const MEMORY_LIMIT: usize = 16 << 20;

/// What one call did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Input bytes taken.
    pub used: usize,
    /// Output bytes written.
    pub written: usize,
    /// The output is full and the packet goes on: call again.
    pub more: bool,
}

enum Wire {
    None,
    Zlib(zlib::Decoder),
    Zstd(zstd::Decoder),
}

impl Wire {
    fn begin(&mut self, packet: &[u8]) -> Result<usize> {
        match self {
            Wire::None => Ok(0),
            Wire::Zlib(decoder) => decoder.begin(packet),
            Wire::Zstd(decoder) => decoder.begin(packet),
        }
    }

    fn read(&mut self, input: &[u8], out: &mut [u8]) -> Result<(Step, bool)> {
        match self {
            Wire::None => {
                let len = input.len().min(out.len());
                copy_bytes(&input[..len], &mut out[..len]);
                let step = Step {
                    used: len,
                    written: len,
                };
                Ok((step, len == input.len()))
            }
            Wire::Zlib(decoder) => decoder.read(input, out),
            Wire::Zstd(decoder) => decoder.read(input, out),
        }
    }
}

/// A packet of which not all output has been handed out.
#[derive(Clone, Copy)]
struct Unfinished {
    /// Input bytes that the caller still has to give.
    input_left: usize,
    /// Output bytes made so far.
    produced: usize,
    /// A byte that was decoded to see whether there is more than fits.
    ahead: Option<u8>,
}

#[derive(Clone, Copy)]
enum State {
    Ready,
    Within(Unfinished),
    Failed,
}

/// Decompresses the payloads of one direction for one key epoch.
pub struct Decompressor {
    wire: Wire,
    account: Account,
    max_payload: usize,
    state: State,
    totals: DecompressStats,
}

impl Decompressor {
    /// A decompressor at the start of a wire stream. Cheap: the decoders are
    /// allocated by the first packet that needs them.
    ///
    /// # Errors
    /// [`Error::NoMemory`].
    pub fn new(method: Method, config: &Config) -> Result<Decompressor> {
        let account = Account::new(MEMORY_LIMIT)?;
        let wire = match method {
            Method::None => Wire::None,
            Method::Zlib | Method::ZlibDelayed => Wire::Zlib(zlib::Decoder::new(account.clone())),
            Method::Zstd => Wire::Zstd(zstd::Decoder::new(account.clone())),
        };
        Ok(Decompressor {
            wire,
            account,
            max_payload: config.max_payload(),
            state: State::Ready,
            totals: DecompressStats {
                method: method as i32,
                ..DecompressStats::default()
            },
        })
    }

    /// Decodes a packet: all of it in the first call's `input`; in the calls
    /// after one that answered `more`, what was not used yet.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for what the wire does not allow,
    /// [`Error::TooLarge`] for more than `max_payload` in one packet,
    /// [`Error::NoMemory`]; every later call answers [`Error::State`].
    /// [`Error::InvalidArgument`] for an empty packet, or for input that is
    /// not what was left of the packet; nothing is changed then.
    pub fn decompress(&mut self, input: &[u8], out: &mut [u8]) -> Result<Progress> {
        let unfinished = match self.state {
            State::Failed => return Err(Error::State),
            State::Ready if input.is_empty() => return Err(Error::InvalidArgument),
            State::Within(packet) if packet.input_left != input.len() => {
                return Err(Error::InvalidArgument)
            }
            State::Ready => None,
            State::Within(packet) => Some(packet),
        };
        // Whatever happens from here on, an early return is a failure.
        self.state = State::Failed;
        let (progress, state) = self.advance(unfinished, input, out)?;
        self.state = state;
        self.totals.wire_bytes += progress.used as u64;
        self.totals.raw_bytes += progress.written as u64;
        self.totals.packets += u64::from(!progress.more);
        Ok(progress)
    }

    fn advance(
        &mut self,
        unfinished: Option<Unfinished>,
        input: &[u8],
        out: &mut [u8],
    ) -> Result<(Progress, State)> {
        let (mut used, mut produced, mut ahead) = match unfinished {
            None => (self.wire.begin(input)?, 0, None),
            Some(packet) => (0, packet.produced, packet.ahead),
        };
        let mut written = 0;
        if let (Some(byte), Some(first)) = (ahead, out.first_mut()) {
            *first = byte;
            written = 1;
            ahead = None;
        }
        let mut drained = false;
        if ahead.is_none() {
            let room = (out.len() - written).min(self.max_payload - produced);
            let (step, all) = self.read(&input[used..], &mut out[written..written + room])?;
            used += step.used;
            written += step.written;
            produced += step.written;
            drained = all;
        }
        if !drained && ahead.is_none() {
            (drained, ahead) = self.look_ahead(input, &mut used)?;
            produced += usize::from(ahead.is_some());
            if produced > self.max_payload {
                return Err(Error::TooLarge);
            }
        }
        self.finish(input.len(), used, written, produced, ahead, drained)
    }

    fn finish(
        &self,
        input_len: usize,
        used: usize,
        written: usize,
        produced: usize,
        ahead: Option<u8>,
        drained: bool,
    ) -> Result<(Progress, State)> {
        let progress = Progress {
            used,
            written,
            more: !drained || ahead.is_some(),
        };
        if progress.more {
            let packet = Unfinished {
                input_left: input_len - used,
                produced,
                ahead,
            };
            return Ok((progress, State::Within(packet)));
        }
        if produced == 0 {
            return Err(Error::Corrupt);
        }
        Ok((progress, State::Ready))
    }

    /// Reads into `out`; without room the wire is not asked.
    fn read(&mut self, input: &[u8], out: &mut [u8]) -> Result<(Step, bool)> {
        if out.is_empty() {
            return Ok((Step::default(), false));
        }
        self.wire.read(input, out)
    }

    /// With `out` full: is there more? Only the packet's next byte can tell.
    fn look_ahead(&mut self, input: &[u8], used: &mut usize) -> Result<(bool, Option<u8>)> {
        let mut byte = [0];
        let (step, all) = self.wire.read(&input[*used..], &mut byte)?;
        *used += step.used;
        let ahead = (step.written == 1).then_some(byte[0]);
        Ok((all && ahead.is_none(), ahead))
    }

    /// The totals since the decompressor was made.
    pub fn stats(&self) -> DecompressStats {
        DecompressStats {
            memory_bytes: self.account.used() as u64,
            memory_peak_bytes: self.account.peak() as u64,
            ..self.totals
        }
    }
}
