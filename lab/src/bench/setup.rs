//! What is made ready before the first run, and what is worked out after each.
#![forbid(unsafe_code)]

use super::dropbear;
use super::ends;
use super::matrix::{Driver, Matrix, Point, Variant};
use super::record::Outcome;
use super::Restriction;
use crate::error::{Context, Result};
use crate::payload::now_ns;
use crate::sys::{capsule, janitor};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A directory in memory, seen by our own processes alone where that can be had.
pub fn scratch(contained: bool) -> Result<PathBuf> {
    let base = if contained { "/tmp" } else { "/dev/shm" };
    let dir = PathBuf::from(format!("{base}/sshflow-lab-{:x}", now_ns()));
    std::fs::create_dir(&dir).context(|| format!("making {}", dir.display()))?;
    janitor::remove_later(&dir);
    if contained {
        capsule::private_tmpfs(&dir.display().to_string(), "mode=755,size=75%")?;
    }
    Ok(dir)
}

/// Gives everybody a shell without startup files, in this process tree only: what a user's
/// .bashrc does is no part of a measurement.
pub fn plain_shell(scratch: &Path) -> Result<()> {
    let passwd = std::fs::read_to_string("/etc/passwd")?;
    let mut text = String::new();
    for line in passwd.lines() {
        let login = line.ends_with("/bash") || line.ends_with("/zsh");
        match line.rsplit_once(':').filter(|_| login) {
            Some((rest, _)) => text += &format!("{rest}:/bin/sh\n"),
            None => text += &format!("{line}\n"),
        }
    }
    let own = scratch.join("passwd");
    std::fs::write(&own, text)?;
    capsule::private_bind(&own.display().to_string(), "/etc/passwd")
}

/// Names the variants that cannot run here, and says so.
pub fn missing(matrix: &Matrix, only: &Restriction) -> Vec<String> {
    let mut names = Vec::new();
    for v in matrix.variants.iter().chain(&only.also) {
        let (client, server) = match v.kind.as_str() {
            "tcp" => continue,
            "dropbear" => ("bin/dbclient", "sbin/dropbear"),
            _ => ("bin/ssh", "sbin/sshd"),
        };
        let there = ends::program(&v.client, client).and(ends::program(&v.server, server));
        if let Err(e) = there {
            eprintln!("variant {} LEFT OUT: {e}", v.name);
            names.push(v.name.clone());
        }
    }
    names
}

/// So long may a run take: a multiple of what its bytes take at a crawl.
pub fn time_limit(point: &Point<'_>, variant: &Variant) -> Result<Duration> {
    let bytes = point
        .group
        .bytes
        .as_deref()
        .map(crate::units::bytes)
        .transpose()?
        .unwrap_or(0);
    let bytes = bytes * point.group.channels.max(1) as u64;
    let rate = point.link.params()?.rate;
    let mut per_second = if rate == 0 {
        4e6
    } else {
        (rate as f64 / 8.0 / 10.0).min(4e6)
    };
    if let Some(consume) = &point.group.consume {
        per_second = per_second.min(crate::units::bytes(consume)? as f64 / 4.0);
    }
    if variant.kind == "dropbear" {
        let rtt = crate::units::duration_ns(&point.link.rtt)? as f64 / 1e9;
        per_second = per_second.min(dropbear::WINDOW / rtt / 3.0);
    }
    let keys = point.group.keys.max(200) as f64 * 1.5;
    let base = match point.group.driver {
        Driver::Echo => 60.0 + keys,
        Driver::Session => 180.0,
        _ => 60.0 + point.group.seconds.unwrap_or(0.0),
    };
    Ok(Duration::from_secs_f64(base + bytes as f64 / per_second))
}

/// Joins the samples of the receiver with those of the wire, by time.
pub fn fill_in_wire(
    outcome: &mut Outcome,
    wire: &[(u64, u64, u64)],
    begin: u64,
    up: bool,
    before: (u64, u64),
) {
    let mut at = 0;
    for (seconds, _, carried) in &mut outcome.samples {
        let clock = begin + (*seconds * 1e9) as u64;
        while at + 1 < wire.len() && wire[at + 1].0 <= clock {
            at += 1;
        }
        let bytes = |w: &(u64, u64, u64)| {
            if up {
                w.1.saturating_sub(before.0)
            } else {
                w.2.saturating_sub(before.1)
            }
        };
        let Some(now) = wire.get(at) else { continue };
        *carried = bytes(now);
        // Between two looks at the wire, in proportion to the time.
        if let Some(next) = wire.get(at + 1).filter(|n| n.0 > now.0 && clock > now.0) {
            let share = (clock - now.0) as f64 / (next.0 - now.0) as f64;
            *carried += (bytes(next).saturating_sub(bytes(now)) as f64 * share) as u64;
        }
    }
    // What the counted time put on the wire.
    let last = outcome.samples.last().copied();
    let first = last.and_then(|l| {
        outcome
            .samples
            .iter()
            .find(|s| s.0 >= l.0 - outcome.seconds)
    });
    if let (Some(first), Some(last)) = (first, last) {
        if outcome.fill.is_some() && last.2 > first.2 {
            outcome.packing = Some((last.1 - first.1) as f64 / (last.2 - first.2) as f64);
        }
    }
    if let (None, Some(wire)) = (
        outcome.packing,
        outcome
            .wire_bytes
            .filter(|w| *w > 0 && outcome.unit == "MB/s"),
    ) {
        outcome.packing = Some(outcome.bytes as f64 / wire as f64);
    }
}
