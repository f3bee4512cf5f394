#![deny(unsafe_code)]
//! Compression: the choice of effort, the codecs and their wire formats.

mod compressor;
mod decompressor;
pub mod effort;
mod method;
mod payload;
pub mod probe;
mod zlib;
#[allow(unsafe_code)]
pub(crate) mod zlib_engine;
mod zstd;
#[allow(unsafe_code)]
pub(crate) mod zstd_engine;
mod zstd_frame;

pub use compressor::{compress_bound, Compressor, Flags};
pub use decompressor::{Decompressor, Progress};
pub use method::{Method, ZSTD_NAME};

/// What an encoder made of a payload.
struct Encoded {
    /// Bytes on the wire.
    len: usize,
    /// What was done in the end.
    effort: effort::Effort,
}
