//! A disk image: ext4 with a small system in it, about two thirds full.
#![forbid(unsafe_code)]

use super::archive;
use crate::error::{Context, Result};
use crate::sys::spawn::Spawn;
use crate::work::Work;
use std::fs::File;
use std::io::Write;
use std::path::Path;

const SIZE_MIB: u64 = 128;
/// The second of the epoch that all times in the image show.
const WHEN: &str = "1700000000";
const UUID: &str = "6b1f7a52-93ce-4f0e-8d2b-5a7c10e4d3f1";
const HASH_SEED: &str = "0d9c4b1e-7f62-4a35-b8e1-2c6f90a7d584";

pub fn make(work: &Work, out: &mut dyn Write) -> Result<()> {
    let tree = work.dir("image-tree")?;
    std::fs::remove_dir_all(&tree)?;
    fill(work, &tree)?;
    let image = work.dir("tmp")?.join("image");
    let _ = std::fs::remove_file(&image);
    File::create(&image)?.set_len(SIZE_MIB << 20)?;
    let extended = format!("hash_seed={HASH_SEED},lazy_itable_init=0,root_owner=0:0");
    // A path of its own: mke2fs lies in /sbin, which is not everybody's path.
    Spawn::new(&[
        "mke2fs", "-q", "-F", "-t", "ext4", "-b", "4096", "-U", UUID, "-E", &extended, "-d",
    ])
    .arg(&tree)
    .arg(&image)
    .env("E2FSPROGS_FAKE_TIME", WHEN)
    .env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin")
    .read()?;
    let copied = std::io::copy(&mut File::open(&image)?, out);
    std::fs::remove_file(&image)?;
    std::fs::remove_dir_all(&tree)?;
    copied.context(|| "reading the image".into())?;
    Ok(())
}

/// Programs, sources and logs, all with the same times and owner.
fn fill(work: &Work, tree: &Path) -> Result<()> {
    let packages = archive::unpacked(work)?;
    let var = tree.join("var/log");
    let src = tree.join("usr/src");
    for dir in [&var, &src] {
        std::fs::create_dir_all(dir)?;
    }
    for package in ["bin", "usr/bin", "usr/share"] {
        let from = packages.join(package);
        let to = tree.join(package);
        if from.exists() {
            std::fs::create_dir_all(&to)?;
            Spawn::new(&["cp", "-rP", "-T"])
                .arg(&from)
                .arg(&to)
                .read()?;
        }
    }
    for name in ["openssh_9.2p1.orig.tar.gz", "openssh_10.0p1.orig.tar.gz"] {
        let tar = work.source(name)?;
        Spawn::new(&["tar", "--no-same-owner", "-xzf"])
            .arg(&tar)
            .arg("-C")
            .arg(&src)
            .read()?;
    }
    let log = super::get(work, "log")?;
    let log = std::fs::read(log.path)?;
    std::fs::write(var.join("syslog"), &log[..24 << 20])?;
    Spawn::new(&["find", "."])
        .dir(tree)
        .args(&["-exec", "touch", "-h", "-d", &format!("@{WHEN}"), "{}", "+"])
        .read()?;
    Ok(())
}
