//! Data from pinned files: source tar, ELF binaries, .xz.
#![forbid(unsafe_code)]

use crate::error::{Context, Error, Result};
use crate::sys::spawn::Spawn;
use crate::work::Work;
use flate2::read::GzDecoder;
use std::fs::File;
use std::io::{copy, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Release tarballs; scripts/lab-fetch brings them and checks their hashes.
const TARBALLS: &[&str] = &[
    "openssh_9.2p1.orig.tar.gz",
    "openssh_10.0p1.orig.tar.gz",
    "libssh2_1.10.0.orig.tar.gz",
    "libssh2_1.11.1.orig.tar.gz",
];
/// Debian packages (bookworm).
pub const PACKAGES: &[&str] = &[
    "coreutils_9.1-1_amd64.deb",
    "gawk_5.2.1-2_amd64.deb",
    "libllvm14_14.0.6-12_amd64.deb",
];
/// The library is large; so much of it is enough.
const ELF_BYTES: usize = 64 << 20;

pub fn source(work: &Work, out: &mut dyn Write) -> Result<()> {
    for name in TARBALLS {
        let file = File::open(work.source(name)?)?;
        copy(&mut GzDecoder::new(file), out).context(|| format!("unpacking {name}"))?;
    }
    Ok(())
}

/// Unpacks the pinned packages into a directory of the work space.
pub fn unpacked(work: &Work) -> Result<PathBuf> {
    let dir = work.dir("packages")?;
    let done = dir.join(".done");
    if !done.exists() {
        for name in PACKAGES {
            let deb = work.source(name)?;
            Spawn::new(&[Path::new("dpkg-deb"), Path::new("-x"), &deb, &dir]).read()?;
        }
        std::fs::write(done, "")?;
    }
    Ok(dir)
}

/// All ELF files below a directory, sorted by path.
fn elf_files(dir: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(dir)?
        .map(|e| Ok(e?.path()))
        .collect::<Result<_>>()?;
    entries.sort();
    for path in entries {
        let kind = path.symlink_metadata()?;
        if kind.is_dir() {
            elf_files(&path, found)?;
        } else if kind.is_file() && starts_as_elf(&path)? {
            found.push(path);
        }
    }
    Ok(())
}

fn starts_as_elf(path: &Path) -> Result<bool> {
    let mut magic = Vec::new();
    File::open(path)?.take(4).read_to_end(&mut magic)?;
    Ok(magic == b"\x7fELF")
}

pub fn elf(work: &Work, out: &mut dyn Write) -> Result<()> {
    let mut files = Vec::new();
    elf_files(&unpacked(work)?, &mut files)?;
    if files.is_empty() {
        return Err(Error::new("the packages hold no ELF file"));
    }
    let mut left = ELF_BYTES;
    for path in files {
        let bytes = std::fs::read(path)?;
        let n = bytes.len().min(left);
        out.write_all(&bytes[..n])?;
        left -= n;
    }
    Ok(())
}

/// What `xz -1` makes of the ELF data.
pub fn xz(work: &Work, out: &mut dyn Write) -> Result<()> {
    let data = super::get(work, "elf")?;
    let packed = Spawn::new(&["xz", "-1", "-T1", "-c"])
        .stdin(File::open(&data.path)?)
        .stdout(Stdio::piped())
        .output()?;
    if !packed.status.success() {
        return Err(Error::new(format!("xz failed ({})", packed.status)));
    }
    Ok(out.write_all(&packed.stdout)?)
}
