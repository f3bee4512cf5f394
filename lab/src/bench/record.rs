//! One line of JSON for each run, with everything that is needed to do it again.
#![forbid(unsafe_code)]

use super::matrix::{CpuSpec, Group, LinkSpec, Variant};
use crate::data::Data;
use crate::link::Counters;
use crate::sys::tcp::TcpState;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Which machine, kernel and settings a file of results is from.
#[derive(Debug, Clone, Serialize, Deserialize, Default)]
pub struct Host {
    pub kernel: String,
    pub cpu: String,
    pub cores: usize,
    pub memory_kb: u64,
    pub lab_version: String,
    pub openssl: String,
    /// How the ends were slowed, and what a calibration run saw.
    pub slow_cpu: String,
    pub calibration: Vec<String>,
    /// Copying memory, MB/s.
    pub memcpy_mb_s: f64,
    /// `openssl speed`, MB/s of each cipher that was used.
    pub ciphers_mb_s: BTreeMap<String, f64>,
}

/// What was to be done.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Task {
    pub matrix: String,
    pub group: Group,
    pub link: LinkSpec,
    pub cpu: CpuSpec,
    pub data: Option<Data>,
    pub variant: Variant,
    pub repeat: usize,
    /// Place in the whole order of runs.
    pub order: usize,
    pub seed: u64,
}

/// What came of it.
#[derive(Debug, Clone, Serialize, Deserialize, Default)]
pub struct Outcome {
    /// Why the run does not count; a failed run has no result.
    pub error: Option<String>,
    /// The figure that is compared, and its unit.
    pub value: f64,
    pub unit: String,
    /// False where less is better.
    pub more_is_better: bool,
    pub bytes: u64,
    pub seconds: f64,
    /// From the start of the client to the first byte.
    pub first_byte_s: f64,
    /// IP bytes that the link carried in the direction of the data, and back.
    pub wire_bytes: Option<u64>,
    pub wire_bytes_back: Option<u64>,
    /// Bytes delivered for each IP byte, in the time that counts.
    pub packing: Option<f64>,
    pub client_cpu_s: Option<f64>,
    pub server_cpu_s: Option<f64>,
    /// Peak resident memory of each process, kB.
    pub peak_rss_kb: BTreeMap<String, u64>,
    /// Milliseconds, for drivers that measure latency.
    pub p50_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    pub max_ms: Option<f64>,
    /// All of them, in order of size.
    #[serde(default)]
    pub latencies_ms: Vec<f64>,
    /// Rate beside the latency, MB/s.
    pub beside_mb_s: Option<f64>,
    /// Of many channels: the fairness of their shares (Jain's index).
    pub fairness: Option<f64>,
    pub cipher: String,
    pub compression: String,
    /// The sender's connection at the end.
    pub tcp: Option<TcpState>,
    /// How the kernel buffer was seen to fill, for runs cut by time.
    pub fill: Option<String>,
    pub link_up: Option<Counters>,
    pub link_down: Option<Counters>,
    /// Seconds, bytes delivered, IP bytes carried so far.
    pub samples: Vec<(f64, u64, u64)>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// Seconds since the epoch.
    pub time: u64,
    pub client_version: String,
    pub server_version: String,
    /// Fingerprint of the variant's programs and libraries.
    #[serde(default)]
    pub build: String,
    pub congestion: String,
    pub tcp_rmem: String,
    pub tcp_wmem: String,
    pub load_before: String,
    pub task: Task,
    pub outcome: Outcome,
}

/// One line of a results file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "lowercase")]
pub enum Line {
    Host(Host),
    Run(Box<Record>),
}
