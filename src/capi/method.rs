//! Compression methods.

use libc::{c_char, c_int};

use super::guard::export;
use super::handle::{Elements, Out};
use super::version::SSHFLOW_OK;
use crate::compression::{compress_bound, Method};

/// "none": payloads are copied.
pub const SSHFLOW_METHOD_NONE: c_int = 0;
/// "zlib" (RFC 4253): starts with the first keys, before authentication.
pub const SSHFLOW_METHOD_ZLIB: c_int = 1;
/// "zlib@openssh.com": the same wire, after user authentication.
pub const SSHFLOW_METHOD_ZLIB_DELAYED: c_int = 2;
/// "zstd@sshflow.org" (doc/zstd-sshflow.md): after user authentication.
pub const SSHFLOW_METHOD_ZSTD: c_int = 3;

/// Finds a method by the name that was negotiated. `name` is `name_len` bytes
/// and needs no terminator. `*method` is written on success only.
///
/// Returns SSHFLOW_OK, SSHFLOW_ERR_UNSUPPORTED for a name unknown, or
/// SSHFLOW_ERR_INVALID_ARGUMENT for NULL.
#[no_mangle]
pub unsafe extern "C" fn sshflow_method_from_name(
    name: *const c_char,
    name_len: usize,
    method: *mut c_int,
) -> c_int {
    export!(name: Elements<u8> = (name.cast(), name_len), method: Out<c_int> = method; {
        method.set(Method::from_name(name.as_slice())? as c_int);
        Ok(SSHFLOW_OK)
    })
}

/// The name of a method, as it stands in KEXINIT. Static; NULL for a number
/// unknown.
#[no_mangle]
pub extern "C" fn sshflow_method_name(method: c_int) -> *const c_char {
    let name = match method {
        SSHFLOW_METHOD_NONE => c"none",
        SSHFLOW_METHOD_ZLIB => c"zlib",
        SSHFLOW_METHOD_ZLIB_DELAYED => c"zlib@openssh.com",
        SSHFLOW_METHOD_ZSTD => c"zstd@sshflow.org",
        _ => return std::ptr::null(),
    };
    name.as_ptr()
}

/// The comma-separated list for KEXINIT: with `offer` 0 "none" comes first and
/// the rest only says what this end can do, otherwise compression comes first.
/// Never contains "zlib", which starts before authentication. Static; never
/// NULL.
#[no_mangle]
pub extern "C" fn sshflow_method_list(offer: c_int) -> *const c_char {
    let list = match offer {
        0 => c"none,zstd@sshflow.org,zlib@openssh.com",
        _ => c"zstd@sshflow.org,zlib@openssh.com,none",
    };
    list.as_ptr()
}

/// 1 if the method starts after user authentication, 0 if it does not or if
/// the number is unknown.
#[no_mangle]
pub extern "C" fn sshflow_method_is_delayed(method: c_int) -> c_int {
    Method::from_number(method)
        .is_ok_and(Method::is_delayed)
        .into()
}

/// The room in bytes that always suffices to compress a payload of
/// `payload_len` bytes; sshflow_compress() refuses less. 0 for a method unknown
/// and for a payload over 1 GiB.
#[no_mangle]
pub extern "C" fn sshflow_compress_bound(method: c_int, payload_len: usize) -> usize {
    Method::from_number(method).map_or(0, |method| compress_bound(method, payload_len))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    #[test]
    fn the_c_names_are_those_of_the_core() {
        for method in Method::ALL {
            let name = sshflow_method_name(method as c_int);
            // SAFETY: a static string.
            let name = unsafe { CStr::from_ptr(name) };
            assert_eq!(name.to_str(), Ok(method.name()));
        }
        for offer in [0, 1] {
            // SAFETY: a static string.
            let list = unsafe { CStr::from_ptr(sshflow_method_list(offer)) };
            let names: Vec<_> = list.to_str().unwrap().split(',').collect();
            assert_eq!(
                names.iter().position(|name| *name == "none"),
                Some(2 * offer as usize)
            );
            assert!(names.iter().all(|name| {
                let method = Method::from_name(name.as_bytes()).unwrap();
                method == Method::None || method.is_delayed()
            }));
        }
    }
}
