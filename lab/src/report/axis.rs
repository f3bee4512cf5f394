//! Ranges and ticks of an axis.
#![forbid(unsafe_code)]

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use std::ops::Range;

/// How an axis is divided.
#[derive(Debug, Clone)]
pub struct Axis {
    pub label: String,
    pub log: bool,
    /// Ticks at just these values, where they are what was chosen to be measured.
    pub ticks: Vec<f64>,
}

/// About so many ticks on a linear axis.
const TICKS: f64 = 6.0;
/// A logarithmic axis that spans less than this has ticks between the powers of ten.
const FINE_SPAN: f64 = 300.0;

impl Axis {
    pub fn linear(label: &str) -> Self {
        Self {
            label: label.into(),
            log: false,
            ticks: vec![],
        }
    }

    pub fn log(label: &str) -> Self {
        Self {
            log: true,
            ..Self::linear(label)
        }
    }

    pub fn at(mut self, mut ticks: Vec<f64>) -> Self {
        ticks.sort_by(f64::total_cmp);
        ticks.dedup();
        self.ticks = ticks;
        self
    }

    pub fn scale(&self, values: impl Iterator<Item = f64>) -> Scale {
        let (low, high) = self.range(values);
        Scale {
            low,
            high,
            log: self.log,
            ticks: self.ticks((low, high)),
        }
    }

    /// From the values that are to be shown to the range of the axis, with some air.
    fn range(&self, values: impl Iterator<Item = f64>) -> (f64, f64) {
        let (low, high) = values
            .filter(|v| v.is_finite() && (!self.log || *v > 0.0))
            .fold((f64::MAX, f64::MIN), |(a, b), v| (a.min(v), b.max(v)));
        match (low <= high, self.log) {
            (false, _) => (0.1, 1.0),
            (true, true) => (low / 1.25, high * 1.25),
            (true, false) => (0.0, (high * 1.08).max(1e-9)),
        }
    }

    fn ticks(&self, (low, high): (f64, f64)) -> Vec<f64> {
        let inside = |v: &f64| (low..=high).contains(v);
        if !self.ticks.is_empty() {
            return self.ticks.iter().copied().filter(inside).collect();
        }
        if !self.log {
            let step = nice((high - low) / TICKS);
            let count = ((high - low) / step).floor() as usize;
            return (0..=count).map(|i| low + i as f64 * step).collect();
        }
        let steps: &[f64] = match high / low < FINE_SPAN {
            true => &[1.0, 2.0, 5.0],
            false => &[1.0],
        };
        let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
        let all = decades.flat_map(|d| steps.iter().map(move |s| s * 10f64.powi(d)));
        all.filter(inside).collect()
    }
}

/// An axis as the plotting library takes it.
pub struct Scale {
    low: f64,
    high: f64,
    log: bool,
    ticks: Vec<f64>,
}

impl Ranged for Scale {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        let place = |v: f64| if self.log { v.ln() } else { v };
        let (low, high) = (place(self.low), place(self.high));
        let share = (place(*value) - low) / (high - low);
        from + (f64::from(to - from) * share).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        match hint.weight().allow_light_points() {
            true => vec![],
            false => self.ticks.clone(),
        }
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

/// The step of 1, 2 or 5 times a power of ten that is nearest above.
fn nice(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let choices = [1.0, 2.0, 5.0, 10.0].map(|c| c * power);
    // Rounding must not push a step that is nice already to the next.
    let fits = choices.into_iter().find(|c| *c >= step * 0.999);
    fits.unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(
            Axis::linear("x").ticks((0.0, 38.0)),
            [0.0, 10.0, 20.0, 30.0]
        );
        assert_eq!(Axis::log("x").ticks((2.0, 40.0)), [2.0, 5.0, 10.0, 20.0]);
        assert_eq!(Axis::log("x").ticks((0.5, 2000.0)).len(), 4);
        let own = Axis::log("x").at(vec![500.0, 20.0, 20.0]);
        assert_eq!(own.ticks((16.0, 600.0)), [20.0, 500.0]);
    }
}
