//! Which pictures the results make.
#![forbid(unsafe_code)]

use super::chart::{Chart, Point, Series};
use crate::bench::matrix::{Driver, LinkSpec, PLAIN_TCP};
use crate::bench::record::Record;
use crate::stats;
use crate::summary::Results;
use crate::units;
use std::collections::BTreeMap;

/// Lengths of time over which packing is taken.
const STEP_S: f64 = 0.2;
/// A share of IP packets that is TCP payload, at an MTU of 1500 with time stamps.
const PAYLOAD: f64 = 1448.0 / 1500.0;

pub fn all(results: &Results) -> Vec<Chart> {
    let good: Vec<&Record> = results
        .records
        .iter()
        .filter(|r| r.outcome.error.is_none())
        .collect();
    let mut charts = Vec::new();
    charts.extend(series_of_links(&good, "RTT"));
    charts.extend(series_of_links(&good, "rate"));
    charts.extend(echo(&good));
    charts.extend(memory(&good));
    charts.extend(packing(&good));
    charts
}

fn rtt_ms(l: &LinkSpec) -> f64 {
    units::duration_ns(&l.rtt).unwrap_or(0) as f64 / 1e6
}

fn rate_mbit(l: &LinkSpec) -> f64 {
    units::rate(&l.rate).unwrap_or(0) as f64 / 1e6
}

fn point(x: f64, values: &[f64]) -> Point {
    Point {
        x,
        y: stats::median(values),
        low: stats::quantile(values, 0.0),
        high: stats::quantile(values, 1.0),
    }
}

fn file(words: &[&str]) -> String {
    let letters = words.join("-").to_lowercase();
    let plain = letters
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
    plain
        .collect::<String>()
        .split('-')
        .filter(|w| !w.is_empty())
        .collect::<Vec<_>>()
        .join("-")
}

fn data_name(r: &Record) -> &str {
    r.task.data.as_ref().map_or("", |d| d.name.as_str())
}

/// Values by variant and by the place on the x axis, which is kept as bits to be a key.
type ByVariant<'a> = BTreeMap<&'a str, BTreeMap<u64, Vec<f64>>>;

fn to_series(by: &ByVariant<'_>, order: &[String]) -> Vec<Series> {
    let mut names: Vec<&str> = order
        .iter()
        .map(String::as_str)
        .filter(|n| by.contains_key(n))
        .collect();
    names.extend(by.keys().filter(|n| !order.iter().any(|o| o == *n)));
    let one = |name: &str| Series {
        name: if name == PLAIN_TCP {
            "limit: plain TCP".into()
        } else {
            name.into()
        },
        points: by[name]
            .iter()
            .map(|(x, v)| point(f64::from_bits(*x), v))
            .collect(),
        limit: name == PLAIN_TCP,
        dense: false,
    };
    names.into_iter().map(one).collect()
}

/// Throughput over links that differ in one respect: a picture for each group, data and CPU.
fn series_of_links(good: &[&Record], by: &str) -> Vec<Chart> {
    let mut sets: BTreeMap<(String, String, String, u64), Vec<&Record>> = BTreeMap::new();
    for r in good
        .iter()
        .filter(|r| r.outcome.unit == "MB/s" && r.task.link.kind == "tun")
    {
        let t = &r.task;
        let fixed = if by == "RTT" { rate_mbit(&t.link) } else { 0.0 };
        let key = (
            t.group.name.clone(),
            data_name(r).to_string(),
            t.cpu.name.clone(),
            fixed.to_bits(),
        );
        sets.entry(key).or_default().push(r);
    }
    let x_of = |r: &Record| {
        if by == "RTT" {
            rtt_ms(&r.task.link)
        } else {
            rate_mbit(&r.task.link)
        }
    };
    let mut charts = Vec::new();
    for ((group, data, cpu, fixed), records) in sets {
        let mut variants: ByVariant<'_> = BTreeMap::new();
        for r in &records {
            let x = x_of(r).to_bits();
            let values = variants.entry(&r.task.variant.name).or_default();
            values.entry(x).or_default().push(r.outcome.value);
        }
        let most = variants.values().map(BTreeMap::len).max().unwrap_or(0);
        if most < 3
            || variants
                .values()
                .any(|v| v.keys().any(|x| f64::from_bits(*x) <= 0.0))
        {
            continue;
        }
        let mut series = to_series(&variants, &records[0].task.group.variants);
        if by == "rate" {
            series.push(line_rate(&records));
        }
        let at = match by {
            "RTT" => format!(
                ", {}",
                units::show_rate((f64::from_bits(fixed) * 1e6) as u64)
            ),
            _ => String::new(),
        };
        let slow = if cpu == "full" {
            String::new()
        } else {
            format!(", CPU {cpu}")
        };
        charts.push(Chart {
            file: file(&[&group, &data, &cpu, by]),
            title: format!("{group}: {data}{at}{slow}"),
            x: if by == "RTT" {
                "round-trip time (ms)".into()
            } else {
                "link rate (Mbit/s)".into()
            },
            y: "throughput (MB/s)".into(),
            log_x: by == "rate",
            log_y: by == "rate",
            series,
        });
    }
    charts
}

/// What the link carries at most: its rate times the best packing that any variant reached.
fn line_rate(records: &[&Record]) -> Series {
    let mut best: BTreeMap<u64, f64> = BTreeMap::new();
    let packing = records
        .iter()
        .filter_map(|r| r.outcome.packing)
        .fold(PAYLOAD, f64::max);
    for r in records {
        let rate = rate_mbit(&r.task.link);
        best.insert(rate.to_bits(), rate / 8.0 * packing);
    }
    let points = best
        .iter()
        .map(|(x, y)| point(f64::from_bits(*x), &[*y]))
        .collect();
    Series {
        name: "limit: rate × best packing".into(),
        points,
        limit: true,
        dense: false,
    }
}

/// Echo latency, alone and beside a download, as the share of keys that came back in time.
fn echo(good: &[&Record]) -> Vec<Chart> {
    let mut links: BTreeMap<String, BTreeMap<String, Vec<f64>>> = BTreeMap::new();
    for r in good.iter().filter(|r| r.task.group.driver == Driver::Echo) {
        let of_link = links.entry(r.task.link.name.clone()).or_default();
        of_link
            .entry(echo_name(r))
            .or_default()
            .extend(&r.outcome.latencies_ms);
    }
    let chart = |(link, names): (String, BTreeMap<String, Vec<f64>>)| Chart {
        file: file(&["echo", &link]),
        title: format!("Echo of a key: {link}"),
        x: "time to come back (ms)".into(),
        y: "keys back by then (%)".into(),
        log_x: true,
        log_y: false,
        series: names
            .into_iter()
            .map(|(name, ms)| distribution(name, ms))
            .collect(),
    };
    links.into_iter().map(chart).collect()
}

fn distribution(name: String, mut ms: Vec<f64>) -> Series {
    ms.sort_by(f64::total_cmp);
    let n = ms.len() as f64;
    let point = |(i, x): (usize, &f64)| {
        let y = (i + 1) as f64 / n * 100.0;
        Point {
            x: *x,
            y,
            low: y,
            high: y,
        }
    };
    Series {
        name,
        points: ms.iter().enumerate().map(point).collect(),
        limit: false,
        dense: true,
    }
}

fn echo_name(r: &Record) -> String {
    let beside = match r.task.group.beside.as_deref() {
        Some("same") => ", beside a download",
        Some(_) => ", download on another connection",
        None => ", alone",
    };
    format!("{}{beside}", r.task.variant.name)
}

/// The receiver's memory against the speed of a consumer.
fn memory(good: &[&Record]) -> Vec<Chart> {
    let mut by: ByVariant<'_> = BTreeMap::new();
    let mut link = "";
    for r in good {
        let Some(speed) = r
            .task
            .group
            .consume
            .as_deref()
            .and_then(|c| units::bytes(c).ok())
        else {
            continue;
        };
        let client = r
            .outcome
            .peak_rss_kb
            .iter()
            .filter(|(n, _)| *n == "client/ssh");
        if let Some(kb) = client.map(|(_, kb)| *kb).max() {
            let at = by.entry(&r.task.variant.name).or_default();
            let x = (speed as f64 / 1e6).to_bits();
            at.entry(x).or_default().push(kb as f64 * 1024.0 / 1e6);
            link = &r.task.link.name;
        }
    }
    if by.values().all(|v| v.len() < 2) {
        return vec![];
    }
    vec![Chart {
        file: "memory".into(),
        title: format!("Memory behind a slow consumer: {link}"),
        x: "consumer (MB/s)".into(),
        y: "peak memory of the client (MB)".into(),
        log_x: true,
        log_y: false,
        series: to_series(&by, &[]),
    }]
}

/// What the chosen effort makes of the data, over time: one run of each variant on links that
/// change and on data that changes.
fn packing(good: &[&Record]) -> Vec<Chart> {
    let mut sets: BTreeMap<(String, String, String), Vec<&Record>> = BTreeMap::new();
    for r in good {
        let changing = !r.task.link.changes.is_empty() || data_name(r) == "mixed";
        if changing
            && r.task.repeat == 0
            && r.task.variant.kind != "tcp"
            && r.outcome.samples.len() > 8
        {
            let key = (
                r.task.group.name.clone(),
                r.task.link.name.clone(),
                data_name(r).to_string(),
            );
            sets.entry(key).or_default().push(r);
        }
    }
    let chart = |((group, link, data), records): ((String, String, String), Vec<&Record>)| Chart {
        file: file(&["packing", &group, &link, &data]),
        title: format!("Effort over time: {data}, {link}"),
        x: "time (s)".into(),
        y: "bytes delivered per byte on the wire".into(),
        log_x: false,
        log_y: false,
        series: records.iter().map(|r| packing_series(r)).collect(),
    };
    sets.into_iter().map(chart).collect()
}

fn packing_series(r: &Record) -> Series {
    let mut points = Vec::new();
    let mut last = r.outcome.samples[0];
    for s in &r.outcome.samples {
        if s.0 - last.0 >= STEP_S && s.2 > last.2 {
            let y = (s.1 - last.1) as f64 / (s.2 - last.2) as f64;
            points.push(Point {
                x: s.0,
                y,
                low: y,
                high: y,
            });
            last = *s;
        }
    }
    Series {
        name: r.task.variant.name.clone(),
        points,
        limit: false,
        dense: true,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn file_names_are_plain() {
        assert_eq!(
            super::file(&["Echo", "20 Mbit/s, 30 ms"]),
            "echo-20-mbit-s-30-ms"
        );
    }
}
