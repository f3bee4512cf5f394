//! The edge to the kernel. `unsafe` is allowed in these files and nowhere else in the lab.

pub mod capsule;
pub mod janitor;
pub mod netns;
pub mod pty;
pub mod realtime;
pub mod spawn;
pub mod tcp;
pub mod tun;
