//! Draws one picture as SVG. Colours are attributes that a style inside turns into those of a
//! dark page, so that a picture can stand in a page or alone.
#![forbid(unsafe_code)]

use crate::error::{Error, Result};
use crate::units::trim;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::coord::Shift;
use plotters::prelude::*;
use std::fmt::Display;

const WIDTH: u32 = 560;
const HEIGHT: u32 = 360;
const LEGEND_LINE: u32 = 26;
const TEXT: RGBColor = RGBColor(0x1f, 0x23, 0x28);
const GRID: RGBColor = RGBColor(0xd0, 0xd7, 0xde);
/// Readable on white; the style has their counterparts for a dark page.
const SERIES: [RGBColor; 6] = [
    RGBColor(0x1b, 0x6c, 0xa8),
    RGBColor(0xc2, 0x41, 0x0c),
    RGBColor(0x15, 0x80, 0x3d),
    RGBColor(0x7c, 0x3a, 0xed),
    RGBColor(0xa1, 0x62, 0x07),
    RGBColor(0xbe, 0x18, 0x5d),
];
const STYLE: &str = "<style>@media (prefers-color-scheme: dark){\
[fill=\"#1F2328\"]{fill:#e6edf3}[stroke=\"#1F2328\"]{stroke:#e6edf3}\
[stroke=\"#D0D7DE\"]{stroke:#3d444d}\
[fill=\"#1B6CA8\"]{fill:#58a6ff}[stroke=\"#1B6CA8\"]{stroke:#58a6ff}\
[fill=\"#C2410C\"]{fill:#fb923c}[stroke=\"#C2410C\"]{stroke:#fb923c}\
[fill=\"#15803D\"]{fill:#4ade80}[stroke=\"#15803D\"]{stroke:#4ade80}\
[fill=\"#7C3AED\"]{fill:#c4b5fd}[stroke=\"#7C3AED\"]{stroke:#c4b5fd}\
[fill=\"#A16207\"]{fill:#facc15}[stroke=\"#A16207\"]{stroke:#facc15}\
[fill=\"#BE185D\"]{fill:#f472b6}[stroke=\"#BE185D\"]{stroke:#f472b6}\
}</style>";

/// A value with the spread of its runs.
#[derive(Debug, Clone, Copy)]
pub struct Point {
    pub x: f64,
    pub y: f64,
    pub low: f64,
    pub high: f64,
}

#[derive(Debug, Clone)]
pub struct Series {
    pub name: String,
    pub points: Vec<Point>,
    /// A limit, drawn dashed and without spread.
    pub limit: bool,
    /// Too many points for a mark at each.
    pub dense: bool,
}

#[derive(Debug, Clone)]
pub struct Chart {
    /// File name without its ending.
    pub file: String,
    pub title: String,
    pub x: String,
    pub y: String,
    pub log_x: bool,
    pub log_y: bool,
    pub series: Vec<Series>,
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

fn failed(e: impl Display) -> Error {
    Error::new(format!("drawing: {e}"))
}

fn font(size: u32) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&TEXT)
}

/// Roughly as wide as a browser makes it.
fn text_width(text: &str, size: u32) -> u32 {
    (text.chars().count() as f64 * f64::from(size) * 0.56).ceil() as u32
}

impl Chart {
    pub fn draw(&self) -> Result<String> {
        let entries = self.legend();
        let rows = entries.last().map_or(0, |e| e.1 + 1);
        let height = HEIGHT + rows * LEGEND_LINE;
        let mut svg = String::new();
        {
            let root = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
            let (plot, below) = root.split_vertically(HEIGHT);
            self.plot(&plot)?;
            for (i, row, x) in entries {
                self.legend_entry(&below, i, row, x)?;
            }
            root.present().map_err(failed)?;
        }
        let head = svg.find('>').map_or(0, |i| i + 1);
        svg.insert_str(head, STYLE);
        // Scales with its place; the size stays as a hint.
        Ok(svg.replacen(
            "<svg ",
            &format!(
                "<svg role=\"img\" aria-label=\"{}\" ",
                super::html::escape(&self.title)
            ),
            1,
        ))
    }

    /// Series, row and horizontal place of each entry.
    fn legend(&self) -> Vec<(usize, u32, u32)> {
        let (mut row, mut x) = (0, 12);
        let mut entries = Vec::new();
        for (i, s) in self.series.iter().enumerate() {
            let width = 44 + text_width(&s.name, 15);
            if x + width > WIDTH && x > 12 {
                (row, x) = (row + 1, 12);
            }
            entries.push((i, row, x));
            x += width;
        }
        entries
    }

    fn colour(&self, i: usize) -> RGBColor {
        // Limits take no colour of their own from the variants.
        let before = self.series[..i].iter().filter(|s| !s.limit).count();
        match self.series[i].limit {
            true => TEXT,
            false => SERIES[before % SERIES.len()],
        }
    }

    fn legend_entry(&self, area: &Area<'_>, i: usize, row: u32, x: u32) -> Result<()> {
        let y = (row * LEGEND_LINE + LEGEND_LINE / 2) as i32;
        let x = x as i32;
        let colour = self.colour(i);
        let ends: &[(i32, i32)] = match self.series[i].limit {
            true => &[(0, 8), (13, 21)],
            false => &[(0, 22)],
        };
        for (a, b) in ends {
            let line = PathElement::new(vec![(x + a, y), (x + b, y)], colour.stroke_width(2));
            area.draw(&line).map_err(failed)?;
        }
        let text = Text::new(self.series[i].name.clone(), (x + 27, y - 9), font(18));
        area.draw(&text).map_err(failed)
    }

    /// The ranges of both axes, with some air.
    fn ranges(&self) -> ((f64, f64), (f64, f64)) {
        let points = || self.series.iter().flat_map(|s| &s.points);
        let range = |values: &mut dyn Iterator<Item = f64>, log: bool| {
            let (low, high) = values
                .filter(|v| v.is_finite() && (!log || *v > 0.0))
                .fold((f64::MAX, f64::MIN), |(a, b), v| (a.min(v), b.max(v)));
            match (low <= high, log) {
                (false, _) => (0.1, 1.0),
                (true, true) => (low / 1.5, high * 1.5),
                (true, false) => (0.0, (high * 1.08).max(1e-9)),
            }
        };
        let x = range(&mut points().map(|p| p.x), self.log_x);
        let y = range(&mut points().flat_map(|p| [p.low, p.y, p.high]), self.log_y);
        (x, y)
    }

    fn plot(&self, area: &Area<'_>) -> Result<()> {
        let ((x0, x1), (y0, y1)) = self.ranges();
        match (self.log_x, self.log_y) {
            (true, true) => self.mesh(area, (x0..x1).log_scale(), (y0..y1).log_scale()),
            (true, false) => self.mesh(area, (x0..x1).log_scale(), y0..y1),
            (false, true) => self.mesh(area, x0..x1, (y0..y1).log_scale()),
            (false, false) => self.mesh(area, x0..x1, y0..y1),
        }
    }

    fn mesh<X, Y>(&self, area: &Area<'_>, x: X, y: Y) -> Result<()>
    where
        X: plotters::coord::ranged1d::AsRangedCoord<Value = f64>,
        Y: plotters::coord::ranged1d::AsRangedCoord<Value = f64>,
        X::CoordDescType: ValueFormatter<f64>,
        Y::CoordDescType: ValueFormatter<f64>,
    {
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, font(21))
            .margin(8)
            .margin_right(18)
            .x_label_area_size(52)
            .y_label_area_size(72)
            .build_cartesian_2d(x, y)
            .map_err(failed)?;
        chart
            .configure_mesh()
            .x_desc(&self.x)
            .y_desc(&self.y)
            .axis_desc_style(font(18))
            .label_style(font(17))
            .x_labels(6)
            .y_labels(6)
            .x_label_formatter(&|v| trim(*v))
            .y_label_formatter(&|v| trim(*v))
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID)
            .axis_style(TEXT)
            .draw()
            .map_err(failed)?;
        for (i, s) in self.series.iter().enumerate() {
            let colour = self.colour(i);
            let line = s.points.iter().map(|p| (p.x, p.y));
            if s.limit {
                let dashed = DashedLineSeries::new(line, 8, 5, colour.stroke_width(2));
                chart.draw_series(dashed).map_err(failed)?;
                continue;
            }
            chart
                .draw_series(LineSeries::new(line, colour.stroke_width(2)))
                .map_err(failed)?;
            if s.dense {
                continue;
            }
            let spread = s.points.iter().map(|p| {
                PathElement::new(vec![(p.x, p.low), (p.x, p.high)], colour.stroke_width(1))
            });
            chart.draw_series(spread).map_err(failed)?;
            let marks = s
                .points
                .iter()
                .map(|p| Circle::new((p.x, p.y), 4, colour.filled()));
            chart.draw_series(marks).map_err(failed)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart() -> Chart {
        let at = |x: f64, y: f64| Point {
            x,
            y,
            low: y * 0.9,
            high: y * 1.1,
        };
        Chart {
            file: "c".into(),
            title: "Throughput <by> RTT".into(),
            x: "RTT (ms)".into(),
            y: "MB/s".into(),
            log_x: true,
            log_y: false,
            series: vec![
                Series {
                    name: "stock".into(),
                    points: vec![at(50.0, 32.0), at(200.0, 8.0)],
                    limit: false,
                    dense: false,
                },
                Series {
                    name: "plain TCP".into(),
                    points: vec![at(50.0, 40.0), at(200.0, 33.0)],
                    limit: true,
                    dense: false,
                },
            ],
        }
    }

    #[test]
    fn a_picture_names_its_axes_and_series_and_carries_its_dark_style() {
        let svg = chart().draw().unwrap();
        for part in [
            "RTT (ms)",
            "MB/s",
            "stock",
            "plain TCP",
            "prefers-color-scheme",
            "&lt;by&gt;",
        ] {
            assert!(svg.contains(part), "{part}");
        }
        assert_eq!(svg.matches("<style>").count(), 1);
        assert!(svg.contains("#1B6CA8") && !svg.contains("http://www.w3.org/1999/xlink"));
    }

    #[test]
    fn a_long_legend_breaks_into_rows() {
        let mut c = chart();
        c.series[0].name = "x".repeat(60);
        c.series[1].name = "y".repeat(60);
        assert_eq!(c.legend().iter().map(|e| e.1).collect::<Vec<_>>(), [0, 1]);
    }
}
