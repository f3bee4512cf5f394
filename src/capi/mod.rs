//! The C interface: everything that is unsafe because C calls it, or because
//! it allocates on behalf of C.

pub(crate) mod alloc;
