#![forbid(unsafe_code)]
//! What can go wrong, with the stable numbers that C callers see.

use std::fmt;

/// Every way in which a call can fail. The numbers are part of the ABI and are
/// never used again for something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Error {
    /// An argument is NULL, out of bounds or of no known kind.
    InvalidArgument = -1,
    /// Memory could not be allocated, or the configured limit forbids it.
    NoMemory = -2,
    /// The caller's output buffer is too small; the call can be repeated.
    BufferTooSmall = -3,
    /// The peer sent what the wire format does not allow.
    Corrupt = -4,
    /// A packet decodes to more than `max_payload`.
    TooLarge = -5,
    /// An unknown method, or something this system cannot do.
    Unsupported = -6,
    /// The handle failed earlier, or the call does not fit its state.
    State = -7,
    /// A fault of the library itself; the handle is unusable.
    Internal = -8,
}

/// The result of everything here that can fail.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// The number that the C interface returns.
    pub const fn code(self) -> i32 {
        self as i32
    }

    /// One sentence for a person.
    pub const fn message(self) -> &'static str {
        match self {
            Error::InvalidArgument => "invalid argument",
            Error::NoMemory => "out of memory or over the configured memory limit",
            Error::BufferTooSmall => "output buffer too small",
            Error::Corrupt => "malformed compressed data",
            Error::TooLarge => "packet decompresses to more than max_payload",
            Error::Unsupported => "not supported",
            Error::State => "handle is in the wrong state or failed earlier",
            Error::Internal => "internal error",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for Error {}
