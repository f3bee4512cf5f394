#![forbid(unsafe_code)]
//! What the fuzzer runs, one function for each target. `cargo test` runs the
//! same functions over the seeds and over mutations of them
//! (tests/fuzz_replay.rs), so that they are compiled and work at any time.

mod config_set;
mod decompress;
mod input;
mod round_trip;
mod window;

pub use config_set::config_set;
pub use decompress::decompress;
pub use round_trip::round_trip;
pub use window::window;
