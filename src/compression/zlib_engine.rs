//! Raw deflate and inflate engines behind safe functions. Unsafe because they
//! are calls into zlib, or into zlib-rs through the same interface.

#[cfg(feature = "zlib-rs")]
use libz_rs_sys as sys;
#[cfg(not(feature = "zlib-rs"))]
use libz_sys as sys;

use std::mem::size_of;

use libc::{c_int, c_uint, c_void};

use crate::capi::alloc::{engine_alloc, engine_free, try_box, Account};
use crate::{Error, Result};

// libz-sys leaves this declaration out; every zlib since 1.2.5 has it.
#[cfg(not(feature = "zlib-rs"))]
extern "C" {
    fn deflatePending(stream: *mut sys::z_stream, bytes: *mut c_uint, bits: *mut c_int) -> c_int;
}
#[cfg(feature = "zlib-rs")]
use sys::deflatePending;

/// A raw stream with the largest window: RFC 1951 without RFC 1950 around it.
const RAW_WINDOW_BITS: c_int = -15;
/// zlib's own default; OpenSSH's streams are made with it.
const MEMORY_LEVEL: c_int = 8;

/// What a step of an engine did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Step {
    /// Input bytes taken.
    pub(crate) used: usize,
    /// Output bytes written.
    pub(crate) written: usize,
}

/// What a compressor must offer to stand behind the zlib wire.
pub(crate) trait Deflate: Sized {
    /// An engine at the start of a stream.
    fn new(account: &Account) -> Result<Self>;
    /// Back to the start of a stream: no history, at a byte boundary.
    fn reset(&mut self) -> Result<()>;
    /// Changes the level; only between packets. Returns the bytes written,
    /// which are none for every engine known.
    fn set_level(&mut self, level: i8, out: &mut [u8]) -> Result<usize>;
    /// Compresses input; with `flush` up to a partial flush.
    fn write(&mut self, input: &[u8], out: &mut [u8], flush: bool) -> Result<Step>;
    /// How many bits of the last partial byte the engine holds back.
    fn pending_bits(&mut self) -> Result<u8>;
}

unsafe extern "C" fn zalloc(account: *mut c_void, items: c_uint, size: c_uint) -> *mut c_void {
    // SAFETY: zlib passes on the account that the stream was made with. The
    // product of two 32-bit numbers fits 64 bits; on smaller machines it
    // saturates and the allocation fails.
    unsafe { engine_alloc(account, (items as usize).saturating_mul(size as usize)) }
}

unsafe extern "C" fn zfree(account: *mut c_void, block: *mut c_void) {
    // SAFETY: zlib frees what zalloc gave, with the same account.
    unsafe { engine_free(account, block) }
}

// libz-sys has plain function pointers for the allocator, zlib-rs optional ones.
#[cfg(not(feature = "zlib-rs"))]
const ALLOCATOR: (sys::alloc_func, sys::free_func) = (zalloc, zfree);
#[cfg(feature = "zlib-rs")]
const ALLOCATOR: (Option<sys::alloc_func>, Option<sys::free_func>) = (Some(zalloc), Some(zfree));

fn new_stream(account: &Account) -> Result<Box<sys::z_stream>> {
    try_box(sys::z_stream {
        next_in: std::ptr::null_mut(),
        avail_in: 0,
        total_in: 0,
        next_out: std::ptr::null_mut(),
        avail_out: 0,
        total_out: 0,
        msg: std::ptr::null_mut(),
        state: std::ptr::null_mut(),
        zalloc: ALLOCATOR.0,
        zfree: ALLOCATOR.1,
        opaque: account.as_opaque(),
        data_type: 0,
        adler: 0,
        reserved: 0,
    })
}

fn check(code: c_int) -> Result<()> {
    match code {
        sys::Z_OK => Ok(()),
        sys::Z_MEM_ERROR => Err(Error::NoMemory),
        sys::Z_DATA_ERROR => Err(Error::Corrupt),
        _ => Err(Error::Internal),
    }
}

fn clamp(len: usize) -> c_uint {
    c_uint::try_from(len).unwrap_or(c_uint::MAX)
}

/// Points the stream at the caller's buffers for the length of one call.
fn lend(stream: &mut sys::z_stream, input: &[u8], out: &mut [u8]) {
    stream.next_in = input.as_ptr().cast_mut();
    stream.avail_in = clamp(input.len());
    stream.next_out = out.as_mut_ptr();
    stream.avail_out = clamp(out.len());
}

/// Takes the buffers back, so that no pointer is kept between calls.
fn take_back(stream: &mut sys::z_stream, input: &[u8], out: &[u8]) -> Step {
    let step = Step {
        used: (clamp(input.len()) - stream.avail_in) as usize,
        written: (clamp(out.len()) - stream.avail_out) as usize,
    };
    stream.next_in = std::ptr::null_mut();
    stream.next_out = std::ptr::null_mut();
    stream.avail_in = 0;
    stream.avail_out = 0;
    step
}

/// A raw deflate stream.
pub(crate) struct Deflater {
    // zlib checks that the stream stays where it was made, hence the box.
    stream: Box<sys::z_stream>,
    level: i8,
    /// The last output was full.
    #[cfg(feature = "zlib-rs")]
    cut_short: bool,
    _account: Account,
}

// SAFETY: zlib keeps nothing that is bound to a thread.
unsafe impl Send for Deflater {}

impl Deflate for Deflater {
    fn new(account: &Account) -> Result<Self> {
        let mut stream = new_stream(account)?;
        // SAFETY: the stream has valid allocators and lives in a box.
        let code = unsafe {
            sys::deflateInit2_(
                &mut *stream,
                sys::Z_DEFAULT_COMPRESSION,
                sys::Z_DEFLATED,
                RAW_WINDOW_BITS,
                MEMORY_LEVEL,
                sys::Z_DEFAULT_STRATEGY,
                sys::zlibVersion(),
                size_of::<sys::z_stream>() as c_int,
            )
        };
        check(code)?;
        Ok(Deflater {
            stream,
            level: 6,
            #[cfg(feature = "zlib-rs")]
            cut_short: false,
            _account: account.clone(),
        })
    }

    fn reset(&mut self) -> Result<()> {
        #[cfg(feature = "zlib-rs")]
        self.close_what_was_cut_short()?;
        // SAFETY: the stream was initialised in new().
        check(unsafe { sys::deflateReset(&mut *self.stream) })
    }

    fn set_level(&mut self, level: i8, out: &mut [u8]) -> Result<usize> {
        if level == self.level {
            return Ok(0);
        }
        lend(&mut self.stream, &[], out);
        // SAFETY: the stream was initialised in new() and its output points
        // at a live slice.
        let code =
            unsafe { sys::deflateParams(&mut *self.stream, level.into(), sys::Z_DEFAULT_STRATEGY) };
        let step = take_back(&mut self.stream, &[], out);
        check(code)?;
        self.level = level;
        Ok(step.written)
    }

    fn write(&mut self, input: &[u8], out: &mut [u8], flush: bool) -> Result<Step> {
        let mode = if flush {
            sys::Z_PARTIAL_FLUSH
        } else {
            sys::Z_NO_FLUSH
        };
        lend(&mut self.stream, input, out);
        // SAFETY: the stream was initialised in new(); its buffers are live
        // slices of the lengths given.
        let code = unsafe { sys::deflate(&mut *self.stream, mode) };
        let step = take_back(&mut self.stream, input, out);
        #[cfg(feature = "zlib-rs")]
        {
            self.cut_short = step.written == out.len();
        }
        match code {
            // No room, or nothing to do: the step tells which.
            sys::Z_BUF_ERROR => Ok(step),
            code => check(code).map(|()| step),
        }
    }

    fn pending_bits(&mut self) -> Result<u8> {
        let (mut bytes, mut bits) = (0, 0);
        // SAFETY: the stream was initialised in new(); both results are live.
        check(unsafe { deflatePending(&mut *self.stream, &mut bytes, &mut bits) })?;
        u8::try_from(bits)
            .ok()
            .filter(|bits| *bits < 8 && bytes == 0)
            .ok_or(Error::Internal)
    }
}

#[cfg(feature = "zlib-rs")]
impl Deflater {
    /// A reset in zlib-rs (up to 0.6.8) after an output that was too short
    /// leaves two things behind: a block that is open, so that the next stream
    /// begins without a head, and the place of the bytes that found no room, so
    /// that it has less room and may abort the process. An empty block that is
    /// flushed whole and thrown away puts that right.
    fn close_what_was_cut_short(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.cut_short) {
            return Ok(());
        }
        // SAFETY: the stream was initialised in new().
        check(unsafe { sys::deflateReset(&mut *self.stream) })?;
        self.write(&[], &mut [0; 64], true).map(drop)
    }
}

impl Drop for Deflater {
    fn drop(&mut self) {
        // SAFETY: the stream was initialised in new() and is ended once.
        unsafe { sys::deflateEnd(&mut *self.stream) };
    }
}

/// What stopped the decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// At the end of a block, or for want of room: there may be more.
    Again,
    /// All input is used and all output that it gives is out.
    Drained,
}

/// A raw inflate stream.
pub(crate) struct Inflater {
    stream: Box<sys::z_stream>,
    _account: Account,
}

// SAFETY: zlib keeps nothing that is bound to a thread.
unsafe impl Send for Inflater {}

impl Inflater {
    /// A decoder at the start of a stream.
    pub(crate) fn new(account: &Account) -> Result<Self> {
        let mut stream = new_stream(account)?;
        // SAFETY: the stream has valid allocators and lives in a box.
        let code = unsafe {
            sys::inflateInit2_(
                &mut *stream,
                RAW_WINDOW_BITS,
                sys::zlibVersion(),
                size_of::<sys::z_stream>() as c_int,
            )
        };
        check(code)?;
        Ok(Inflater {
            stream,
            _account: account.clone(),
        })
    }

    /// Decodes up to the end of a block, of the input or of the room.
    pub(crate) fn read(&mut self, input: &[u8], out: &mut [u8]) -> Result<(Step, Stop)> {
        lend(&mut self.stream, input, out);
        // SAFETY: the stream was initialised in new(); its buffers are live
        // slices of the lengths given.
        let code = unsafe { sys::inflate(&mut *self.stream, sys::Z_BLOCK) };
        let step = take_back(&mut self.stream, input, out);
        match code {
            sys::Z_OK => Ok((step, Stop::Again)),
            // No progress for want of room is not the end of the packet.
            sys::Z_BUF_ERROR if out.is_empty() => Ok((step, Stop::Again)),
            sys::Z_BUF_ERROR => Ok((step, Stop::Drained)),
            // SSH has no end of stream and no preset dictionary.
            sys::Z_STREAM_END | sys::Z_NEED_DICT => Err(Error::Corrupt),
            code => check(code).map(|()| (step, Stop::Again)),
        }
    }

    /// Whether the decoder stands between two blocks.
    pub(crate) fn at_block_end(&self) -> bool {
        self.stream.data_type & 128 != 0
    }
}

impl Drop for Inflater {
    fn drop(&mut self) {
        // SAFETY: the stream was initialised in new() and is ended once.
        unsafe { sys::inflateEnd(&mut *self.stream) };
    }
}

/// What the engine is called.
#[cfg(feature = "zlib-rs")]
pub(crate) const NAME: &str = "zlib-rs, as zlib";
#[cfg(not(feature = "zlib-rs"))]
pub(crate) const NAME: &str = "zlib";

/// Where it comes from.
#[cfg(feature = "zlib-rs")]
pub(crate) const ORIGIN: &str = "built in";
#[cfg(not(feature = "zlib-rs"))]
pub(crate) const ORIGIN: &str = env!("SSHFLOW_ZLIB_ORIGIN");

/// The version of the engine in use.
pub(crate) fn version() -> &'static str {
    // SAFETY: zlib returns a static string.
    let text = unsafe { std::ffi::CStr::from_ptr(sys::zlibVersion()) };
    text.to_str().unwrap_or("unknown")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(len: usize) -> Vec<u8> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        };
        (0..len).map(|_| next()).collect()
    }

    /// What an inflater makes of a whole stream.
    fn inflate(account: &Account, mut input: &[u8], len: usize) -> Vec<u8> {
        let mut inflater = Inflater::new(account).unwrap();
        let mut plain = vec![0; len];
        let mut at = 0;
        loop {
            let (step, stop) = inflater.read(input, &mut plain[at..]).unwrap();
            input = &input[step.used..];
            at += step.written;
            if stop == Stop::Drained || step == Step::default() {
                assert_eq!((at, input.len()), (len, 0));
                return plain;
            }
        }
    }

    /// What an attempt that found no room leaves behind is not in the next stream.
    #[test]
    fn a_reset_forgets_an_output_that_was_too_short() {
        let account = Account::new(1 << 24).unwrap();
        let cut = noise(70_000);
        let next = noise(40_000);
        for level in [1, 6, 9] {
            let mut deflater = Deflater::new(&account).unwrap();
            let mut out = vec![0; 80_000];
            deflater.set_level(level, &mut out).unwrap();
            for room in (0..400).map(|n| 16_000 + 131 * n) {
                deflater.write(&cut, &mut out[..room], true).unwrap();
                deflater.reset().unwrap();
                let step = deflater.write(&next, &mut out, true).unwrap();
                assert_eq!(step.used, next.len());
                assert!(inflate(&account, &out[..step.written], next.len()) == next);
                deflater.reset().unwrap();
            }
        }
    }
}
