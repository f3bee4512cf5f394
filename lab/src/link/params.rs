//! What can be set and what is counted in one direction of the link.
#![forbid(unsafe_code)]

use crate::error::{Error, Result};
use crate::units;
use serde::{Deserialize, Serialize};

/// One direction's settings. All may change while traffic flows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct Params {
    /// Bits per second of IP packets; 0 is no limit.
    pub rate: u64,
    /// One-way delay.
    pub delay_ns: u64,
    /// Bytes that may wait for the transmitter; 0 is no limit.
    pub queue: u64,
    /// Probability that a wire packet is lost.
    pub loss: f64,
    /// Fault: so many of the next packets with payload get one byte changed.
    pub corrupt: u64,
    /// Fault: nothing passes.
    pub blackhole: bool,
}

impl Params {
    /// Applies `rate=400M`, `delay=50ms`, `queue=4MiB`, `loss=0.1%`, `corrupt=1`, `blackhole=on`.
    pub fn apply(&mut self, word: &str) -> Result<()> {
        let (key, value) = word
            .split_once('=')
            .ok_or_else(|| Error::new(format!("\"{word}\" is not KEY=VALUE")))?;
        match key {
            "rate" => self.rate = units::rate(value)?,
            "delay" => self.delay_ns = units::duration_ns(value)?,
            "queue" => self.queue = units::bytes(value)?,
            "loss" => self.loss = units::probability(value)?,
            "corrupt" => {
                self.corrupt = value
                    .parse()
                    .map_err(|_| Error::new(format!("\"{value}\" is not a number of packets")))?;
            }
            "blackhole" => {
                self.blackhole = match value {
                    "on" => true,
                    "off" => false,
                    _ => return Err(Error::new("blackhole is on or off")),
                }
            }
            _ => {
                return Err(Error::new(format!(
                    "unknown setting \"{key}\" (rate, delay, queue, loss, corrupt, blackhole)"
                )))
            }
        }
        Ok(())
    }
}

/// One direction's counters since the start. Packets and bytes are those of the wire: a piece
/// that the kernel handed over uncut counts as the segments it stands for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct Counters {
    pub packets_in: u64,
    pub bytes_in: u64,
    pub packets_out: u64,
    pub bytes_out: u64,
    /// Dropped because the queue was full, or by `blackhole`.
    pub packets_dropped: u64,
    pub bytes_dropped: u64,
    /// Lost at random.
    pub packets_lost: u64,
    pub packets_corrupted: u64,
    /// Dropped by the kernel because this program was late, or refused by it.
    pub device_drops: u64,
    /// Waiting for the transmitter now, and at most so far.
    pub queue_bytes: u64,
    pub queue_bytes_max: u64,
    /// Time spent waiting for the transmitter.
    pub queue_delay_sum_ns: u64,
    pub queue_delay_max_ns: u64,
    pub queue_delay_samples: u64,
    /// How late packets were handed over after they were due: the program's own error.
    pub late_sum_ns: u64,
    pub late_max_ns: u64,
    pub late_samples: u64,
}

impl Counters {
    pub fn waited(&mut self, ns: u64) {
        self.queue_delay_sum_ns += ns;
        self.queue_delay_max_ns = self.queue_delay_max_ns.max(ns);
        self.queue_delay_samples += 1;
    }

    pub fn late(&mut self, ns: u64) {
        self.late_sum_ns += ns;
        self.late_max_ns = self.late_max_ns.max(ns);
        self.late_samples += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_words() {
        let mut p = Params::default();
        for w in [
            "rate=400M",
            "delay=50ms",
            "queue=4MiB",
            "loss=0.1%",
            "blackhole=on",
        ] {
            p.apply(w).unwrap();
        }
        assert_eq!(
            (p.rate, p.delay_ns, p.queue),
            (400_000_000, 50_000_000, 4 << 20)
        );
        assert!(p.blackhole);
        for bad in [
            "rate",
            "speed=3",
            "delay=long",
            "blackhole=perhaps",
            "corrupt=x",
        ] {
            assert!(p.apply(bad).is_err(), "{bad}");
        }
    }
}
