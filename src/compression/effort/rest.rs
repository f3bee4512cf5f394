#![forbid(unsafe_code)]
//! How long a better plan has to look better before it is taken.
//!
//! Beliefs that swing would make the effort swing with them. Each change asks
//! for more patience with the next; time makes up for it.

/// A better plan is taken when the time it would have saved since it was first
/// seen exceeds this.
const CONVINCED_NS: f32 = 10e6;
const FIRST_CONVINCED_NS: f32 = 2e6;
/// How long a connection is new.
const NEW_NS: f32 = 0.3e9;
/// What each change multiplies that by, and after how long half of the changes
/// are forgotten.
const PATIENCE: f32 = 2.5;
const HALF_LIFE_NS: f32 = 2e9;

#[derive(Clone, Copy, Debug, Default)]
pub struct Rest {
    changes: f32,
    changed_ns: u64,
}

impl Rest {
    /// Recent changes of effort.
    fn recent(&self, now_ns: u64) -> f32 {
        let since = now_ns.saturating_sub(self.changed_ns) as f32;
        self.changes * (-since / HALF_LIFE_NS).exp2()
    }

    /// The effort has changed at `now_ns`, on a connection that has been at
    /// work for `age_ns`.
    pub fn changed(&mut self, now_ns: u64, age_ns: f32) {
        // Where nothing is known yet, changing is learning.
        if age_ns >= NEW_NS {
            self.changes = self.recent(now_ns) + 1.0;
            self.changed_ns = now_ns;
        }
    }

    /// The time that a better plan must have been worth by now.
    pub fn needed_ns(&self, now_ns: u64, age_ns: f32) -> f32 {
        if age_ns < NEW_NS {
            FIRST_CONVINCED_NS
        } else {
            CONVINCED_NS * PATIENCE.powf(self.recent(now_ns))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn each_change_makes_the_next_one_dearer_for_some_seconds() {
        let mut rest = Rest::default();
        let calm = rest.needed_ns(SECOND, 1e9);
        for _ in 0..3 {
            rest.changed(SECOND, 1e9);
        }
        assert!(rest.needed_ns(SECOND, 1e9) > 10.0 * calm);
        assert!(rest.needed_ns(20 * SECOND, 1e9) < 1.1 * calm);
    }

    #[test]
    fn a_new_connection_may_change_its_mind() {
        let mut rest = Rest::default();
        rest.changed(SECOND / 10, 0.1e9);
        assert_eq!(rest.needed_ns(SECOND / 10, 0.1e9), FIRST_CONVINCED_NS);
        assert_eq!(rest.needed_ns(SECOND, 0.9e9), CONVINCED_NS);
    }
}
