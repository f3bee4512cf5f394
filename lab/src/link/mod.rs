//! The delay link: two network namespaces, a TUN device in each, and a program between them that
//! passes packets on at a set rate, after a set delay, through a queue of set size.

pub mod control;
mod engine;
pub mod packet;
pub mod params;
mod shaper;
mod tune;

pub use engine::{obstacle, Direction, Link, CLIENT_ADDRESS, SERVER_ADDRESS};
pub use params::{Counters, Params};
pub use tune::{settings, tune};
