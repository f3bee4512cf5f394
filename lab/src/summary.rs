//! From lines of results to cells: medians, spreads, ratios to the baseline, distance to limits.
#![forbid(unsafe_code)]

use crate::bench::matrix::PLAIN_TCP;
use crate::bench::record::{Host, Line, Record};
use crate::error::{Context, Result};
use crate::stats::{self, Ratio};
use crate::units;
use std::collections::BTreeMap;
use std::path::Path;

/// All of a results file.
#[derive(Default)]
pub struct Results {
    /// The last description of the machine, with all ciphers that were met.
    pub host: Host,
    pub records: Vec<Record>,
    /// Runs of earlier builds, which are left out.
    pub outdated: usize,
}

impl Results {
    pub fn load(paths: &[impl AsRef<Path>]) -> Result<Self> {
        let mut results = Self::default();
        for path in paths {
            let path = path.as_ref();
            let text =
                std::fs::read_to_string(path).context(|| format!("reading {}", path.display()))?;
            for (i, line) in text.lines().enumerate() {
                let at = || format!("{} line {}", path.display(), i + 1);
                match serde_json::from_str(line).context(at)? {
                    Line::Host(h) => results.take_host(h),
                    Line::Run(r) => results.records.push(*r),
                }
            }
        }
        results.keep_last_builds();
        Ok(results)
    }

    /// A file may hold runs of programs that have been built anew since: only the last build of
    /// each variant counts.
    fn keep_last_builds(&mut self) {
        let mut last: BTreeMap<String, (u64, String)> = BTreeMap::new();
        for r in &self.records {
            let known = last.entry(r.task.variant.name.clone()).or_default();
            if r.time >= known.0 {
                *known = (r.time, r.build.clone());
            }
        }
        let before = self.records.len();
        self.records
            .retain(|r| last[&r.task.variant.name].1 == r.build);
        self.outdated = before - self.records.len();
    }

    fn take_host(&mut self, host: Host) {
        let mut ciphers = std::mem::take(&mut self.host.ciphers_mb_s);
        let mut calibration = std::mem::take(&mut self.host.calibration);
        self.host = host;
        ciphers.append(&mut self.host.ciphers_mb_s);
        for line in self.host.calibration.drain(..) {
            if !calibration.contains(&line) {
                calibration.push(line);
            }
        }
        self.host.ciphers_mb_s = ciphers;
        self.host.calibration = calibration;
    }
}

/// One variant in one cell.
pub struct Row {
    pub variant: String,
    pub runs: usize,
    pub failed: usize,
    /// Values of the runs that count.
    pub values: Vec<f64>,
    pub median: f64,
    pub low: f64,
    pub high: f64,
    /// To the cell's first variant.
    pub ratio: Option<Ratio>,
    pub p99: Option<f64>,
    pub beside: Option<f64>,
    pub packing: Option<f64>,
    pub fairness: Option<f64>,
    /// CPU seconds for each GB delivered, of each end.
    pub client_cpu: Option<f64>,
    pub server_cpu: Option<f64>,
    /// The larger of the ends' SSH processes, MB.
    pub client_rss: Option<f64>,
    pub server_rss: Option<f64>,
    pub limits: Limits,
    pub error: Option<String>,
}

/// Rates in MB/s of payload that nothing can exceed.
#[derive(Default, Clone)]
pub struct Limits {
    /// Link rate × packing seen.
    pub link: Option<f64>,
    /// The cipher alone × packing seen.
    pub cipher: Option<f64>,
    pub memcpy: Option<f64>,
}

impl Limits {
    /// The one that is reached first, and its name.
    pub fn nearest(&self) -> Option<(&'static str, f64)> {
        let all = [
            ("link", self.link),
            ("cipher", self.cipher),
            ("memcpy", self.memcpy),
        ];
        let known = all.into_iter().filter_map(|(n, v)| Some((n, v?)));
        known.min_by(|a, b| a.1.total_cmp(&b.1))
    }
}

/// One cell of a matrix.
pub struct Cell {
    pub group: String,
    pub link: String,
    pub cpu: String,
    pub data: String,
    pub unit: String,
    pub more_is_better: bool,
    /// Only broken runs were asked for.
    pub fault: Option<String>,
    pub rows: Vec<Row>,
}

type Key = (String, String, String, String);

fn key(r: &Record) -> Key {
    let t = &r.task;
    let data = t.data.as_ref().map_or(String::new(), |d| d.name.clone());
    (
        t.group.name.clone(),
        t.link.name.clone(),
        t.cpu.name.clone(),
        data,
    )
}

/// Cells in the order in which they were first seen.
pub fn cells(results: &Results) -> Vec<Cell> {
    let mut order: Vec<Key> = Vec::new();
    let mut by_key: BTreeMap<Key, Vec<&Record>> = BTreeMap::new();
    for r in &results.records {
        let k = key(r);
        if !by_key.contains_key(&k) {
            order.push(k.clone());
        }
        by_key.entry(k).or_default().push(r);
    }
    order
        .iter()
        .map(|k| cell(k, &by_key[k], &results.host))
        .collect()
}

/// Variants in the order of the matrix, then those that joined, then plain TCP.
fn variants(records: &[&Record]) -> Vec<String> {
    let mut names = records[0].task.group.variants.clone();
    for r in records {
        if !names.contains(&r.task.variant.name) {
            names.push(r.task.variant.name.clone());
        }
    }
    names.retain(|n| records.iter().any(|r| r.task.variant.name == *n));
    names.sort_by_key(|n| n == PLAIN_TCP);
    names
}

fn cell(key: &Key, records: &[&Record], host: &Host) -> Cell {
    let good = records.iter().find(|r| r.outcome.error.is_none());
    let names = variants(records);
    let rows = names
        .iter()
        .enumerate()
        .map(|(i, n)| row(n, &names[0], records, host, i))
        .collect();
    Cell {
        group: key.0.clone(),
        link: key.1.clone(),
        cpu: key.2.clone(),
        data: key.3.clone(),
        unit: good.map_or(String::new(), |r| r.outcome.unit.clone()),
        more_is_better: good.is_none_or(|r| r.outcome.more_is_better),
        fault: records[0].task.group.fault.clone(),
        rows,
    }
}

fn row(name: &str, baseline: &str, records: &[&Record], host: &Host, seed: usize) -> Row {
    let mine: Vec<&&Record> = records
        .iter()
        .filter(|r| r.task.variant.name == name)
        .collect();
    let good: Vec<&&Record> = mine
        .iter()
        .copied()
        .filter(|r| r.outcome.error.is_none())
        .collect();
    let values: Vec<f64> = good.iter().map(|r| r.outcome.value).collect();
    let middle = |f: &dyn Fn(&Record) -> Option<f64>| {
        let all: Vec<f64> = good.iter().filter_map(|r| f(r)).collect();
        (!all.is_empty()).then(|| stats::median(&all))
    };
    let packing = middle(&|r| r.outcome.packing);
    let rate = good
        .first()
        .and_then(|r| r.task.link.params().ok())
        .map_or(0, |p| p.rate);
    let cipher = good
        .first()
        .and_then(|r| host.ciphers_mb_s.get(&r.outcome.cipher));
    let in_mb = good.first().is_some_and(|r| r.outcome.unit == "MB/s");
    let limits = if in_mb {
        Limits {
            link: packing.filter(|_| rate > 0).map(|p| rate as f64 / 8e6 * p),
            cipher: cipher.map(|c| c * packing.unwrap_or(1.0).max(1.0)),
            memcpy: Some(host.memcpy_mb_s).filter(|m| *m > 0.0),
        }
    } else {
        Limits::default()
    };
    Row {
        variant: name.into(),
        runs: mine.len(),
        failed: mine.len() - good.len(),
        median: stats::median(&values),
        low: stats::quantile(&values, 0.0),
        high: stats::quantile(&values, 1.0),
        ratio: (name != baseline)
            .then(|| stats::ratio(&pairs(name, baseline, records), seed as u64))
            .flatten(),
        p99: middle(&|r| r.outcome.p99_ms),
        beside: middle(&|r| r.outcome.beside_mb_s),
        fairness: middle(&|r| r.outcome.fairness),
        client_cpu: middle(&|r| per_gb(r, r.outcome.client_cpu_s)),
        server_cpu: middle(&|r| per_gb(r, r.outcome.server_cpu_s)),
        client_rss: middle(&|r| rss(r, "client/")),
        server_rss: middle(&|r| rss(r, "server/")),
        packing,
        limits,
        error: mine.iter().find_map(|r| r.outcome.error.clone()),
        values,
    }
}

/// CPU seconds for each GB of the whole run; a run cut by time delivers more than it counts.
fn per_gb(r: &Record, cpu: Option<f64>) -> Option<f64> {
    let total = r
        .outcome
        .samples
        .last()
        .map_or(0, |s| s.1)
        .max(r.outcome.bytes);
    (r.outcome.unit == "MB/s" && total > 1_000_000).then_some(())?;
    Some(cpu? / (total as f64 / 1e9))
}

/// The largest SSH process of an end, MB.
fn rss(r: &Record, end: &str) -> Option<f64> {
    const PROGRAMS: &[&str] = &[
        "ssh",
        "sshd",
        "sshd-session",
        "sshflow-lab",
        "dbclient",
        "dropbear",
    ];
    let all = r.outcome.peak_rss_kb.iter();
    let ours = all.filter(|(n, _)| n.strip_prefix(end).is_some_and(|p| PROGRAMS.contains(&p)));
    ours.map(|(_, kb)| *kb as f64 * 1024.0 / 1e6)
        .reduce(f64::max)
}

/// Runs of the same repetition of the same matrix, which stood next to each other.
fn pairs(name: &str, baseline: &str, records: &[&Record]) -> Vec<(f64, f64)> {
    let good = |v: &str| {
        let own = records
            .iter()
            .filter(|r| r.task.variant.name == v && r.outcome.error.is_none());
        own.map(|r| (r.task.order, r.task.repeat, r.time, r.outcome.value))
            .collect::<Vec<_>>()
    };
    let mut base = good(baseline);
    let mut pairs = Vec::new();
    for (_, repeat, time, value) in good(name) {
        // Several results files may hold the same repetition: the nearest in time is meant.
        let nearest = base
            .iter()
            .enumerate()
            .filter(|(_, b)| b.1 == repeat)
            .min_by_key(|(_, b)| b.2.abs_diff(time))
            .map(|(i, _)| i);
        if let Some(i) = nearest {
            pairs.push((value, base.swap_remove(i).3));
        }
    }
    pairs
}

/// A table for a terminal.
pub fn print(cells: &[Cell]) -> String {
    let mut text = String::new();
    for c in cells {
        let of = [&c.link, &c.data, &c.cpu].map(String::as_str).join(" · ");
        text += &format!("{} — {of} ({})\n", c.group, c.unit);
        for r in &c.rows {
            let mut line = format!("  {:<22}", r.variant);
            if r.values.is_empty() {
                line += &format!(" FAILED {} of {}", r.failed, r.runs);
            } else {
                line += &format!(
                    " {:>9} [{} … {}]",
                    units::trim(r.median),
                    units::trim(r.low),
                    units::trim(r.high)
                );
            }
            if let Some(x) = r.ratio {
                line += &format!("  × {:.3} ({:.3} … {:.3})", x.ratio, x.low, x.high);
            }
            if let Some((name, limit)) = r.limits.nearest() {
                line += &format!("  {:.0} % of {name}", r.median / limit * 100.0);
            }
            if let Some(p) = r.p99 {
                line += &format!("  p99 {}", units::trim(p));
            }
            if let (Some(e), true) = (&r.error, r.failed > 0) {
                line += &format!("  ({} failed: {e})", r.failed);
            }
            text += line.trim_end();
            text.push('\n');
        }
    }
    text
}
