//! Zstandard contexts behind safe functions. Unsafe because they are calls
//! into libzstd.

use std::ptr::NonNull;

use zstd_sys as sys;

use crate::capi::alloc::{engine_alloc, engine_free, Account};
use crate::{Error, Result};

fn memory(account: &Account) -> sys::ZSTD_customMem {
    sys::ZSTD_customMem {
        customAlloc: Some(engine_alloc),
        customFree: Some(engine_free),
        opaque: account.as_opaque(),
    }
}

fn check(code: usize, otherwise: Error) -> Result<usize> {
    // SAFETY: these two take any number.
    unsafe {
        if sys::ZSTD_isError(code) == 0 {
            Ok(code)
        } else if sys::ZSTD_getErrorCode(code) == sys::ZSTD_ErrorCode::ZSTD_error_memory_allocation
        {
            Err(Error::NoMemory)
        } else {
            Err(otherwise)
        }
    }
}

fn out_buffer(out: &mut [u8]) -> sys::ZSTD_outBuffer {
    sys::ZSTD_outBuffer {
        dst: out.as_mut_ptr().cast(),
        size: out.len(),
        pos: 0,
    }
}

fn in_buffer(input: &[u8]) -> sys::ZSTD_inBuffer {
    sys::ZSTD_inBuffer {
        src: input.as_ptr().cast(),
        size: input.len(),
        pos: 0,
    }
}

/// What a step of a context did.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Step {
    /// Input bytes taken.
    pub(crate) used: usize,
    /// Output bytes written.
    pub(crate) written: usize,
    /// Compressing: nothing is left inside. Decompressing: a frame ended.
    pub(crate) complete: bool,
}

/// The window of a level, as a power of two, where nothing limits it.
pub(crate) fn natural_window_log(level: i8) -> u32 {
    // SAFETY: takes any level; sizes of 0 mean "not known".
    unsafe { sys::ZSTD_getCParams(level.into(), 0, 0).windowLog }
}

/// Bytes that a compressing context of this level and window holds.
pub(crate) fn memory_of(level: i8, window_log: u32) -> usize {
    // SAFETY: pure functions of numbers.
    unsafe {
        let mut parameters = sys::ZSTD_getCParams(level.into(), 0, 0);
        parameters.windowLog = window_log;
        // A source size of 0 means "not known" here.
        let parameters = sys::ZSTD_adjustCParams(parameters, 0, 0);
        let size = sys::ZSTD_estimateCStreamSize_usingCParams(parameters);
        check(size, Error::Internal).unwrap_or(usize::MAX)
    }
}

/// A compressing context.
pub(crate) struct Compressor {
    context: NonNull<sys::ZSTD_CCtx>,
    _account: Account,
}

// SAFETY: a context is bound to no thread.
unsafe impl Send for Compressor {}

impl Compressor {
    /// An empty context; the tables come with the first bytes.
    pub(crate) fn new(account: &Account) -> Result<Self> {
        // SAFETY: the account outlives the context, which is freed first.
        let context = unsafe { sys::ZSTD_createCCtx_advanced(memory(account)) };
        Ok(Compressor {
            context: NonNull::new(context).ok_or(Error::NoMemory)?,
            _account: account.clone(),
        })
    }

    fn set(&mut self, parameter: sys::ZSTD_cParameter, value: i32) -> Result<()> {
        // SAFETY: the context is live.
        let code = unsafe { sys::ZSTD_CCtx_setParameter(self.context.as_ptr(), parameter, value) };
        check(code, Error::Internal).map(drop)
    }

    /// Forgets the frame in the works; the next byte begins a frame with this
    /// level and window, without checksum, content size and dictionary id.
    pub(crate) fn begin_frame(&mut self, level: i8, window_log: u32) -> Result<()> {
        // SAFETY: the context is live.
        let code = unsafe {
            sys::ZSTD_CCtx_reset(
                self.context.as_ptr(),
                sys::ZSTD_ResetDirective::ZSTD_reset_session_only,
            )
        };
        check(code, Error::Internal)?;
        self.set(sys::ZSTD_cParameter::ZSTD_c_compressionLevel, level.into())?;
        self.set(sys::ZSTD_cParameter::ZSTD_c_windowLog, window_log as i32)?;
        self.set(sys::ZSTD_cParameter::ZSTD_c_contentSizeFlag, 0)?;
        self.set(sys::ZSTD_cParameter::ZSTD_c_checksumFlag, 0)?;
        self.set(sys::ZSTD_cParameter::ZSTD_c_dictIDFlag, 0)
    }

    /// Compresses input; with `flush` up to the end of a block.
    pub(crate) fn write(&mut self, input: &[u8], out: &mut [u8], flush: bool) -> Result<Step> {
        let directive = if flush {
            sys::ZSTD_EndDirective::ZSTD_e_flush
        } else {
            sys::ZSTD_EndDirective::ZSTD_e_continue
        };
        let (mut source, mut target) = (in_buffer(input), out_buffer(out));
        // SAFETY: the context is live, the buffers are live slices.
        let code = unsafe {
            sys::ZSTD_compressStream2(self.context.as_ptr(), &mut target, &mut source, directive)
        };
        let left = check(code, Error::Internal)?;
        Ok(Step {
            used: source.pos,
            written: target.pos,
            complete: flush && left == 0,
        })
    }
}

impl Drop for Compressor {
    fn drop(&mut self) {
        // SAFETY: made by ZSTD_createCCtx_advanced, freed once.
        unsafe { sys::ZSTD_freeCCtx(self.context.as_ptr()) };
    }
}

/// A decompressing context.
pub(crate) struct Decompressor {
    context: NonNull<sys::ZSTD_DCtx>,
    _account: Account,
}

// SAFETY: a context is bound to no thread.
unsafe impl Send for Decompressor {}

impl Decompressor {
    /// A context that refuses windows above `1 << window_log_max` bytes.
    pub(crate) fn new(account: &Account, window_log_max: u32) -> Result<Self> {
        // SAFETY: the account outlives the context, which is freed first.
        let context = unsafe { sys::ZSTD_createDCtx_advanced(memory(account)) };
        let context = Decompressor {
            context: NonNull::new(context).ok_or(Error::NoMemory)?,
            _account: account.clone(),
        };
        // SAFETY: the context is live.
        let code = unsafe {
            sys::ZSTD_DCtx_setParameter(
                context.context.as_ptr(),
                sys::ZSTD_dParameter::ZSTD_d_windowLogMax,
                window_log_max as i32,
            )
        };
        check(code, Error::Internal)?;
        Ok(context)
    }

    /// Decodes up to the end of a frame, of the input or of the room.
    pub(crate) fn read(&mut self, input: &[u8], out: &mut [u8]) -> Result<Step> {
        let (mut source, mut target) = (in_buffer(input), out_buffer(out));
        // SAFETY: the context is live, the buffers are live slices.
        let code =
            unsafe { sys::ZSTD_decompressStream(self.context.as_ptr(), &mut target, &mut source) };
        let hint = check(code, Error::Corrupt)?;
        Ok(Step {
            used: source.pos,
            written: target.pos,
            complete: hint == 0,
        })
    }
}

impl Drop for Decompressor {
    fn drop(&mut self) {
        // SAFETY: made by ZSTD_createDCtx_advanced, freed once.
        unsafe { sys::ZSTD_freeDCtx(self.context.as_ptr()) };
    }
}

/// The version of the engine in use.
pub(crate) fn version() -> &'static str {
    // SAFETY: libzstd returns a static string.
    let text = unsafe { std::ffi::CStr::from_ptr(sys::ZSTD_versionString()) };
    text.to_str().unwrap_or("unknown")
}
