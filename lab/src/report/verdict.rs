//! What a reader in a hurry wants to know: how many comparisons came out which way, and where a
//! variant lost.
#![forbid(unsafe_code)]

use super::html::escape;
use crate::bench::matrix::PLAIN_TCP;
use crate::summary::{Cell, Row};
use std::fmt::Write;

/// Losses that are listed; the tables have them all.
const LISTED: usize = 10;

struct Loss<'a> {
    cell: &'a Cell,
    row: &'a Row,
    /// Below 1, whether more or less of the unit is better.
    goodness: f64,
}

pub fn write(h: &mut String, cells: &[Cell]) {
    let (mut better, mut alike, mut losses) = (0, 0, Vec::new());
    for cell in cells.iter().filter(|c| c.fault.is_none()) {
        for row in cell.rows.iter().filter(|r| r.variant != PLAIN_TCP) {
            let Some(ratio) = row.ratio else { continue };
            let goodness = match cell.more_is_better {
                true => ratio.ratio,
                false => 1.0 / ratio.ratio,
            };
            match (ratio.contains_one(), goodness > 1.0) {
                (true, _) => alike += 1,
                (false, true) => better += 1,
                (false, false) => losses.push(Loss {
                    cell,
                    row,
                    goodness,
                }),
            }
        }
    }
    let all = better + alike + losses.len();
    if all == 0 {
        return;
    }
    let _ = write!(
        h,
        "<p>Of {all} comparisons with the first line of their table {better} are better, {} are worse, and {alike} cannot \
         be told from 1.",
        losses.len()
    );
    losses.sort_by(|a, b| a.goodness.total_cmp(&b.goodness));
    if losses.is_empty() {
        h.push_str("</p>");
        return;
    }
    h.push_str(" The greatest losses:</p><ul>");
    for l in losses.iter().take(LISTED) {
        let c = l.cell;
        let parts = [&l.row.variant, &c.group, &c.link, &c.data, &c.cpu];
        let parts = parts.map(String::as_str);
        let said = parts.into_iter().filter(|p| !p.is_empty() && *p != "full");
        let said = said.collect::<Vec<_>>().join(" · ");
        let ratio = l.row.ratio.map_or(1.0, |r| r.ratio);
        let _ = write!(h, "<li>{}: × {ratio:.3}</li>", escape(&said));
    }
    h.push_str("</ul>");
}
