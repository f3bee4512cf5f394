#![forbid(unsafe_code)]
//! The compression methods and the names under which SSH negotiates them.

use crate::{Error, Result};

/// A compression method of the SSH transport (RFC 4253 section 6.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Method {
    /// `none`: payloads are copied.
    None = 0,
    /// `zlib`: RFC 4253; starts with the first keys, before authentication.
    Zlib = 1,
    /// `zlib@openssh.com`: the same, after user authentication.
    ZlibDelayed = 2,
    /// `zstd@sshflow.org`: see doc/zstd-sshflow.md; after user authentication.
    Zstd = 3,
}

/// The name of the zstd wire; it also tells a peer that this end is sshflow's.
pub const ZSTD_NAME: &str = "zstd@sshflow.org";

impl Method {
    /// All methods, by number.
    pub const ALL: [Method; 4] = [
        Method::None,
        Method::Zlib,
        Method::ZlibDelayed,
        Method::Zstd,
    ];

    /// The name that stands in KEXINIT.
    pub const fn name(self) -> &'static str {
        match self {
            Method::None => "none",
            Method::Zlib => "zlib",
            Method::ZlibDelayed => "zlib@openssh.com",
            Method::Zstd => ZSTD_NAME,
        }
    }

    /// The method of that name.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for any other name.
    pub fn from_name(name: &[u8]) -> Result<Method> {
        Method::ALL
            .into_iter()
            .find(|method| method.name().as_bytes() == name)
            .ok_or(Error::Unsupported)
    }

    /// The method of that number.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for any other number.
    pub fn from_number(number: i32) -> Result<Method> {
        Method::ALL
            .into_iter()
            .find(|method| *method as i32 == number)
            .ok_or(Error::InvalidArgument)
    }

    /// Whether compression starts only after user authentication.
    pub const fn is_delayed(self) -> bool {
        matches!(self, Method::ZlibDelayed | Method::Zstd)
    }

    /// Whether the wire is a deflate stream.
    pub const fn is_zlib(self) -> bool {
        matches!(self, Method::Zlib | Method::ZlibDelayed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_lead_back_to_the_method() {
        for method in Method::ALL {
            assert_eq!(Method::from_name(method.name().as_bytes()), Ok(method));
            assert_eq!(Method::from_number(method as i32), Ok(method));
        }
        assert_eq!(Method::from_name(b"zlib\0"), Err(Error::Unsupported));
        assert_eq!(
            Method::from_name(b"zstd@openssh.com"),
            Err(Error::Unsupported)
        );
        assert_eq!(Method::from_number(4), Err(Error::InvalidArgument));
    }
}
