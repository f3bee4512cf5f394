//! Draws one picture as SVG. Colours are attributes that a style inside turns into those of a
//! dark page, so that a picture can stand in a page or alone.
#![forbid(unsafe_code)]

use super::axis::Axis;
use crate::error::{Error, Result};
use crate::units::trim;
use plotters::coord::Shift;
use plotters::prelude::*;
use std::fmt::Display;

const WIDTH: u32 = 480;
const HEIGHT: u32 = 340;
const LEGEND_LINE: u32 = 26;
const LEGEND_DASH: u32 = 22;
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    Solid,
    Dashed,
    Dotted,
}

impl Pattern {
    /// Pixels of line and of gap.
    fn dashes(self) -> Option<(u32, u32)> {
        match self {
            Pattern::Solid => None,
            Pattern::Dashed => Some((8, 5)),
            Pattern::Dotted => Some((2, 4)),
        }
    }
}

#[derive(Debug, Clone)]
pub struct Series {
    pub name: String,
    pub points: Vec<Point>,
    /// Number of its colour; a limit has none, and shows no spread.
    pub colour: Option<usize>,
    pub pattern: Pattern,
    /// Too many points for a mark at each.
    pub dense: bool,
}

#[derive(Debug, Clone)]
pub struct Chart {
    /// File name without its ending.
    pub file: String,
    pub title: String,
    pub x: Axis,
    pub y: Axis,
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
            let width = 44 + text_width(&s.name, 16);
            if x + width > WIDTH && x > 12 {
                (row, x) = (row + 1, 12);
            }
            entries.push((i, row, x));
            x += width;
        }
        entries
    }

    fn colour(&self, i: usize) -> RGBColor {
        match self.series[i].colour {
            None => TEXT,
            Some(n) => SERIES[n % SERIES.len()],
        }
    }

    fn legend_entry(&self, area: &Area<'_>, i: usize, row: u32, x: u32) -> Result<()> {
        let y = (row * LEGEND_LINE + LEGEND_LINE / 2) as i32;
        let x = x as i32;
        let colour = self.colour(i);
        let (dash, gap) = self.series[i].pattern.dashes().unwrap_or((LEGEND_DASH, 0));
        for a in (0..LEGEND_DASH).step_by((dash + gap) as usize) {
            let ends = [a, (a + dash).min(LEGEND_DASH)].map(|e| (x + e as i32, y));
            let line = PathElement::new(ends.to_vec(), colour.stroke_width(2));
            area.draw(&line).map_err(failed)?;
        }
        let text = Text::new(self.series[i].name.clone(), (x + 27, y - 9), font(17));
        area.draw(&text).map_err(failed)
    }

    fn plot(&self, area: &Area<'_>) -> Result<()> {
        let points = || self.series.iter().flat_map(|s| &s.points);
        let x = self.x.scale(points().map(|p| p.x));
        let y = self.y.scale(points().flat_map(|p| [p.low, p.y, p.high]));
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, font(20))
            .margin(8)
            .margin_right(18)
            .x_label_area_size(52)
            .y_label_area_size(72)
            .build_cartesian_2d(x, y)
            .map_err(failed)?;
        chart
            .configure_mesh()
            .x_desc(&self.x.label)
            .y_desc(&self.y.label)
            .axis_desc_style(font(18))
            .label_style(font(17))
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
            let stroke = colour.stroke_width(2);
            match s.pattern.dashes() {
                Some((dash, gap)) => chart
                    .draw_series(DashedLineSeries::new(line, dash, gap, stroke))
                    .map(drop),
                None => chart.draw_series(LineSeries::new(line, stroke)).map(drop),
            }
            .map_err(failed)?;
            if s.dense || s.colour.is_none() {
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
            x: Axis::log("RTT (ms)"),
            y: Axis::linear("MB/s"),
            series: vec![
                Series {
                    name: "stock".into(),
                    points: vec![at(50.0, 32.0), at(200.0, 8.0)],
                    colour: Some(0),
                    pattern: Pattern::Solid,
                    dense: false,
                },
                Series {
                    name: "plain TCP".into(),
                    points: vec![at(50.0, 40.0), at(200.0, 33.0)],
                    colour: None,
                    pattern: Pattern::Dashed,
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
