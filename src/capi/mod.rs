//! The C interface: everything that is unsafe because C calls it, or because
//! it allocates on behalf of C. C callers read include/sshflow.h, which is made
//! from these files.

// What the header says of pointers is the safety contract of every export.
#![allow(clippy::missing_safety_doc)]

pub(crate) mod alloc;
mod guard;
mod handle;
mod shared;

pub mod version;
// The order of the header.
pub mod config;
pub mod method;

pub mod compressor;
pub mod decompressor;

pub mod link;
pub mod tcp;
pub mod window;
