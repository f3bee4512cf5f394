//! Echo latency, alone and beside a download, as the share of keys that came back in time.
#![forbid(unsafe_code)]

use super::{file, Palette};
use crate::bench::matrix::Driver;
use crate::bench::record::Record;
use crate::report::axis::Axis;
use crate::report::chart::{Chart, Pattern, Point, Series};
use std::collections::BTreeMap;

/// What else was going on; the order is that of the legend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Beside {
    SameConnection,
    OtherConnection,
    Nothing,
}

impl Beside {
    fn of(r: &Record) -> Self {
        match r.task.group.beside.as_deref() {
            Some("same") => Beside::SameConnection,
            Some(_) => Beside::OtherConnection,
            None => Beside::Nothing,
        }
    }

    fn about(self) -> (&'static str, Pattern) {
        match self {
            Beside::SameConnection => ("beside a download", Pattern::Solid),
            Beside::OtherConnection => ("download on another connection", Pattern::Dashed),
            Beside::Nothing => ("alone", Pattern::Dotted),
        }
    }
}

/// Latencies by what went on beside them and by the number of the variant.
type Kinds<'a> = BTreeMap<(Beside, Option<usize>), (&'a str, Vec<f64>)>;

pub fn all(good: &[&Record], palette: &Palette) -> Vec<Chart> {
    let mut links: BTreeMap<&str, Kinds<'_>> = BTreeMap::new();
    for r in good.iter().filter(|r| r.task.group.driver == Driver::Echo) {
        let name = r.task.variant.name.as_str();
        let kinds = links.entry(&r.task.link.name).or_default();
        let kind = kinds.entry((Beside::of(r), palette.colour(name)));
        let times = &mut kind.or_insert((name, vec![])).1;
        times.extend(&r.outcome.latencies_ms);
    }
    let charts = links.into_iter().map(|(link, kinds)| chart(link, kinds));
    charts.collect()
}

fn chart(link: &str, kinds: Kinds<'_>) -> Chart {
    // Beside a download, one line is enough to say what an idle connection does.
    let first = kinds.keys().filter(|k| k.0 == Beside::Nothing).min();
    let first = first.copied();
    let compared = kinds.keys().any(|k| k.0 != Beside::Nothing);
    let shown =
        |k: &(Beside, Option<usize>)| !compared || k.0 != Beside::Nothing || Some(*k) == first;
    let kinds = kinds.into_iter().filter(|(k, _)| shown(k));
    Chart {
        file: file(&["echo", link]),
        title: format!("Echo of a key: {link}"),
        x: Axis::log("time to come back (ms)"),
        y: Axis::linear("keys back by then (%)"),
        series: kinds.map(|(k, (name, ms))| series(k, name, ms)).collect(),
    }
}

fn series(kind: (Beside, Option<usize>), name: &str, mut ms: Vec<f64>) -> Series {
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
    let (beside, pattern) = kind.0.about();
    Series {
        name: format!("{name}, {beside}"),
        points: ms.iter().enumerate().map(point).collect(),
        colour: kind.1,
        pattern,
        dense: true,
    }
}
