//! The working directory: data, sources, keys, results.
#![forbid(unsafe_code)]

use crate::error::{Context, Error, Result};
use std::path::{Path, PathBuf};

/// Where the lab keeps things; `target/lab` unless told otherwise.
#[derive(Debug, Clone)]
pub struct Work {
    root: PathBuf,
}

impl Work {
    pub fn new(root: &Path) -> Result<Self> {
        std::fs::create_dir_all(root).context(|| format!("making {}", root.display()))?;
        Ok(Self {
            root: root.canonicalize()?,
        })
    }

    /// A directory below, made if need be.
    pub fn dir(&self, name: &str) -> Result<PathBuf> {
        let path = self.root.join(name);
        std::fs::create_dir_all(&path).context(|| format!("making {}", path.display()))?;
        Ok(path)
    }

    /// A file that `scripts/lab-fetch` brings.
    pub fn source(&self, name: &str) -> Result<PathBuf> {
        let path = self.root.join("sources").join(name);
        if path.exists() {
            return Ok(path);
        }
        Err(Error::new(format!(
            "{name} is missing: run scripts/lab-fetch first"
        )))
    }
}
