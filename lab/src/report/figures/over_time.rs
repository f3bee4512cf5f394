//! One run of each variant over time: how fast it was on a link that changes, and what the chosen
//! effort made of the data.
#![forbid(unsafe_code)]

use super::{data_name, file, Palette};
use crate::bench::record::Record;
use crate::report::axis::Axis;
use crate::report::chart::{Chart, Pattern, Point, Series};
use std::collections::BTreeMap;

/// A length of time that gives one point.
const STEP_S: f64 = 0.2;
/// Fewer samples make no picture.
const LEAST: usize = 8;

type Sample = (f64, u64, u64);

pub fn all(good: &[&Record], palette: &Palette) -> Vec<Chart> {
    let mut sets: BTreeMap<(&str, &str, &str), Vec<&Record>> = BTreeMap::new();
    for r in good {
        let changing = !r.task.link.changes.is_empty() || data_name(r) == "mixed";
        let is_ssh = palette.colour(&r.task.variant.name).is_some();
        if changing && is_ssh && r.task.repeat == 0 && r.outcome.samples.len() > LEAST {
            let t = &r.task;
            let set = sets.entry((&t.group.name, &t.link.name, data_name(r)));
            set.or_default().push(r);
        }
    }
    let mut charts = Vec::new();
    for ((group, link, data), mut records) in sets {
        records.sort_by_key(|r| palette.colour(&r.task.variant.name));
        let chart = |what: &str, title: &str, y: Axis, value: fn(&Sample, &Sample) -> f64| Chart {
            file: file(&[what, group, link, data]),
            title: format!("{title}: {data}, {link}"),
            x: Axis::linear("time (s)"),
            y,
            series: records.iter().map(|r| series(r, palette, value)).collect(),
        };
        if !records[0].task.link.changes.is_empty() {
            let y = Axis::linear("throughput (MB/s)");
            charts.push(chart("speed", "Throughput", y, |a, b| {
                (b.1 - a.1) as f64 / 1e6 / (b.0 - a.0)
            }));
        }
        let packs = |r: &&Record| !matches!(r.outcome.compression.as_str(), "" | "none");
        if records.iter().any(packs) {
            let y = Axis::log("bytes delivered per wire byte");
            charts.push(chart("effort", "Effort over time", y, |a, b| {
                (b.1 - a.1) as f64 / (b.2 - a.2) as f64
            }));
        }
    }
    charts
}

fn series(r: &Record, palette: &Palette, value: fn(&Sample, &Sample) -> f64) -> Series {
    let mut points = Vec::new();
    let mut last = r.outcome.samples[0];
    for s in &r.outcome.samples {
        if s.0 - last.0 >= STEP_S && s.2 > last.2 {
            let y = value(&last, s);
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
        colour: palette.colour(&r.task.variant.name),
        pattern: Pattern::Solid,
        dense: true,
    }
}
