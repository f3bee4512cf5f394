//! Compressors.

use std::slice;

use libc::c_int;

use super::config::sshflow_config;
use super::guard::export;
use super::handle::{opaque, Elements, Exclusive, Given, Growing, Handle, Out, Room, Shared};
use super::version::SSHFLOW_OK;
use crate::compression::{Compressor, Flags, Method};
use crate::config::Config;
use crate::stats::CompressStats;
use crate::{Error, Result};

/// Latency comes first for this packet: a keystroke, an echo.
pub const SSHFLOW_PACKET_INTERACTIVE: u32 = 1;
/// The packet is stored, and enters no history that later packets are matched
/// against: a password typed at a prompt.
pub const SSHFLOW_PACKET_SECRET: u32 = 2;
/// The peer's channel window is full behind the packet that comes next, or, said
/// without one, at present: then it, not the network, is what holds the sender.
pub const SSHFLOW_LINK_WINDOW_LIMITED: u32 = 1;

/// What sets the pace of a connection is not known, because too little was
/// sent or nothing has to be chosen.
pub const SSHFLOW_PACE_UNKNOWN: c_int = 0;
/// The sender: its CPU, or where its data comes from.
pub const SSHFLOW_PACE_SENDER: c_int = 1;
/// The link.
pub const SSHFLOW_PACE_LINK: c_int = 2;
/// The peer: its CPU, or where its data goes.
pub const SSHFLOW_PACE_PEER: c_int = 3;
/// The peer's channel window.
pub const SSHFLOW_PACE_WINDOW: c_int = 4;

/// A piece of a payload. `data` may be NULL if `len` is 0.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sshflow_slice {
    /// The first byte.
    pub data: *const u8,
    /// Bytes.
    pub len: usize,
}

/// Compresses the payloads of one direction of one connection.
#[allow(non_camel_case_types)]
pub struct sshflow_compressor(Handle<Compressor>);
opaque!(sshflow_compressor, Compressor);

/// Makes a compressor and writes it to `*out`, on success only. `config` NULL
/// means the defaults. Cheap: engines are allocated by the first packet that
/// needs them. Free it with sshflow_compressor_free().
///
/// Returns SSHFLOW_OK, SSHFLOW_ERR_INVALID_ARGUMENT for an unknown method or
/// `out` NULL, or SSHFLOW_ERR_NO_MEMORY.
#[no_mangle]
pub unsafe extern "C" fn sshflow_compressor_new(
    method: c_int,
    config: *const sshflow_config,
    out: *mut *mut sshflow_compressor,
) -> c_int {
    export!(
        config: Option<Shared<sshflow_config>> = config,
        out: Out<*mut sshflow_compressor> = out;
        {
            let method = Method::from_number(method)?;
            let defaults = Config::new();
            let config = config.as_deref().unwrap_or(&defaults);
            out.give(Compressor::new(method, config)?)?;
            Ok(SSHFLOW_OK)
        }
    )
}

/// Compresses one SSH payload (RFC 4253 section 6: what is between padding
/// length and padding), given as `part_count` pieces that are taken as one.
/// What stands in `out` then decodes to exactly this payload as soon as it
/// arrives. `out` must not overlap the payload; its capacity must be at least
/// sshflow_compress_bound() for the payload's length. `*out_len` is written on
/// success only. `flags`: SSHFLOW_PACKET_ bits, and SSHFLOW_PACKET_GROUP(n).
///
/// Returns SSHFLOW_OK; SSHFLOW_ERR_BUFFER_TOO_SMALL, with the stream
/// untouched, so that the call can be repeated with more room;
/// SSHFLOW_ERR_INVALID_ARGUMENT for NULL, unknown flags or a payload of 0
/// bytes; SSHFLOW_ERR_TOO_LARGE for a payload over 1 GiB. Engines that cannot
/// be allocated are no error: packets go out stored then.
#[no_mangle]
pub unsafe extern "C" fn sshflow_compress(
    compressor: *mut sshflow_compressor,
    parts: *const sshflow_slice,
    part_count: usize,
    flags: u32,
    out: *mut u8,
    out_capacity: usize,
    out_len: *mut usize,
) -> c_int {
    export!(
        compressor: Exclusive<sshflow_compressor> = compressor,
        parts: Elements<sshflow_slice> = (parts, part_count),
        room: Room = (out, out_capacity),
        out_len: Out<usize> = out_len;
        {
            let flags = Flags::from_bits(flags)?;
            let parts = readable(parts.as_slice())?;
            out_len.set(compressor.compress(parts, flags, &mut room)?);
            Ok(SSHFLOW_OK)
        }
    )
}

/// The pieces as slices, each checked.
fn readable(parts: &[sshflow_slice]) -> Result<impl Iterator<Item = &[u8]> + Clone> {
    let valid = |part: &sshflow_slice| {
        part.len == 0 || !part.data.is_null() && part.len <= isize::MAX as usize
    };
    if !parts.iter().all(valid) {
        return Err(Error::InvalidArgument);
    }
    Ok(parts.iter().filter(|part| part.len > 0).map(|part| {
        // SAFETY: not NULL, and readable for its length as the caller of
        // sshflow_compress() promises.
        unsafe { slice::from_raw_parts(part.data, part.len) }
    }))
}

/// Tells the compressor what the host knows for free: its monotonic clock in
/// microseconds, the bytes waiting in its own output queue (SIZE_MAX: not
/// known), and SSHFLOW_LINK_ flags. Optional; call it before sshflow_compress()
/// as often as is convenient.
///
/// Returns SSHFLOW_OK, or SSHFLOW_ERR_INVALID_ARGUMENT for NULL or unknown
/// flags.
#[no_mangle]
pub unsafe extern "C" fn sshflow_compressor_feedback(
    compressor: *mut sshflow_compressor,
    now_us: u64,
    queued_bytes: usize,
    flags: u32,
) -> c_int {
    export!(compressor: Exclusive<sshflow_compressor> = compressor; {
        if flags & !SSHFLOW_LINK_WINDOW_LIMITED != 0 {
            return Err(Error::InvalidArgument);
        }
        let queued = (queued_bytes != usize::MAX).then_some(queued_bytes);
        // Packets are timed by the library's own clock.
        let _ = now_us;
        compressor.feedback(queued, flags & SSHFLOW_LINK_WINDOW_LIMITED != 0);
        Ok(SSHFLOW_OK)
    })
}

/// Begins a fresh wire stream after a key exchange, perhaps with another
/// method. What was learned of the data and the link, and the totals, stay.
///
/// Returns SSHFLOW_OK, or SSHFLOW_ERR_INVALID_ARGUMENT for NULL or an unknown
/// method.
#[no_mangle]
pub unsafe extern "C" fn sshflow_compressor_rekey(
    compressor: *mut sshflow_compressor,
    method: c_int,
) -> c_int {
    export!(compressor: Exclusive<sshflow_compressor> = compressor; {
        compressor.rekey(Method::from_number(method)?);
        Ok(SSHFLOW_OK)
    })
}

/// Writes the totals to `*stats`, of which the caller knows `stats_size` bytes
/// (sizeof *stats). A shorter structure gets the front, a longer one zeroes
/// behind.
///
/// Returns SSHFLOW_OK, or SSHFLOW_ERR_INVALID_ARGUMENT for NULL and for a size
/// of 0 or above 4096.
#[no_mangle]
pub unsafe extern "C" fn sshflow_compressor_stats(
    compressor: *const sshflow_compressor,
    stats: *mut CompressStats,
    stats_size: usize,
) -> c_int {
    export!(
        compressor: Shared<sshflow_compressor> = compressor,
        stats: Growing<CompressStats> = (stats, stats_size);
        {
            stats.set(compressor.stats());
            Ok(SSHFLOW_OK)
        }
    )
}

/// Frees a compressor and zeroes what held payload. NULL is a no-op.
#[no_mangle]
pub unsafe extern "C" fn sshflow_compressor_free(compressor: *mut sshflow_compressor) {
    export!(compressor: Given<sshflow_compressor> = compressor; {
        compressor.free();
        Ok(SSHFLOW_OK)
    });
}
