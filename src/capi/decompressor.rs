//! Decompressors.

use libc::c_int;

use super::config::sshflow_config;
use super::guard::export;
use super::handle::{opaque, Elements, Exclusive, Given, Growing, Handle, Out, Room, Shared};
use super::version::{SSHFLOW_MORE, SSHFLOW_OK};
use crate::compression::{Decompressor, Method};
use crate::config::Config;
use crate::stats::DecompressStats;

/// Decompresses the payloads of one direction of one connection, for the life
/// of one set of keys.
#[allow(non_camel_case_types)]
pub struct sshflow_decompressor(Handle<Decompressor>);
opaque!(sshflow_decompressor, Decompressor);

/// Makes a decompressor and writes it to `*out`, on success only. `config` NULL
/// means the defaults. Cheap: decoders are allocated by the first packet that
/// needs them. Make a new one after each key exchange; free it with
/// sshflow_decompressor_free().
///
/// Returns SSHFLOW_OK, SSHFLOW_ERR_INVALID_ARGUMENT for an unknown method or
/// `out` NULL, or SSHFLOW_ERR_NO_MEMORY.
#[no_mangle]
pub unsafe extern "C" fn sshflow_decompressor_new(
    method: c_int,
    config: *const sshflow_config,
    out: *mut *mut sshflow_decompressor,
) -> c_int {
    export!(
        config: Option<Shared<sshflow_config>> = config,
        out: Out<*mut sshflow_decompressor> = out;
        {
            let method = Method::from_number(method)?;
            let defaults = Config::new();
            let config = config.as_deref().unwrap_or(&defaults);
            out.give(Decompressor::new(method, config)?)?;
            Ok(SSHFLOW_OK)
        }
    )
}

/// Decompresses one packet, in one or more calls. The first call is given the
/// whole packet. SSHFLOW_MORE says that `out` is full and the packet goes on:
/// call again with the input not yet used, which may be none, and fresh room.
/// SSHFLOW_OK ends the packet: all input is used, all output delivered.
/// `*in_used` and `*out_len` are written with these two results only, and count
/// this call's bytes. No pointer is kept between calls; `in` and `out` must not
/// overlap.
///
/// Returns, besides, SSHFLOW_ERR_CORRUPT for what the wire does not allow;
/// SSHFLOW_ERR_TOO_LARGE for a packet of more than `max_payload` bytes, before
/// more than that was produced; SSHFLOW_ERR_NO_MEMORY; after any of these
/// SSHFLOW_ERR_STATE for every call. SSHFLOW_ERR_INVALID_ARGUMENT for NULL, an
/// empty packet, or input whose length is not what was left of the packet;
/// nothing is changed then.
#[no_mangle]
pub unsafe extern "C" fn sshflow_decompress(
    decompressor: *mut sshflow_decompressor,
    r#in: *const u8,
    in_len: usize,
    in_used: *mut usize,
    out: *mut u8,
    out_capacity: usize,
    out_len: *mut usize,
) -> c_int {
    export!(
        decompressor: Exclusive<sshflow_decompressor> = decompressor,
        input: Elements<u8> = (r#in, in_len),
        in_used: Out<usize> = in_used,
        room: Room = (out, out_capacity),
        out_len: Out<usize> = out_len;
        {
            let progress = decompressor.decompress(input.as_slice(), &mut room)?;
            in_used.set(progress.used);
            out_len.set(progress.written);
            Ok(if progress.more { SSHFLOW_MORE } else { SSHFLOW_OK })
        }
    )
}

/// Writes the totals to `*stats`, of which the caller knows `stats_size` bytes
/// (sizeof *stats). A shorter structure gets the front, a longer one zeroes
/// behind.
///
/// Returns SSHFLOW_OK, or SSHFLOW_ERR_INVALID_ARGUMENT for NULL and for a size
/// of 0 or above 4096.
#[no_mangle]
pub unsafe extern "C" fn sshflow_decompressor_stats(
    decompressor: *const sshflow_decompressor,
    stats: *mut DecompressStats,
    stats_size: usize,
) -> c_int {
    export!(
        decompressor: Shared<sshflow_decompressor> = decompressor,
        stats: Growing<DecompressStats> = (stats, stats_size);
        {
            stats.set(decompressor.stats());
            Ok(SSHFLOW_OK)
        }
    )
}

/// Frees a decompressor and zeroes what held payload. NULL is a no-op.
#[no_mangle]
pub unsafe extern "C" fn sshflow_decompressor_free(decompressor: *mut sshflow_decompressor) {
    export!(decompressor: Given<sshflow_decompressor> = decompressor; {
        decompressor.free();
        Ok(SSHFLOW_OK)
    });
}
