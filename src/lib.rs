#![deny(unsafe_code)]
//! Compression that never costs more than it gains, and channel windows that
//! fit the path, for SSH implementations that already exist.

pub mod compression;
pub mod error;
pub mod window;

pub use error::{Error, Result};
