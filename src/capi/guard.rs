//! The boundary that every export runs behind: no panic crosses it, and none
//! of the library's own reaches the process's panic hook.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::OnceLock;

use libc::c_int;

use crate::{Error, Result};

thread_local! {
    static INSIDE: Cell<u32> = const { Cell::new(0) };
}

type Hook = dyn Fn(&PanicHookInfo<'_>) + Sync + Send;

/// The default hook would read the environment and write to stderr, which a
/// library has no business to do. In a shared library this hook is the
/// library's own; linked statically into a Rust program it stands in front of
/// the program's, which still gets every panic from outside these calls.
fn quieten_own_panics() {
    static OUTER: OnceLock<Box<Hook>> = OnceLock::new();
    OUTER.get_or_init(|| {
        let outer = panic::take_hook();
        // This closure holds nothing, so that its box needs no memory, which
        // might not be there.
        panic::set_hook(Box::new(|info| {
            if INSIDE.get() == 0 {
                if let Some(outer) = OUTER.get() {
                    outer(info);
                }
            }
        }));
        outer
    });
}

/// Runs the body of an export. A panic becomes [`Error::Internal`]; the
/// handles in use by then stay marked as unusable.
pub(crate) fn boundary(body: impl FnOnce() -> Result<c_int>) -> c_int {
    quieten_own_panics();
    INSIDE.set(INSIDE.get() + 1);
    let result = panic::catch_unwind(AssertUnwindSafe(body));
    INSIDE.set(INSIDE.get() - 1);
    match result {
        Ok(Ok(state)) => state,
        Ok(Err(error)) => error.code(),
        Err(payload) => {
            // What else was thrown could panic again when it is dropped.
            if !payload.is::<String>() && !payload.is::<&str>() {
                std::mem::forget(payload);
            }
            Error::Internal.code()
        }
    }
}

/// The body of an export: takes each argument over from C, checked as its type
/// says, and runs what follows behind the boundary.
macro_rules! export {
    ($($name:ident: $kind:ty = $raw:expr),* ; $body:expr) => {
        $crate::capi::guard::boundary(|| {
            $(
                // SAFETY: the contract of every export: a pointer is NULL or
                // valid for what its documentation says, for the whole call.
                #[allow(unused_mut)]
                let mut $name = unsafe {
                    <$kind as $crate::capi::handle::Argument>::from_c($raw)
                }?;
            )*
            $body
        })
    };
}
pub(crate) use export;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_internal_error() {
        assert_eq!(boundary(|| panic!("on purpose")), Error::Internal.code());
        assert_eq!(boundary(|| Ok(1)), 1);
        assert_eq!(boundary(|| Err(Error::State)), Error::State.code());
    }
}
