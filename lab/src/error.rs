//! One error type for the whole program: a sentence for the person who runs it.
#![forbid(unsafe_code)]

use std::fmt;

/// What went wrong, in words.
#[derive(Debug)]
pub struct Error(String);

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

macro_rules! from {
    ($($t:ty),*) => {$(
        impl From<$t> for Error {
            fn from(e: $t) -> Self { Self(e.to_string()) }
        }
    )*};
}
from!(
    std::io::Error,
    nix::Error,
    serde_json::Error,
    toml::de::Error,
    std::fmt::Error
);

/// Puts what was being done in front of what failed.
pub trait Context<T> {
    fn context(self, doing: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: fmt::Display> Context<T> for std::result::Result<T, E> {
    fn context(self, doing: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|e| Error(format!("{}: {e}", doing())))
    }
}
