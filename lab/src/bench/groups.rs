//! Control groups of the two ends: a quota makes a slow CPU, the accounting tells ssh's share.
//! Below each end, `ssh` holds the SSH processes and `payload` what produces and consumes.
#![forbid(unsafe_code)]

use crate::error::{Context, Result};
use crate::payload::now_ns;
use crate::sys::janitor;
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use std::fs::File;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Client,
    Server,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Ssh,
    Payload,
}

enum Version {
    /// Directories in the hierarchies of the controllers cpu and cpuacct (often the same one).
    One {
        cpu: PathBuf,
        cpuacct: PathBuf,
    },
    Two {
        root: PathBuf,
    },
    /// Why there are none.
    Absent(String),
}

pub struct Groups {
    version: Version,
}

/// The kernel takes no quota below 1 ms.
const SMALLEST_QUOTA_US: f64 = 1000.0;
const LONGEST_PERIOD_US: f64 = 10_000.0;

impl End {
    pub const BOTH: [End; 2] = [End::Client, End::Server];

    pub fn other(self) -> End {
        match self {
            End::Client => End::Server,
            End::Server => End::Client,
        }
    }

    fn name(self) -> &'static str {
        match self {
            End::Client => "client",
            End::Server => "server",
        }
    }
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Role::Ssh => "ssh",
            Role::Payload => "payload",
        }
    }
}

impl Groups {
    pub fn new() -> Self {
        find().unwrap_or_else(|e| Self {
            version: Version::Absent(e.to_string()),
        })
    }

    /// For people: what is used, or why nothing is.
    pub fn about(&self) -> String {
        match &self.version {
            Version::One { .. } => "CPU quota of control groups, version 1".into(),
            Version::Two { .. } => "CPU quota of control groups, version 2".into(),
            Version::Absent(why) => format!("none ({why})"),
        }
    }

    pub fn present(&self) -> bool {
        !matches!(self.version, Version::Absent(_))
    }

    /// What is measured goes before whatever else runs on this machine. It may fail: then the two
    /// compete as equals.
    fn go_first(&self) {
        let (file, most) = match &self.version {
            Version::One { cpu, .. } => (cpu.join("cpu.shares"), "262144"),
            Version::Two { root } => (root.join("cpu.weight"), "10000"),
            Version::Absent(_) => return,
        };
        let _ = std::fs::write(file, most);
    }

    fn roots(&self) -> Vec<&PathBuf> {
        match &self.version {
            Version::One { cpu, cpuacct } if cpu == cpuacct => vec![cpu],
            Version::One { cpu, cpuacct } => vec![cpu, cpuacct],
            Version::Two { root } => vec![root],
            Version::Absent(_) => vec![],
        }
    }

    /// The files to which a process writes itself to join.
    pub fn procs(&self, end: End, role: Role) -> Vec<PathBuf> {
        let below = format!("{}/{}/cgroup.procs", end.name(), role.name());
        self.roots().into_iter().map(|r| r.join(&below)).collect()
    }

    pub fn open_procs(&self, end: End, role: Role) -> Result<Vec<File>> {
        self.procs(end, role)
            .iter()
            .map(|p| Ok(File::options().write(true).open(p)?))
            .collect()
    }

    /// Makes an end `factor` times slower than one CPU of this machine; 1 lifts the limit.
    pub fn slow(&self, end: End, factor: f64) -> Result<()> {
        let (period, quota) = quota(factor);
        match &self.version {
            Version::One { cpu, .. } => {
                let dir = cpu.join(end.name());
                let period_file = dir.join("cpu.cfs_period_us");
                let quota_file = dir.join("cpu.cfs_quota_us");
                write(&quota_file, "-1")?;
                if factor > 1.0 {
                    write(&period_file, &period.to_string())?;
                    write(&quota_file, &quota.to_string())?;
                }
                Ok(())
            }
            Version::Two { root } => {
                let limit = if factor > 1.0 {
                    quota.to_string()
                } else {
                    "max".into()
                };
                write(
                    &root.join(end.name()).join("cpu.max"),
                    &format!("{limit} {period}"),
                )
            }
            Version::Absent(_) => Ok(()),
        }
    }

    /// CPU seconds that SSH has used at an end so far.
    pub fn cpu_seconds(&self, end: End) -> Option<f64> {
        let below = format!("{}/ssh", end.name());
        match &self.version {
            Version::One { cpuacct, .. } => {
                let text =
                    std::fs::read_to_string(cpuacct.join(below).join("cpuacct.usage")).ok()?;
                Some(text.trim().parse::<f64>().ok()? / 1e9)
            }
            Version::Two { root } => {
                let text = std::fs::read_to_string(root.join(below).join("cpu.stat")).ok()?;
                let usage = text.lines().find_map(|l| l.strip_prefix("usage_usec "))?;
                Some(usage.trim().parse::<f64>().ok()? / 1e6)
            }
            Version::Absent(_) => None,
        }
    }

    /// The processes at an end.
    pub fn pids(&self, end: End, role: Role) -> Vec<i32> {
        let Some(procs) = self.procs(end, role).into_iter().next() else {
            return vec![];
        };
        let text = std::fs::read_to_string(procs).unwrap_or_default();
        text.lines().filter_map(|l| l.parse().ok()).collect()
    }

    /// Ends everything at both ends.
    pub fn kill_all(&self) {
        for end in End::BOTH {
            for role in [Role::Ssh, Role::Payload] {
                for pid in self.pids(end, role) {
                    let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
                }
            }
        }
    }
}

/// Period and quota in µs.
fn quota(factor: f64) -> (u64, u64) {
    let period = (SMALLEST_QUOTA_US * factor).clamp(4000.0, LONGEST_PERIOD_US);
    (
        period.round() as u64,
        (period / factor).max(SMALLEST_QUOTA_US).round() as u64,
    )
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).context(|| format!("writing \"{text}\" to {}", path.display()))
}

/// Mount points from the list of mounts: (type, where, options).
fn mounts() -> Result<Vec<[String; 3]>> {
    let text = std::fs::read_to_string("/proc/self/mounts")?;
    let words = |l: &str| -> Option<[String; 3]> {
        let w: Vec<&str> = l.split(' ').collect();
        Some([
            w.get(2)?.to_string(),
            w.get(1)?.to_string(),
            w.get(3)?.to_string(),
        ])
    };
    Ok(text.lines().filter_map(words).collect())
}

fn find() -> Result<Groups> {
    let mounts = mounts()?;
    let name = format!("sshflow-lab-{:x}", now_ns());
    let one = |controller: &str| {
        let found = mounts.iter().find(|[kind, _, options]| {
            kind == "cgroup" && options.split(',').any(|o| o == controller)
        });
        found.map(|[_, at, _]| Path::new(at).join(&name))
    };
    if let (Some(cpu), Some(cpuacct)) = (one("cpu"), one("cpuacct")) {
        let groups = Groups {
            version: Version::One { cpu, cpuacct },
        };
        make_tree(&groups, "")?;
        groups.go_first();
        return Ok(groups);
    }
    for [_, at, _] in mounts.iter().filter(|[kind, ..]| kind == "cgroup2") {
        let controllers = std::fs::read_to_string(Path::new(at).join("cgroup.controllers"))?;
        if controllers.split_whitespace().any(|c| c == "cpu") {
            write(&Path::new(at).join("cgroup.subtree_control"), "+cpu")?;
            let groups = Groups {
                version: Version::Two {
                    root: Path::new(at).join(&name),
                },
            };
            make_tree(&groups, "+cpu")?;
            groups.go_first();
            return Ok(groups);
        }
    }
    Err(crate::error::Error::new(
        "no mounted control group hierarchy has a cpu controller",
    ))
}

fn make_tree(groups: &Groups, subtree: &str) -> Result<()> {
    for root in groups.roots() {
        make_dir(root)?;
        for end in End::BOTH {
            if !subtree.is_empty() {
                write(&root.join("cgroup.subtree_control"), subtree)?;
            }
            let dir = root.join(end.name());
            make_dir(&dir)?;
            if !subtree.is_empty() {
                write(&dir.join("cgroup.subtree_control"), subtree)?;
            }
            for role in [Role::Ssh, Role::Payload] {
                make_dir(&dir.join(role.name()))?;
            }
        }
    }
    Ok(())
}

fn make_dir(path: &Path) -> Result<()> {
    std::fs::create_dir(path).context(|| format!("making {}", path.display()))?;
    janitor::remove_later(path);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_short_and_quotas_are_what_the_kernel_takes() {
        for factor in [1.5, 2.0, 4.0, 6.0, 10.0] {
            let (period, quota) = quota(factor);
            assert!((4000..=10_000).contains(&period) && quota >= 1000);
            assert!(
                (period as f64 / quota as f64 / factor - 1.0).abs() < 0.01,
                "{factor}"
            );
        }
    }
}
