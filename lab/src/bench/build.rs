//! Which programs a variant consists of: a fingerprint that changes when one of them does.
#![forbid(unsafe_code)]

use super::matrix::Variant;
use crate::sys::spawn::Spawn;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const CLIENT: &[&str] = &["bin/ssh", "bin/scp", "bin/sftp", "bin/dbclient"];
const SERVER: &[&str] = &[
    "sbin/sshd",
    "libexec/sshd-session",
    "libexec/sshd-auth",
    "libexec/sftp-server",
    "sbin/dropbear",
];
/// So many digits tell builds apart.
const DIGITS: usize = 16;

/// Of client, server and the libraries that they load; empty where there is no program.
pub fn fingerprint(variant: &Variant) -> String {
    let mut programs = found(&variant.client, CLIENT);
    programs.extend(found(&variant.server, SERVER));
    if programs.is_empty() {
        return String::new();
    }
    let libraries: BTreeSet<PathBuf> = programs.iter().flat_map(|p| libraries(p)).collect();
    let mut hash = blake3::Hasher::new();
    for path in programs.iter().chain(&libraries) {
        hash.update(blake3::hash(&std::fs::read(path).unwrap_or_default()).as_bytes());
    }
    hash.finalize().to_hex()[..DIGITS].to_string()
}

fn found(installed: &Path, below: &[&str]) -> Vec<PathBuf> {
    if installed.is_file() {
        return vec![installed.to_path_buf()];
    }
    let all = below.iter().map(|b| installed.join(b));
    all.filter(|p| p.is_file()).collect()
}

/// Shared libraries, as the loader finds them.
fn libraries(program: &Path) -> Vec<PathBuf> {
    let list = Spawn::new(&["ldd"]).arg(program).read().unwrap_or_default();
    let path = |l: &str| l.split_once("=> ")?.1.split(' ').next().map(PathBuf::from);
    list.lines().filter_map(path).collect()
}
