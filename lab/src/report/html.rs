//! The page: tables and pictures, self-contained, for light and dark and for a phone.
#![forbid(unsafe_code)]

use crate::bench::matrix::PLAIN_TCP;
use crate::bench::record::Host;
use crate::summary::{Cell, Row};
use crate::units::trim;
use std::fmt::Write;

const STYLE: &str = "\
:root{color-scheme:light dark;--text:#1f2328;--soft:#59636e;--line:#d0d7de;--back:#fff;--bad:#b91c1c;--good:#15803d}\
@media(prefers-color-scheme:dark){:root{--text:#e6edf3;--soft:#9198a1;--line:#3d444d;--back:#0d1117;--bad:#f87171;--good:#4ade80}}\
*{box-sizing:border-box}body{margin:0 auto;max-width:1180px;padding:16px;font:15px/1.5 system-ui,sans-serif;color:var(--text);background:var(--back)}\
h1{font-size:1.5rem;margin:.4em 0}h2{font-size:1.15rem;margin:1.6em 0 .3em}h3{font-size:1rem;margin:1.2em 0 .2em;font-weight:600}\
p{margin:.4em 0;max-width:72em}.soft,caption{color:var(--soft)}\
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,470px),1fr));gap:20px}\
figure{margin:0;border:1px solid var(--line);border-radius:8px;padding:8px}figure svg{width:100%;height:auto;display:block}\
.wide{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums;white-space:nowrap}th{white-space:normal;max-width:8.5em}\
caption{text-align:left;padding:2px 0}th,td{padding:3px 12px 3px 0;text-align:right;border-bottom:1px solid var(--line)}\
th:first-child,td:first-child{text-align:left}th{font-weight:600;color:var(--soft);font-size:.85rem;vertical-align:bottom}\
.bad{color:var(--bad)}.good{color:var(--good)}li{margin:.15em 0}code{font-size:.9em}";

pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

/// The whole page. `figures` are SVG texts.
pub fn page(
    host: &Host,
    versions: &[String],
    settings: &[String],
    cells: &[Cell],
    figures: &[String],
) -> String {
    let mut h = String::new();
    let runs: usize = cells.iter().flat_map(|c| &c.rows).map(|r| r.runs).sum();
    let failed: usize = cells
        .iter()
        .filter(|c| c.fault.is_none())
        .flat_map(|c| &c.rows)
        .map(|r| r.failed)
        .sum();
    let _ = write!(
        h,
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>sshflow: measurements</title><style>{STYLE}</style></head><body>\
         <h1>sshflow: measurements</h1>\
         <p>{runs} runs, {failed} failed. Real TCP between network namespaces, real ssh; each transfer is checked by hash. \
         Variants of a cell took turns. A figure is the median with the least and the greatest run; a ratio is to the \
         first line of its table, with its 95&nbsp;% interval.</p>"
    );
    super::verdict::write(&mut h, cells);
    h.push_str("<div class=\"figures\">");
    for svg in figures {
        let _ = write!(h, "<figure>{svg}</figure>");
    }
    h.push_str("</div>");
    tables(&mut h, cells);
    machine(&mut h, host, versions, settings);
    h.push_str("</body></html>\n");
    h
}

fn tables(h: &mut String, cells: &[Cell]) {
    let mut group = "";
    for cell in cells {
        if cell.group != group {
            let _ = write!(h, "<h2>{}</h2>", escape(&cell.group));
            group = &cell.group;
        }
        table(h, cell);
    }
}

/// A column: its head and what it shows of a row, if anything.
type Show = Box<dyn Fn(&Row) -> Option<String>>;
type Column = (&'static str, Show);

fn columns(cell: &Cell) -> Vec<Column> {
    let number = |f: fn(&Row) -> Option<f64>| -> Show { Box::new(move |r| f(r).map(trim)) };
    let percent: Show = Box::new(|r| {
        let (name, limit) = r.limits.nearest()?;
        Some(format!("{:.0} % of {name}", r.median / limit * 100.0))
    });
    let all: Vec<Column> = vec![
        ("p99 (ms)", number(|r| r.p99)),
        ("download beside it (MB/s)", number(|r| r.beside)),
        ("fairness", number(|r| r.fairness)),
        ("packing", number(|r| r.packing)),
        ("limit: link × packing (MB/s)", number(|r| r.limits.link)),
        (
            "limit: cipher × packing (MB/s)",
            number(|r| r.limits.cipher),
        ),
        ("limit: memcpy (MB/s)", number(|r| r.limits.memcpy)),
        ("nearest limit", percent),
        ("client CPU (s/GB)", number(|r| r.client_cpu)),
        ("server CPU (s/GB)", number(|r| r.server_cpu)),
        ("client memory (MB)", number(|r| r.client_rss)),
        ("server memory (MB)", number(|r| r.server_rss)),
    ];
    all.into_iter()
        .filter(|(_, f)| cell.rows.iter().any(|r| f(r).is_some()))
        .collect()
}

fn table(h: &mut String, cell: &Cell) {
    let parts = [&cell.link, &cell.data, &cell.cpu];
    let mut caption: Vec<&str> = parts
        .iter()
        .map(|s| s.as_str())
        .filter(|s| !s.is_empty() && *s != "full")
        .collect();
    let fault = cell
        .fault
        .as_ref()
        .map(|f| format!("broken on purpose: {f}"));
    caption.extend(fault.as_deref());
    let columns = columns(cell);
    let _ = write!(
        h,
        "<div class=\"wide\"><table><caption>{}</caption><thead><tr><th>variant</th><th>{}</th>\
         <th>least … greatest</th><th>runs</th><th>ratio</th><th>95 % interval</th>",
        escape(&caption.join(" · ")),
        escape(&cell.unit)
    );
    for (head, _) in &columns {
        let _ = write!(h, "<th>{}</th>", escape(head));
    }
    h.push_str("</tr></thead><tbody>");
    for r in &cell.rows {
        row(h, cell, r, &columns);
    }
    h.push_str("</tbody></table></div>");
}

fn row(h: &mut String, cell: &Cell, r: &Row, columns: &[Column]) {
    let _ = write!(h, "<tr><td>{}</td>", escape(&r.variant));
    if r.values.is_empty() {
        let why = r.error.as_deref().unwrap_or("");
        let all = columns.len() + 5;
        let _ = write!(
            h,
            "<td colspan=\"{all}\" class=\"bad\" style=\"text-align:left\">failed {} of {}: {}</td></tr>",
            r.failed, r.runs, escape(why)
        );
        return;
    }
    let failed = match r.failed {
        0 => String::new(),
        n => format!(" <span class=\"bad\">{n} failed</span>"),
    };
    let _ = write!(
        h,
        "<td>{}</td><td>{} … {}</td><td>{}{failed}</td>",
        trim(r.median),
        trim(r.low),
        trim(r.high),
        r.values.len()
    );
    match r.ratio {
        Some(x) => {
            let limit = r.variant == PLAIN_TCP;
            let better = (x.ratio > 1.0) == cell.more_is_better;
            let class = match (x.contains_one() || limit, better) {
                (true, _) => "soft",
                (false, true) => "good",
                (false, false) => "bad",
            };
            let _ = write!(
                h,
                "<td class=\"{class}\">{:.3}</td><td>{:.3} … {:.3}</td>",
                x.ratio, x.low, x.high
            );
        }
        None => h.push_str("<td></td><td></td>"),
    }
    for (_, show) in columns {
        let _ = write!(h, "<td>{}</td>", escape(&show(r).unwrap_or_default()));
    }
    h.push_str("</tr>");
}

fn machine(h: &mut String, host: &Host, versions: &[String], settings: &[String]) {
    let ciphers = host
        .ciphers_mb_s
        .iter()
        .map(|(n, v)| format!("{n} {} MB/s", trim(*v)));
    let mut items = vec![
        format!("{}, {} cores, {}", host.kernel, host.cores, host.cpu),
        format!("copying memory: {} MB/s", trim(host.memcpy_mb_s)),
        format!(
            "ciphers alone (openssl speed, 32 KiB): {}",
            ciphers.collect::<Vec<_>>().join(", ")
        ),
        host.openssl.clone(),
        format!("slow CPU: {}", host.slow_cpu),
    ];
    items.extend(host.calibration.iter().cloned());
    items.extend(versions.iter().cloned());
    items.extend(settings.iter().cloned());
    h.push_str("<h2>Machine and settings</h2><ul>");
    for item in items.iter().filter(|i| !i.is_empty()) {
        let _ = write!(h, "<li>{}</li>", escape(item));
    }
    h.push_str("</ul><p class=\"soft\">Ratios: geometric mean over pairs of neighbouring runs, expanded percentile bootstrap, \
        4,000 resamples. Link rates are of IP packets; packing is bytes delivered per IP byte. CPU and memory are of the ssh \
        processes alone.</p>");
}
