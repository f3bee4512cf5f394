//! Medians, spreads, and ratios with confidence intervals.
#![forbid(unsafe_code)]

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Resamples of a bootstrap.
const RESAMPLES: usize = 4000;
const FEW: usize = 8;

pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// Linear interpolation between order statistics.
pub fn quantile(values: &[f64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    if sorted.is_empty() {
        return f64::NAN;
    }
    let at = q.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let (low, high) = (at.floor() as usize, at.ceil() as usize);
    sorted[low] + (sorted[high] - sorted[low]) * (at - low as f64)
}

/// A ratio with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    pub ratio: f64,
    pub low: f64,
    pub high: f64,
}

impl Ratio {
    /// False when the interval says that the two differ.
    pub fn contains_one(&self) -> bool {
        (self.low..=self.high).contains(&1.0)
    }
}

/// The geometric mean of `pairs` (value, baseline), with an expanded percentile bootstrap
/// interval (Hesterberg 2015): plain percentiles are too narrow for a handful of runs, so they are
/// taken further out, as Student's t is. Fewer than [`FEW`] pairs often lie all on one side of the
/// truth, which no resampling can know: there the interval is at least Student's. Runs that stood next to each other form a pair, which
/// takes the machine's slow drift out. `None` with fewer than two pairs.
pub fn ratio(pairs: &[(f64, f64)], seed: u64) -> Option<Ratio> {
    let logs: Vec<f64> = pairs
        .iter()
        .filter(|(a, b)| *a > 0.0 && *b > 0.0)
        .map(|(a, b)| (a / b).ln())
        .collect();
    let n = logs.len();
    if n < 2 {
        return None;
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut mean_of_resample = || {
        let sum: f64 = (0..n).map(|_| logs[rng.gen_range(0..n)]).sum();
        sum / n as f64
    };
    let means: Vec<f64> = (0..RESAMPLES).map(|_| mean_of_resample()).collect();
    let mean = logs.iter().sum::<f64>() / n as f64;
    let t = student_t_975(n - 1);
    let tail = normal_tail(t * (n as f64 / (n - 1) as f64).sqrt());
    let (mut low, mut high) = (quantile(&means, tail), quantile(&means, 1.0 - tail));
    if n < FEW {
        let variance = logs.iter().map(|l| (l - mean).powi(2)).sum::<f64>() / (n - 1) as f64;
        let half = t * (variance / n as f64).sqrt();
        (low, high) = (low.min(mean - half), high.max(mean + half));
    }
    Some(Ratio {
        ratio: mean.exp(),
        low: low.exp(),
        high: high.exp(),
    })
}

/// The 97.5 % quantile of Student's t (tabulated; beyond, by the usual expansion).
fn student_t_975(degrees: usize) -> f64 {
    const TABLE: [f64; 12] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179,
    ];
    match TABLE.get(degrees - 1) {
        Some(t) => *t,
        None => {
            let z = 1.959_964_f64;
            z + (z.powi(3) + z) / (4.0 * degrees as f64)
        }
    }
}

/// Probability that a normal variable exceeds `z` (Abramowitz and Stegun 26.2.17).
fn normal_tail(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z);
    let polynomial = t
        * (0.319_381_53
            + t * (-0.356_563_782
                + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
    (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() * polynomial
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs with a noise of `spread`, around 1 for the baseline and `truth` for the other.
    fn noisy(rng: &mut ChaCha8Rng, n: usize, truth: f64, spread: f64) -> Vec<(f64, f64)> {
        let mut noise = || 1.0 + spread * (0..6).map(|_| rng.gen::<f64>() - 0.5).sum::<f64>();
        (0..n).map(|_| (truth * noise(), noise())).collect()
    }

    #[test]
    fn quantiles_interpolate() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[1.0, 2.0]), 1.5);
        assert!((normal_tail(1.959_964) - 0.025).abs() < 1e-5);
    }

    #[test]
    fn identical_variants_mostly_contain_one() {
        for n in [3, 5, 10] {
            let mut rng = ChaCha8Rng::seed_from_u64(n as u64);
            let hits = (0..300)
                .filter(|i| {
                    ratio(&noisy(&mut rng, n, 1.0, 0.1), *i)
                        .unwrap()
                        .contains_one()
                })
                .count();
            // 17 of 20 is asked; 90 % leaves room for chance.
            assert!(hits >= 270, "{hits} of 300 with {n} pairs");
        }
    }

    #[test]
    fn a_real_difference_is_found() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let hits = (0..200)
            .filter(|i| ratio(&noisy(&mut rng, 10, 0.95, 0.02), *i).unwrap().high < 1.0)
            .count();
        assert!(hits > 195, "{hits}");
    }

    #[test]
    fn a_single_pair_says_nothing() {
        assert!(ratio(&[(1.0, 2.0)], 1).is_none());
        assert!(ratio(&[(0.0, 2.0), (1.0, 1.0)], 1).is_none());
    }
}
