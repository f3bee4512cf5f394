//! Memory that may fail, is counted and is zeroed when freed. Unsafe because
//! it is the allocator that the C engines call, and because Rust's own boxes
//! abort where memory runs out.

use std::alloc::{alloc, dealloc, Layout};
use std::cell::Cell;
use std::ptr::{self, NonNull};

use libc::c_void;

use crate::{Error, Result};

/// A box, or [`Error::NoMemory`].
pub(crate) fn try_box<T>(value: T) -> Result<Box<T>> {
    let layout = Layout::new::<T>();
    if layout.size() == 0 {
        return Ok(Box::new(value));
    }
    // SAFETY: the size is not 0; the block has the layout of a T and holds one
    // before Box takes it over.
    unsafe {
        let block = alloc(layout).cast::<T>();
        if block.is_null() {
            return Err(Error::NoMemory);
        }
        block.write(value);
        Ok(Box::from_raw(block))
    }
}

/// Frees a box and zeroes its memory, which may have held payload.
pub(crate) fn wipe_box<T>(value: Box<T>) {
    let layout = Layout::new::<T>();
    let block = Box::into_raw(value);
    // SAFETY: the block came from a box, holds a value and is not used again;
    // a box of no bytes has no memory to free.
    unsafe {
        block.drop_in_place();
        if layout.size() > 0 {
            wipe(block.cast(), layout.size());
            dealloc(block.cast(), layout);
        }
    }
}

#[derive(Default)]
struct Counters {
    holders: Cell<usize>,
    limit: Cell<usize>,
    used: Cell<usize>,
    peak: Cell<usize>,
}

/// Counts what the engines of one handle hold, and refuses what goes over a
/// limit. Clones share the counters, so that an engine keeps them alive.
pub(crate) struct Account(NonNull<Counters>);

impl Account {
    /// An account with nothing in it.
    pub(crate) fn new(limit: usize) -> Result<Self> {
        let counters = Counters {
            holders: Cell::new(1),
            limit: Cell::new(limit),
            ..Counters::default()
        };
        let counters = Box::into_raw(try_box(counters)?);
        NonNull::new(counters).map(Account).ok_or(Error::NoMemory)
    }

    fn counters(&self) -> &Counters {
        // SAFETY: the counters live until the last holder is dropped.
        unsafe { self.0.as_ref() }
    }

    /// Bytes in use now.
    pub(crate) fn used(&self) -> usize {
        self.counters().used.get()
    }

    /// The most bytes that were ever in use.
    pub(crate) fn peak(&self) -> usize {
        self.counters().peak.get()
    }

    /// The limit, in bytes.
    pub(crate) fn limit(&self) -> usize {
        self.counters().limit.get()
    }

    /// What a C engine is to be given as its allocator's argument. Good for as
    /// long as a clone of this account is kept beside the engine.
    pub(crate) fn as_opaque(&self) -> *mut c_void {
        self.0.as_ptr().cast()
    }
}

impl Clone for Account {
    fn clone(&self) -> Self {
        let holders = &self.counters().holders;
        holders.set(holders.get() + 1);
        Account(self.0)
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let holders = &self.counters().holders;
        holders.set(holders.get() - 1);
        if holders.get() == 0 {
            // SAFETY: made by Box::into_raw in new(), and this was the last holder.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
        }
    }
}

// SAFETY: an account and all its clones belong to one handle, and a handle to
// one thread at a time; nothing in it is bound to the thread that made it.
unsafe impl Send for Account {}

/// In front of each block: its size, and padding to keep what follows aligned.
const PREFIX: usize = 16;

fn layout_of(size: usize) -> Option<Layout> {
    Layout::from_size_align(size.checked_add(PREFIX)?, PREFIX).ok()
}

/// `malloc` for a C engine.
///
/// # Safety
/// `account` is what [`Account::as_opaque`] gave, and that account is alive.
pub(crate) unsafe extern "C" fn engine_alloc(account: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: as the caller promises.
    let counters = unsafe { &*account.cast::<Counters>() };
    let total = counters.used.get().saturating_add(size);
    let (Some(layout), true) = (layout_of(size), total <= counters.limit.get()) else {
        return ptr::null_mut();
    };
    // SAFETY: the layout is larger than 0 bytes and aligned for a usize.
    unsafe {
        let block = alloc(layout);
        if block.is_null() {
            return ptr::null_mut();
        }
        counters.used.set(total);
        counters.peak.set(counters.peak.get().max(total));
        block.cast::<usize>().write(size);
        block.add(PREFIX).cast()
    }
}

/// `free` for a C engine; the block is zeroed first.
///
/// # Safety
/// `account` as for [`engine_alloc`]; `block` is NULL or came from it.
pub(crate) unsafe extern "C" fn engine_free(account: *mut c_void, block: *mut c_void) {
    if block.is_null() {
        return;
    }
    // SAFETY: the block came from engine_alloc, which wrote its size in front.
    unsafe {
        let start = block.cast::<u8>().sub(PREFIX);
        let size = start.cast::<usize>().read();
        let Some(layout) = layout_of(size) else {
            return;
        };
        wipe(block.cast(), size);
        dealloc(start, layout);
        let counters = &*account.cast::<Counters>();
        counters.used.set(counters.used.get().saturating_sub(size));
    }
}

/// Zeroes memory in a way that the compiler may not leave out although nobody
/// reads it again.
///
/// # Safety
/// `size` bytes at `block` are writable.
unsafe fn wipe(block: *mut u8, size: usize) {
    // SAFETY: as the caller promises.
    unsafe { ptr::write_bytes(block, 0, size) };
    std::hint::black_box(block);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_counts_and_refuses_over_the_limit() {
        let account = Account::new(1000).unwrap();
        let opaque = account.as_opaque();
        // SAFETY: the account is alive; each block is freed once.
        unsafe {
            let block = engine_alloc(opaque, 600);
            assert!(!block.is_null() && block as usize % PREFIX == 0);
            assert!(engine_alloc(opaque, 401).is_null());
            assert!(engine_alloc(opaque, usize::MAX).is_null());
            assert_eq!(account.used(), 600);
            engine_free(opaque, block);
            engine_free(opaque, ptr::null_mut());
        }
        assert_eq!((account.used(), account.peak()), (0, 600));
    }

    #[test]
    fn clones_keep_the_counters_alive() {
        let account = Account::new(10).unwrap();
        let clone = account.clone();
        drop(account);
        assert_eq!(clone.limit(), 10);
    }
}
