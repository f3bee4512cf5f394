#![deny(unsafe_code)]
//! Compression: the choice of effort, the codecs and their wire formats.

pub mod effort;
pub mod probe;
