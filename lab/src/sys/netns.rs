//! Network namespaces held by a descriptor: they go when the last process in them and the last
//! descriptor have gone, so nothing is left behind however this program ends.
#![forbid(unsafe_code)]

use super::spawn::Spawn;
use crate::error::{Context, Error, Result};
use nix::sched::{setns, unshare, CloneFlags};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// A network namespace.
#[derive(Clone, Debug)]
pub struct Netns {
    file: Arc<File>,
    name: &'static str,
}

impl Netns {
    /// A fresh namespace with only a loopback device, which is down.
    pub fn new(name: &'static str) -> Result<Self> {
        let file = std::thread::spawn(|| -> Result<File> {
            unshare(CloneFlags::CLONE_NEWNET).context(|| "unshare".into())?;
            Ok(File::open("/proc/thread-self/ns/net")?)
        })
        .join()
        .map_err(|_| Error::new("a thread died"))?
        .context(|| "making a network namespace (this needs root)".into())?;
        Ok(Self {
            file: Arc::new(file),
            name,
        })
    }

    pub fn file(&self) -> &Arc<File> {
        &self.file
    }

    /// Runs a function inside the namespace, in a thread of its own.
    pub fn within<T: Send>(&self, f: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        std::thread::scope(|s| {
            s.spawn(|| {
                setns(&*self.file, CloneFlags::CLONE_NEWNET)
                    .context(|| format!("entering the {} namespace", self.name))?;
                f()
            })
            .join()
            .unwrap_or_else(|_| Err(Error::new("a thread died")))
        })
    }

    /// Runs `ip` with the words of `line` inside.
    pub fn ip(&self, line: &str) -> Result<()> {
        let mut words = vec!["ip"];
        words.extend(line.split_whitespace());
        let output = Spawn::new(&words).netns(self).output()?;
        if output.status.success() {
            return Ok(());
        }
        let why = String::from_utf8_lossy(&output.stderr);
        Err(Error::new(format!(
            "ip {line} ({}): {}",
            self.name,
            why.trim()
        )))
    }

    /// Moves a device of this namespace to another one.
    pub fn move_link(&self, device: &str, to: &Netns) -> Result<()> {
        // `ip` takes a namespace as the path of one, and this one only has a descriptor.
        let path = format!("/proc/{}/fd/{}", std::process::id(), to.file.as_raw_fd());
        let output = Spawn::new(&["ip", "link", "set", device, "netns", &path])
            .netns(self)
            .output()?;
        if output.status.success() {
            return Ok(());
        }
        let why = String::from_utf8_lossy(&output.stderr);
        Err(Error::new(format!(
            "moving {device} to {}: {}",
            to.name,
            why.trim()
        )))
    }

    /// Sets a variable of `/proc/sys/net` inside.
    pub fn sysctl(&self, key: &str, value: &str) -> Result<()> {
        let path = format!("/proc/sys/{}", key.replace('.', "/"));
        self.within(|| {
            std::fs::write(&path, value).context(|| format!("setting {key} to \"{value}\""))
        })
    }

    /// Reads a variable of `/proc/sys/net` inside.
    pub fn read_sysctl(&self, key: &str) -> Result<String> {
        let path = format!("/proc/sys/{}", key.replace('.', "/"));
        self.within(|| {
            let text = std::fs::read_to_string(&path).context(|| format!("reading {key}"))?;
            Ok(text.split_whitespace().collect::<Vec<_>>().join(" "))
        })
    }
}
