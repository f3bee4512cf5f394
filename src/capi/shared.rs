//! A value that several handles own together, freed with the last of them.
//! Unsafe because `Rc` would abort where memory runs out.

use std::cell::{Cell, RefCell};
use std::ptr::NonNull;

use super::alloc::try_box;
use crate::{Error, Result};

struct Counted<T> {
    holders: Cell<usize>,
    /// Set while a call is inside, and for ever if that call panics.
    busy: Cell<bool>,
    value: RefCell<T>,
}

/// One of the owners.
pub(crate) struct Shared<T>(NonNull<Counted<T>>);

impl<T> Shared<T> {
    /// The first owner.
    pub(crate) fn new(value: T) -> Result<Self> {
        let counted = Counted {
            holders: Cell::new(1),
            busy: Cell::new(false),
            value: RefCell::new(value),
        };
        let counted = Box::into_raw(try_box(counted)?);
        NonNull::new(counted).map(Shared).ok_or(Error::NoMemory)
    }

    fn counted(&self) -> &Counted<T> {
        // SAFETY: it lives until the last holder is dropped.
        unsafe { self.0.as_ref() }
    }

    /// Uses the value. After a panic inside it nobody uses it again.
    pub(crate) fn with<R>(&self, action: impl FnOnce(&mut T) -> Result<R>) -> Result<R> {
        let counted = self.counted();
        if counted.busy.replace(true) {
            return Err(Error::State);
        }
        let result = match counted.value.try_borrow_mut() {
            Ok(mut value) => action(&mut value),
            Err(_) => Err(Error::State),
        };
        counted.busy.set(false);
        result
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        let holders = &self.counted().holders;
        holders.set(holders.get() + 1);
        Shared(self.0)
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        let holders = &self.counted().holders;
        holders.set(holders.get() - 1);
        if holders.get() == 0 {
            // SAFETY: made by Box::into_raw in new(), and this was the last holder.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{catch_unwind, AssertUnwindSafe};
    use std::rc::Rc;

    #[test]
    fn the_last_owner_frees_it() {
        let witness = Rc::new(());
        let first = Shared::new(witness.clone()).unwrap();
        let second = first.clone();
        drop(first);
        assert_eq!(Rc::strong_count(&witness), 2);
        drop(second);
        assert_eq!(Rc::strong_count(&witness), 1);
    }

    #[test]
    fn after_a_panic_nobody_uses_it_again() {
        let shared = Shared::new(1).unwrap();
        let other = shared.clone();
        let call = AssertUnwindSafe(|| shared.with(|_| -> Result<()> { panic!("on purpose") }));
        assert!(catch_unwind(call).is_err());
        assert_eq!(other.with(|value| Ok(*value)), Err(Error::State));
    }
}
