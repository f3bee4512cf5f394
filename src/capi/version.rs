//! Version, build and status.

use std::ffi::CStr;
use std::io::Write;
use std::sync::OnceLock;

use libc::{c_char, c_int};

use crate::compression::{zlib_engine, zstd_engine};
use crate::Error;

/// Success.
pub const SSHFLOW_OK: c_int = 0;
/// Not an error: the output is full, call again.
pub const SSHFLOW_MORE: c_int = 1;
/// An argument is NULL, out of bounds or of no known kind.
pub const SSHFLOW_ERR_INVALID_ARGUMENT: c_int = -1;
/// Memory could not be allocated.
pub const SSHFLOW_ERR_NO_MEMORY: c_int = -2;
/// The output buffer is too small; nothing happened, the call can be repeated.
pub const SSHFLOW_ERR_BUFFER_TOO_SMALL: c_int = -3;
/// The peer sent what the wire format does not allow.
pub const SSHFLOW_ERR_CORRUPT: c_int = -4;
/// A packet decompresses to more than `max_payload`.
pub const SSHFLOW_ERR_TOO_LARGE: c_int = -5;
/// An unknown method, or something this system cannot do.
pub const SSHFLOW_ERR_UNSUPPORTED: c_int = -6;
/// The handle failed earlier, or the call does not fit its state.
pub const SSHFLOW_ERR_STATE: c_int = -7;
/// A fault of the library itself; the handle is unusable, free it.
pub const SSHFLOW_ERR_INTERNAL: c_int = -8;

/// The version of this header as 0x00MMmmpp, to be compared at compile time;
/// sshflow_version_number() is the version of the library that was loaded.
pub const SSHFLOW_VERSION_NUMBER: u32 = 0x000100;

// The C header needs a literal, so that it is compared here instead of computed.
const _: () = {
    const fn number(text: &str) -> u32 {
        let (mut number, mut at) = (0, 0);
        while at < text.len() {
            number = number * 10 + (text.as_bytes()[at] - b'0') as u32;
            at += 1;
        }
        number
    }
    let version = number(env!("CARGO_PKG_VERSION_MAJOR")) << 16
        | number(env!("CARGO_PKG_VERSION_MINOR")) << 8
        | number(env!("CARGO_PKG_VERSION_PATCH"));
    assert!(version == SSHFLOW_VERSION_NUMBER);
};

/// The library's version as 0x00MMmmpp: major, minor, patch.
#[no_mangle]
pub extern "C" fn sshflow_version_number() -> u32 {
    SSHFLOW_VERSION_NUMBER
}

fn c_str(text: &'static str) -> *const c_char {
    CStr::from_bytes_with_nul(text.as_bytes())
        .unwrap_or(c"unknown")
        .as_ptr()
}

/// The library's version, as in "0.1.0". Static; never NULL.
#[no_mangle]
pub extern "C" fn sshflow_version_string() -> *const c_char {
    c_str(concat!(env!("CARGO_PKG_VERSION"), "\0"))
}

/// The engines, their versions as loaded, and whether they are the system's or
/// bundled, for bug reports: "sshflow 0.1.0, zlib 1.2.13 (system), zstd 1.5.4
/// (system)". Static; never NULL.
#[no_mangle]
pub extern "C" fn sshflow_build_info() -> *const c_char {
    static TEXT: OnceLock<[u8; 128]> = OnceLock::new();
    let text = TEXT.get_or_init(|| {
        let mut text = [0; 128];
        // Cut at the end of the array; the last byte stays 0.
        let mut room = &mut text[..127];
        let _ = write!(
            room,
            "sshflow {}, {} {} ({}), zstd {} ({})",
            env!("CARGO_PKG_VERSION"),
            zlib_engine::NAME,
            zlib_engine::version(),
            zlib_engine::ORIGIN,
            zstd_engine::version(),
            env!("SSHFLOW_ZSTD_ORIGIN"),
        );
        text
    });
    text.as_ptr().cast()
}

/// One sentence for a status code. Static; never NULL, for any number.
#[no_mangle]
pub extern "C" fn sshflow_strerror(code: c_int) -> *const c_char {
    const ERRORS: [(Error, &CStr); 8] = [
        (Error::InvalidArgument, c"invalid argument"),
        (
            Error::NoMemory,
            c"out of memory or over the configured memory limit",
        ),
        (Error::BufferTooSmall, c"output buffer too small"),
        (Error::Corrupt, c"malformed compressed data"),
        (
            Error::TooLarge,
            c"packet decompresses to more than max_payload",
        ),
        (Error::Unsupported, c"not supported"),
        (
            Error::State,
            c"handle is in the wrong state or failed earlier",
        ),
        (Error::Internal, c"internal error"),
    ];
    let text = match code {
        SSHFLOW_OK => c"success",
        SSHFLOW_MORE => c"output full, call again",
        _ => ERRORS
            .iter()
            .find(|(error, _)| error.code() == code)
            .map_or(c"unknown status code", |(_, text)| *text),
    };
    text.as_ptr()
}
