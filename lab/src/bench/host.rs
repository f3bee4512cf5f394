//! The machine: what it is, what its memory and ciphers can do, how it is slowed.
#![forbid(unsafe_code)]

use super::groups::{End, Groups, Role};
use super::record::Host;
use crate::error::{Error, Result};
use crate::payload::Spun;
use crate::sys::spawn::Spawn;
use std::time::Instant;

const MIB: usize = 1 << 20;

fn first_line_with(path: &str, key: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find(|l| l.starts_with(key)).unwrap_or("");
    line.split_once(':')
        .map_or("", |(_, v)| v)
        .trim()
        .to_string()
}

pub fn about(groups: &Groups) -> Host {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let memory = first_line_with("/proc/meminfo", "MemTotal");
    Host {
        kernel: format!("Linux {}", release.trim()),
        cpu: first_line_with("/proc/cpuinfo", "model name"),
        cores: std::thread::available_parallelism().map_or(1, |n| n.get()),
        memory_kb: memory
            .split_whitespace()
            .next()
            .and_then(|m| m.parse().ok())
            .unwrap_or(0),
        lab_version: env!("CARGO_PKG_VERSION").into(),
        openssl: Spawn::new(&["openssl", "version"])
            .read()
            .unwrap_or_default()
            .trim()
            .into(),
        slow_cpu: groups.about(),
        memcpy_mb_s: memcpy(),
        ..Host::default()
    }
}

/// MB/s of copying between two buffers that no cache holds.
fn memcpy() -> f64 {
    let from = vec![1u8; 64 * MIB];
    let mut to = vec![0u8; 64 * MIB];
    let best = (0..5).map(|_| {
        let start = Instant::now();
        to.copy_from_slice(std::hint::black_box(&from));
        std::hint::black_box(&to);
        from.len() as f64 / 1e6 / start.elapsed().as_secs_f64()
    });
    best.fold(0.0, f64::max)
}

/// MB/s of a negotiated cipher by `openssl speed`, with its MAC where that is another pass.
pub fn cipher(name: &str) -> Result<f64> {
    let (cipher, mac) = name.split_once(' ').unwrap_or((name, ""));
    let evp = match cipher {
        "aes128-gcm@openssh.com" => "aes-128-gcm",
        "aes256-gcm@openssh.com" => "aes-256-gcm",
        "chacha20-poly1305@openssh.com" => "chacha20-poly1305",
        "aes128-ctr" => "aes-128-ctr",
        "aes192-ctr" => "aes-192-ctr",
        "aes256-ctr" => "aes-256-ctr",
        other => {
            return Err(Error::new(format!(
                "no openssl name is known for \"{other}\""
            )))
        }
    };
    let cipher_rate = speed(&["-evp", evp])?;
    let mac_rate = match mac.trim_end_matches("-etm@openssh.com") {
        "" => return Ok(cipher_rate),
        "hmac-sha2-512" => speed(&["-hmac", "sha512"])?,
        "hmac-sha2-256" => speed(&["-hmac", "sha256"])?,
        "hmac-sha1" => speed(&["-hmac", "sha1"])?,
        other => {
            return Err(Error::new(format!(
                "no openssl name is known for \"{other}\""
            )))
        }
    };
    Ok(1.0 / (1.0 / cipher_rate + 1.0 / mac_rate))
}

/// MB/s for blocks of a full SSH packet.
fn speed(what: &[&str]) -> Result<f64> {
    let text = Spawn::new(&[
        "openssl", "speed", "-mr", "-seconds", "1", "-bytes", "32768",
    ])
    .args(what)
    .read()?;
    // "+F:22:AES-128-GCM:4123456789.00", bytes per second last.
    let line = text.lines().find(|l| l.starts_with("+F"));
    let field = line.and_then(|l| l.rsplit(':').next());
    field
        .and_then(|f| f.trim().parse::<f64>().ok())
        .map(|b| b / 1e6)
        .ok_or_else(|| Error::new("openssl speed printed no figure"))
}

/// Runs a spinner at full speed and slowed; says how much slower it was and how long it froze.
pub fn calibrate(groups: &Groups, factor: f64) -> Result<String> {
    if !groups.present() {
        return Ok(format!(
            "a CPU {factor} times slower cannot be had here: {}",
            groups.about()
        ));
    }
    let full = spin(groups)?;
    groups.slow(End::Client, factor)?;
    let slowed = spin(groups);
    groups.slow(End::Client, 1.0)?;
    let slowed = slowed?;
    Ok(format!(
        "CPU to be {factor} times slower: {:.2} times slower measured, longest freeze {:.1} ms \
         (at full speed {:.1} ms)",
        full.rounds_per_s / slowed.rounds_per_s,
        slowed.longest_gap_ms,
        full.longest_gap_ms
    ))
}

fn spin(groups: &Groups) -> Result<Spun> {
    let mut spawn = Spawn::new(&[
        super::ends::exe()?.as_str(),
        "payload",
        "spin",
        "--seconds",
        "1.5",
    ]);
    for procs in groups.open_procs(End::Client, Role::Ssh)? {
        spawn = spawn.group(procs);
    }
    Ok(serde_json::from_str(&spawn.read()?)?)
}
