#![deny(unsafe_code)]
//! Compression that never costs more than it gains, and channel windows that
//! fit the path, for SSH implementations that already exist.

#[allow(unsafe_code)]
pub mod capi;
pub mod compression;
pub mod config;
pub mod error;
pub mod stats;
pub mod window;

pub use error::{Error, Result};
