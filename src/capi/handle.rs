//! What C hands over, and who owns it: a type for each kind of pointer, so
//! that the exports hold no pointer arithmetic and no cast.

use std::cell::{Cell, UnsafeCell};
use std::ffi::CStr;
use std::ops::{Deref, DerefMut};
use std::slice;

use libc::c_char;

use super::alloc::{try_box, wipe_box};
use crate::{Error, Result};

/// A value that C knows by address only.
pub(crate) struct Handle<T> {
    /// Set while a call is inside, and for ever if that call panics.
    busy: Cell<bool>,
    value: UnsafeCell<T>,
}

impl<T> Handle<T> {
    pub(crate) const fn new(value: T) -> Self {
        Handle {
            busy: Cell::new(false),
            value: UnsafeCell::new(value),
        }
    }
}

/// An opaque C type and what is in it.
pub(crate) trait Opaque: Sized {
    /// What is in it.
    type Value;
    /// Wraps a value.
    fn wrap(value: Self::Value) -> Self;
    /// The handle inside.
    fn handle(&self) -> &Handle<Self::Value>;
}

/// Makes `$name(Handle<$value>)` an [`Opaque`] type.
macro_rules! opaque {
    ($name:ident, $value:ty) => {
        impl $crate::capi::handle::Opaque for $name {
            type Value = $value;
            fn wrap(value: $value) -> Self {
                $name($crate::capi::handle::Handle::new(value))
            }
            fn handle(&self) -> &$crate::capi::handle::Handle<$value> {
                &self.0
            }
        }
    };
}
pub(crate) use opaque;

/// Something that an export takes from C.
pub(crate) trait Argument: Sized {
    /// What C passes.
    type Raw;
    /// Checks and takes over.
    ///
    /// # Safety
    /// Pointers in `raw` are NULL or valid as the type says, and stay so while
    /// the result lives.
    unsafe fn from_c(raw: Self::Raw) -> Result<Self>;
}

/// A handle for the length of a call, nobody else inside.
pub(crate) struct Exclusive<'a, O: Opaque> {
    handle: &'a Handle<O::Value>,
    was_panicking: bool,
}

impl<'a, O: Opaque + 'a> Exclusive<'a, O> {
    fn enter(object: &'a O) -> Result<Self> {
        let handle = object.handle();
        if handle.busy.replace(true) {
            return Err(Error::State);
        }
        Ok(Exclusive {
            handle,
            was_panicking: std::thread::panicking(),
        })
    }
}

impl<O: Opaque> Drop for Exclusive<'_, O> {
    fn drop(&mut self) {
        // Left behind by a panic of this call, the handle stays unusable.
        let panicked = std::thread::panicking() && !self.was_panicking;
        self.handle.busy.set(panicked);
    }
}

impl<O: Opaque> Deref for Exclusive<'_, O> {
    type Target = O::Value;
    fn deref(&self) -> &O::Value {
        // SAFETY: `busy` lets one Exclusive exist at a time, and a handle
        // belongs to one thread at a time.
        unsafe { &*self.handle.value.get() }
    }
}

impl<O: Opaque> DerefMut for Exclusive<'_, O> {
    fn deref_mut(&mut self) -> &mut O::Value {
        // SAFETY: as in deref().
        unsafe { &mut *self.handle.value.get() }
    }
}

impl<'a, O: Opaque + 'a> Argument for Exclusive<'a, O> {
    type Raw = *mut O;
    unsafe fn from_c(raw: *mut O) -> Result<Self> {
        // SAFETY: as the caller promises; only a shared reference is made.
        let object = unsafe { raw.as_ref() };
        Exclusive::enter(object.ok_or(Error::InvalidArgument)?)
    }
}

/// A handle that the call only reads.
pub(crate) struct Shared<'a, O: Opaque>(Exclusive<'a, O>);

impl<O: Opaque> Deref for Shared<'_, O> {
    type Target = O::Value;
    fn deref(&self) -> &O::Value {
        &self.0
    }
}

impl<'a, O: Opaque + 'a> Argument for Shared<'a, O> {
    type Raw = *const O;
    unsafe fn from_c(raw: *const O) -> Result<Self> {
        // SAFETY: as the caller promises.
        unsafe { Exclusive::from_c(raw.cast_mut()) }.map(Shared)
    }
}

impl<A: Argument<Raw = *const O>, O> Argument for Option<A> {
    type Raw = *const O;
    unsafe fn from_c(raw: *const O) -> Result<Self> {
        if raw.is_null() {
            return Ok(None);
        }
        // SAFETY: as the caller promises.
        unsafe { A::from_c(raw) }.map(Some)
    }
}

/// Where a result goes.
pub(crate) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// Writes the result, whatever stood there before.
    pub(crate) fn set(&mut self, value: T) {
        // SAFETY: not NULL, and writable as promised to from_c().
        unsafe { self.0.write(value) };
    }
}

impl<O: Opaque> Out<*mut O> {
    /// Gives a new handle to C.
    pub(crate) fn give(&mut self, value: O::Value) -> Result<()> {
        let object = try_box(O::wrap(value))?;
        self.set(Box::into_raw(object));
        Ok(())
    }
}

impl<T> Argument for Out<T> {
    type Raw = *mut T;
    unsafe fn from_c(raw: *mut T) -> Result<Self> {
        if raw.is_null() || !raw.is_aligned() {
            return Err(Error::InvalidArgument);
        }
        Ok(Out(raw))
    }
}

/// A handle that C gives back to be freed; NULL is nothing.
pub(crate) struct Given<O>(Option<Box<O>>);

impl<O> Given<O> {
    /// Frees it.
    pub(crate) fn free(self) {
        if let Some(object) = self.0 {
            wipe_box(object);
        }
    }
}

impl<O> Argument for Given<O> {
    type Raw = *mut O;
    unsafe fn from_c(raw: *mut O) -> Result<Self> {
        if raw.is_null() {
            return Ok(Given(None));
        }
        // SAFETY: it came from Out::give(), and C does not use it again.
        Ok(Given(Some(unsafe { Box::from_raw(raw) })))
    }
}

/// A NUL-terminated string in UTF-8.
pub(crate) struct Text<'a>(&'a str);

impl Deref for Text<'_> {
    type Target = str;
    fn deref(&self) -> &str {
        self.0
    }
}

impl Argument for Text<'_> {
    type Raw = *const c_char;
    unsafe fn from_c(raw: *const c_char) -> Result<Self> {
        if raw.is_null() {
            return Err(Error::InvalidArgument);
        }
        // SAFETY: not NULL, and NUL-terminated as the caller promises.
        let text = unsafe { CStr::from_ptr(raw) };
        let text = text.to_str().map_err(|_| Error::InvalidArgument)?;
        Ok(Text(text))
    }
}

/// A pointer with a length; NULL if the length is 0.
fn checked<T>(is_null: bool, len: usize) -> Result<()> {
    let size = len.checked_mul(size_of::<T>());
    let fits = size.is_some_and(|size| size <= isize::MAX as usize);
    if !fits || is_null && len > 0 {
        return Err(Error::InvalidArgument);
    }
    Ok(())
}

/// Elements to read.
pub(crate) struct Elements<'a, T>(&'a [T]);

impl<'a, T> Elements<'a, T> {
    pub(crate) fn as_slice(&self) -> &'a [T] {
        self.0
    }
}

impl<T> Argument for Elements<'_, T> {
    type Raw = (*const T, usize);
    unsafe fn from_c((data, len): (*const T, usize)) -> Result<Self> {
        checked::<T>(data.is_null(), len)?;
        if len == 0 {
            return Ok(Elements(&[]));
        }
        // SAFETY: not NULL, and `len` elements long as the caller promises.
        Ok(Elements(unsafe { slice::from_raw_parts(data, len) }))
    }
}

/// Room for bytes.
pub(crate) struct Room<'a>(&'a mut [u8]);

impl Deref for Room<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.0
    }
}

impl DerefMut for Room<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.0
    }
}

impl Argument for Room<'_> {
    type Raw = (*mut u8, usize);
    unsafe fn from_c((data, len): (*mut u8, usize)) -> Result<Self> {
        checked::<u8>(data.is_null(), len)?;
        if len == 0 {
            return Ok(Room(&mut []));
        }
        // SAFETY: not NULL, and `len` bytes long as the caller promises.
        Ok(Room(unsafe { slice::from_raw_parts_mut(data, len) }))
    }
}

/// Where a structure goes that grows from version to version: the caller says
/// how much of it he knows.
pub(crate) struct Growing<T> {
    target: *mut T,
    size: usize,
}

/// Larger than any version of any structure; a size above it is a mistake.
const MAX_STRUCTURE: usize = 4096;

impl<T: Copy> Growing<T> {
    /// Writes what the caller knows of `value`, and zeroes behind it.
    pub(crate) fn set(&mut self, value: T) {
        let known = self.size.min(size_of::<T>());
        // SAFETY: `size` bytes are writable as promised to from_c(); no more
        // than the size of a T is read from the value.
        unsafe {
            let target = self.target.cast::<u8>();
            target.write_bytes(0, self.size);
            target.copy_from_nonoverlapping((&raw const value).cast(), known);
        }
    }
}

impl<T> Argument for Growing<T> {
    type Raw = (*mut T, usize);
    unsafe fn from_c((target, size): (*mut T, usize)) -> Result<Self> {
        if target.is_null() || size == 0 || size > MAX_STRUCTURE {
            return Err(Error::InvalidArgument);
        }
        Ok(Growing { target, size })
    }
}
