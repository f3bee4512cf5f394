#![forbid(unsafe_code)]
//! One budget for all windows of a connection.

use super::WINDOW_LIMIT;

/// The largest share, in bytes, that every channel may have when each gets
/// what it wants or the share, whichever is less, and all together stay within
/// `budget`. Those who want little never lose anything to those who want much.
pub(super) fn fair_share(wants: impl Iterator<Item = u32> + Clone, budget: u64) -> u32 {
    let fits = |share: u32| {
        let sum = wants
            .clone()
            .fold(0_u64, |sum, want| sum + u64::from(want.min(share)));
        sum <= budget
    };
    if fits(WINDOW_LIMIT) {
        return WINDOW_LIMIT;
    }
    let (mut fitting, mut too_large) = (0, WINDOW_LIMIT);
    while too_large - fitting > 1 {
        let middle = fitting + (too_large - fitting) / 2;
        match fits(middle) {
            true => fitting = middle,
            false => too_large = middle,
        }
    }
    fitting
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(wants: &[u32], budget: u64) -> u32 {
        fair_share(wants.iter().copied(), budget)
    }

    #[test]
    fn what_fits_is_not_limited() {
        assert_eq!(share(&[], 0), WINDOW_LIMIT);
        assert_eq!(share(&[10, 20], 30), WINDOW_LIMIT);
        assert_eq!(share(&[WINDOW_LIMIT; 3], u64::MAX), WINDOW_LIMIT);
    }

    #[test]
    fn the_modest_keep_theirs_and_the_rest_share_evenly() {
        assert_eq!(share(&[10, 20], 29), 19);
        assert_eq!(share(&[10, 1000, 2000], 110), 50);
        assert_eq!(share(&[7, 7, 7], 0), 0);
        assert_eq!(share(&[WINDOW_LIMIT, 5], 1005), 1000);
    }
}
