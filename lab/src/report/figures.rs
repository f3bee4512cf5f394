//! Which pictures the results make.
#![forbid(unsafe_code)]

mod echo;
mod over_time;

use super::axis::Axis;
use super::chart::{Chart, Pattern, Point, Series};
use crate::bench::matrix::{LinkSpec, PLAIN_TCP};
use crate::bench::record::Record;
use crate::stats;
use crate::summary::Results;
use crate::units;
use std::collections::BTreeMap;

/// A share of IP packets that is TCP payload, at an MTU of 1500 with time stamps.
const PAYLOAD: f64 = 1448.0 / 1500.0;

pub fn all(results: &Results) -> Vec<Chart> {
    let good: Vec<&Record> = results
        .records
        .iter()
        .filter(|r| r.outcome.error.is_none())
        .collect();
    let palette = Palette::new(results);
    let mut charts = Vec::new();
    charts.extend(series_of_links(&good, "RTT", &palette));
    charts.extend(series_of_links(&good, "rate", &palette));
    charts.extend(echo::all(&good, &palette));
    charts.extend(memory(&good, &palette));
    charts.extend(over_time::all(&good, &palette));
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

/// The variants in the order in which they first ran; each keeps its colour in all pictures.
struct Palette(Vec<String>);

impl Palette {
    fn new(results: &Results) -> Self {
        let mut names: Vec<String> = Vec::new();
        for t in results.records.iter().map(|r| &r.task) {
            // The order of the matrix; then what joined.
            for name in t.group.variants.iter().chain([&t.variant.name]) {
                if name != PLAIN_TCP && !names.contains(name) {
                    names.push(name.clone());
                }
            }
        }
        names.retain(|n| results.records.iter().any(|r| r.task.variant.name == *n));
        Self(names)
    }

    /// `None` is plain TCP.
    fn colour(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|n| n == name)
    }

    fn series(&self, by: &ByVariant<'_>) -> Vec<Series> {
        let ours = self.0.iter().map(String::as_str);
        let names = ours.chain([PLAIN_TCP]).filter(|n| by.contains_key(n));
        names.map(|name| self.one(name, &by[name])).collect()
    }

    fn one(&self, name: &str, values: &BTreeMap<u64, Vec<f64>>) -> Series {
        let colour = self.colour(name);
        let points = values.iter().map(|(x, v)| point(f64::from_bits(*x), v));
        Series {
            name: match colour {
                Some(_) => name.into(),
                None => "limit: plain TCP".into(),
            },
            points: points.collect(),
            colour,
            pattern: match colour {
                Some(_) => Pattern::Solid,
                None => Pattern::Dashed,
            },
            dense: false,
        }
    }
}

fn x_values(by: &ByVariant<'_>) -> Vec<f64> {
    let all = by.values().flat_map(|v| v.keys());
    all.map(|x| f64::from_bits(*x)).collect()
}

/// Throughput over links that differ in one respect: a picture for each group, data and CPU.
fn series_of_links(good: &[&Record], by: &str, palette: &Palette) -> Vec<Chart> {
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
        let mut series = palette.series(&variants);
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
            x: match by {
                "RTT" => Axis::linear("round-trip time (ms)"),
                _ => Axis::log("link rate (Mbit/s)").at(x_values(&variants)),
            },
            y: match by {
                "RTT" => Axis::linear("throughput (MB/s)"),
                _ => Axis::log("throughput (MB/s)"),
            },
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
        colour: None,
        pattern: Pattern::Dashed,
        dense: false,
    }
}

/// The receiver's memory against the speed of a consumer.
fn memory(good: &[&Record], palette: &Palette) -> Vec<Chart> {
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
        x: Axis::log("speed of the consumer (MB/s)").at(x_values(&by)),
        y: Axis::linear("peak memory of ssh (MB)"),
        series: palette.series(&by),
    }]
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
