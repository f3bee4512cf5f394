//! Waits until the sender's kernel buffer has filled once: what comes after shows the steady state.
#![forbid(unsafe_code)]

use crate::sys::tcp;
use std::time::{Duration, Instant};

const PERIOD: Duration = Duration::from_millis(10);
/// The queue counts as full when it has not grown for this long.
const STEADY: Duration = Duration::from_millis(500);
const AT_LEAST: Duration = Duration::from_millis(1000);
const AT_MOST: Duration = Duration::from_secs(12);
/// Growth that counts.
const GROWTH: f64 = 1.05;

/// Waits; says what it saw. `processes` names those that may hold the connection.
pub fn wait(mut processes: impl FnMut() -> Vec<i32>) -> String {
    let start = Instant::now();
    let mut socket = None;
    let (mut most, mut since) = (0u64, start);
    while start.elapsed() < AT_MOST {
        std::thread::sleep(PERIOD);
        if socket.is_none() {
            socket = processes().into_iter().find_map(tcp::socket_of);
        }
        let Some(state) = socket.as_ref().and_then(tcp::state) else {
            // Nothing to look at (no permission): a fixed time must do.
            if start.elapsed() > 2 * AT_LEAST {
                return "the sender's socket cannot be looked at: waited 2 s".into();
            }
            continue;
        };
        if state.queued_bytes as f64 > most as f64 * GROWTH {
            (most, since) = (state.queued_bytes, Instant::now());
        }
        if since.elapsed() > STEADY && start.elapsed() > AT_LEAST {
            return format!("{most} bytes after {:.2} s", start.elapsed().as_secs_f64());
        }
    }
    format!("still growing after {AT_MOST:?}, at {most} bytes")
}
