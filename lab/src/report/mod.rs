//! Writes the page and its pictures.
#![forbid(unsafe_code)]

mod axis;
mod chart;
mod figures;
mod html;
mod verdict;

use crate::error::{Context, Result};
use crate::summary::{Cell, Results};
use std::collections::BTreeSet;
use std::path::Path;

pub fn write(path: &Path, results: &Results, cells: &[Cell]) -> Result<()> {
    let dir = path
        .parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    std::fs::create_dir_all(dir).context(|| format!("making {}", dir.display()))?;
    let mut figures = Vec::new();
    for chart in figures::all(results) {
        let svg = chart.draw()?;
        let file = dir.join(format!("{}.svg", chart.file));
        std::fs::write(&file, &svg).context(|| format!("writing {}", file.display()))?;
        figures.push(svg);
    }
    let page = html::page(
        &results.host,
        &versions(results),
        &settings(results),
        cells,
        &figures,
    );
    std::fs::write(path, page).context(|| format!("writing {}", path.display()))
}

fn versions(results: &Results) -> Vec<String> {
    let all = results
        .records
        .iter()
        .filter(|r| r.task.variant.kind != "tcp")
        .map(|r| {
            let v = &r.task.variant;
            let options = match v.options.is_empty() {
                true => String::new(),
                false => format!(" ({})", v.options.join(", ")),
            };
            format!(
                "{}{options}: client {}, server {}",
                v.name, r.client_version, r.server_version
            )
        });
    all.collect::<BTreeSet<_>>().into_iter().collect()
}

fn settings(results: &Results) -> Vec<String> {
    let all = results.records.iter().map(|r| {
        let rmem = if r.tcp_rmem.is_empty() {
            "the kernel's"
        } else {
            &r.tcp_rmem
        };
        let wmem = if r.tcp_wmem.is_empty() {
            "the kernel's"
        } else {
            &r.tcp_wmem
        };
        format!(
            "link {}: congestion control {}, tcp_rmem {rmem}, tcp_wmem {wmem}, bottleneck queue {}",
            r.task.link.name, r.congestion, r.task.link.queue
        )
    });
    all.collect::<BTreeSet<_>>().into_iter().collect()
}
