//! scp and sftp, each way.
#![forbid(unsafe_code)]

use super::{expected_hash, finish, start_client, Run};
use crate::bench::ends::program;
use crate::bench::matrix::Driver;
use crate::bench::record::Outcome;
use crate::data::Data;
use crate::error::{Error, Result};
use crate::payload::now_ns;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

pub fn run(run: &Run<'_>) -> Result<Outcome> {
    let bytes = run
        .bytes()?
        .ok_or_else(|| Error::new("scp and sftp need bytes"))?;
    let source = source_file(run, run.data()?, bytes)?;
    let fault = run.point.group.fault.as_deref();
    let target = match fault {
        Some("disk-full") => full_disk(run)?.join("copy"),
        _ => run.file("copy"),
    };
    let words = words(run, &source, &target)?;
    let start = now_ns();
    let client = start_client(run, &words)?;
    if let Some(fault) = fault {
        super::fault::inflict(run, fault)?;
    }
    let status = finish(client)?;
    let seconds = (now_ns() - start) as f64 / 1e9;
    let arrived = hash_and_remove(&target);
    if !status.success() {
        return Err(Error::new(format!("{status}: {}", run.complaint())));
    }
    let (size, hash) = arrived?;
    if size != bytes || hash != expected_hash(run.data()?, bytes, None)? {
        return Err(Error::new(format!(
            "what arrived ({size} bytes) is not what was sent"
        )));
    }
    Ok(Outcome {
        value: bytes as f64 / 1e6 / seconds,
        unit: "MB/s".into(),
        more_is_better: true,
        bytes,
        seconds,
        ..Outcome::default()
    })
}

fn words(run: &Run<'_>, source: &Path, target: &Path) -> Result<Vec<String>> {
    let ssh = program(&run.ends.variant.client, "bin/ssh")?
        .display()
        .to_string();
    let (source, target) = (source.display().to_string(), target.display().to_string());
    let far = |path: &str| format!("target:{path}");
    match run.point.group.driver {
        Driver::ScpGet => run
            .ends
            .client("bin/scp", &["-S", &ssh, &far(&source), &target]),
        Driver::ScpPut => run
            .ends
            .client("bin/scp", &["-S", &ssh, &source, &far(&target)]),
        driver => {
            let batch = run.file("batch");
            let verb = if driver == Driver::SftpGet {
                "get"
            } else {
                "put"
            };
            std::fs::write(&batch, format!("{verb} {source} {target}\n"))?;
            let batch = batch.display().to_string();
            run.ends
                .client("bin/sftp", &["-S", &ssh, "-b", &batch, "target"])
        }
    }
}

/// A file of just this size, kept for all runs that want the same.
fn source_file(run: &Run<'_>, data: &Data, bytes: u64) -> Result<PathBuf> {
    let dir = run.ends.dir.parent().unwrap_or(run.ends.dir);
    let path = dir.join(format!("source-{}-{bytes}", data.name));
    if path.exists() {
        return Ok(path);
    }
    let content = std::fs::read(&data.path)?;
    let mut out = BufWriter::with_capacity(1 << 20, File::create(&path)?);
    let mut left = bytes;
    while left > 0 {
        let n = left.min(content.len() as u64);
        out.write_all(&content[..n as usize])?;
        left -= n;
    }
    out.flush()?;
    Ok(path)
}

/// A file system with room for a fraction of the file.
fn full_disk(run: &Run<'_>) -> Result<PathBuf> {
    let dir = run.file("full");
    std::fs::create_dir_all(&dir)?;
    crate::sys::capsule::private_tmpfs(&dir.display().to_string(), "size=4m")?;
    Ok(dir)
}

fn hash_and_remove(path: &Path) -> Result<(u64, String)> {
    let mut hash = blake3::Hasher::new();
    let size = std::io::copy(&mut File::open(path)?, &mut hash)?;
    std::fs::remove_file(path)?;
    Ok((size, hash.finalize().to_hex().to_string()))
}
