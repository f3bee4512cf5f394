//! The data that is sent: each kind is made by a recipe with a fixed seed or from pinned files,
//! once, and checked by its hash ever after.
#![forbid(unsafe_code)]

mod archive;
mod image;
mod records;
mod session;
mod simple;
mod text;
mod x11;

pub use session::script;

use crate::error::{Context, Error, Result};
use crate::work::Work;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// How certain it is that two machines make the same bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pinned {
    /// The hash in `expected.sha256` is the only one that is accepted.
    Exact,
    /// Depends on the version of a tool or of fonts: another hash is reported, and used.
    ByTool,
}

pub struct Recipe {
    pub name: &'static str,
    pub about: &'static str,
    pub pinned: Pinned,
    make: fn(&Work, &mut dyn Write) -> Result<()>,
}

/// Every kind of data, in the order of tables.
pub const RECIPES: &[Recipe] = &[
    Recipe {
        name: "log",
        about: "system log lines",
        pinned: Pinned::Exact,
        make: text::log,
    },
    Recipe {
        name: "x11",
        about: "screens of an X server",
        pinned: Pinned::ByTool,
        make: x11::make,
    },
    Recipe {
        name: "image",
        about: "ext4 disk image",
        pinned: Pinned::ByTool,
        make: image::make,
    },
    Recipe {
        name: "random",
        about: "random bytes",
        pinned: Pinned::Exact,
        make: simple::random,
    },
    Recipe {
        name: "xz",
        about: "an .xz file",
        pinned: Pinned::ByTool,
        make: archive::xz,
    },
    Recipe {
        name: "source",
        about: "source tar",
        pinned: Pinned::Exact,
        make: archive::source,
    },
    Recipe {
        name: "elf",
        about: "ELF binaries",
        pinned: Pinned::Exact,
        make: archive::elf,
    },
    Recipe {
        name: "json",
        about: "JSON dump",
        pinned: Pinned::Exact,
        make: records::json,
    },
    Recipe {
        name: "sql",
        about: "SQL dump",
        pinned: Pinned::Exact,
        make: records::sql,
    },
    Recipe {
        name: "base64",
        about: "base64 of random",
        pinned: Pinned::Exact,
        make: simple::base64,
    },
    Recipe {
        name: "mixed",
        about: "random, text, zeros, .gz in turn",
        pinned: Pinned::Exact,
        make: simple::mixed,
    },
    Recipe {
        name: "keys",
        about: "screen output of a typing session",
        pinned: Pinned::ByTool,
        make: session::make,
    },
    Recipe {
        name: "zero",
        about: "zeros",
        pinned: Pinned::Exact,
        make: simple::zero,
    },
];

/// A data file that is ready to be sent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Data {
    pub name: String,
    pub path: PathBuf,
    pub bytes: u64,
    pub sha256: String,
}

const EXPECTED: &str = include_str!("../../data/expected.sha256");

pub fn recipe(name: &str) -> Result<&'static Recipe> {
    RECIPES.iter().find(|r| r.name == name).ok_or_else(|| {
        let known: Vec<&str> = RECIPES.iter().map(|r| r.name).collect();
        Error::new(format!("no data called \"{name}\" ({})", known.join(", ")))
    })
}

/// Makes the data unless it is there, and checks it either way.
pub fn get(work: &Work, name: &str) -> Result<Data> {
    let recipe = recipe(name)?;
    let dir = work.dir("data")?;
    let path = dir.join(name);
    let note = dir.join(format!("{name}.sha256"));
    let known = std::fs::read_to_string(&note).ok();
    if !path.exists() || known.is_none() {
        make(work, recipe, &path).context(|| format!("making the data \"{name}\""))?;
    }
    let (bytes, sha256) = hash_file(&path)?;
    if let Some(known) = known.filter(|_| path.exists()) {
        if known.trim() != sha256 {
            return Err(Error::new(format!(
                "{} was changed: remove it",
                path.display()
            )));
        }
    }
    check(recipe, &sha256)?;
    std::fs::write(&note, &sha256)?;
    Ok(Data {
        name: name.into(),
        path,
        bytes,
        sha256,
    })
}

fn make(work: &Work, recipe: &Recipe, path: &Path) -> Result<()> {
    let part = path.with_extension(format!("part{}", std::process::id()));
    let mut out = std::io::BufWriter::with_capacity(1 << 20, File::create(&part)?);
    let made = (recipe.make)(work, &mut out).and_then(|()| Ok(out.flush()?));
    if let Err(e) = made {
        let _ = std::fs::remove_file(&part);
        return Err(e);
    }
    Ok(std::fs::rename(part, path)?)
}

fn check(recipe: &Recipe, sha256: &str) -> Result<()> {
    let expected = EXPECTED
        .lines()
        .filter_map(|l| l.split_once("  "))
        .find(|(_, name)| *name == recipe.name)
        .map(|(hash, _)| hash);
    match expected {
        Some(e) if e == sha256 => Ok(()),
        Some(_) if recipe.pinned == Pinned::ByTool => {
            eprintln!(
                "data {}: other tools than where the recipe was written, so other bytes ({}…)",
                recipe.name,
                &sha256[..12]
            );
            Ok(())
        }
        Some(e) => Err(Error::new(format!(
            "the data \"{}\" has the hash {sha256} and not {e}",
            recipe.name
        ))),
        None => Err(Error::new(format!(
            "no hash is written down for \"{}\" ({sha256})",
            recipe.name
        ))),
    }
}

fn hash_file(path: &Path) -> Result<(u64, String)> {
    let mut file = File::open(path).context(|| format!("opening {}", path.display()))?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    let mut bytes = 0;
    loop {
        let n = file.read(&mut buffer)?;
        if n == 0 {
            return Ok((bytes, format!("{:x}", hash.finalize())));
        }
        hash.update(&buffer[..n]);
        bytes += n as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recipe_has_its_hash_written_down() {
        for r in RECIPES {
            assert!(
                EXPECTED
                    .lines()
                    .any(|l| l.ends_with(&format!("  {}", r.name))),
                "{}",
                r.name
            );
        }
    }

    #[test]
    fn another_hash_is_refused_where_the_bytes_are_pinned() {
        assert!(check(recipe("log").unwrap(), &"0".repeat(64)).is_err());
        assert!(check(recipe("x11").unwrap(), &"0".repeat(64)).is_ok());
    }
}
