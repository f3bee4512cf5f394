//! The windows against a simulated path: rate, round trip, queue, send buffer,
//! consumer, congestion control and loss. Deterministic; what a run is compared
//! with is measured on the same path with a window that is never the limit, or
//! with OpenSSH's own.

mod congestion;
mod latency;
mod memory;
mod scenario;
mod session;
mod sharing;
mod tcp;
mod throughput;
#[path = "../window_support/mod.rs"]
mod window_support;
