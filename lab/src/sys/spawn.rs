//! Starting processes where they belong: in a network namespace and in control groups.
// unsafe: pre_exec.

use super::netns::Netns;
use super::pty::Pty;
use crate::error::{Context, Error, Result};
use nix::sched::{setns, CloneFlags};
use nix::sys::signal::Signal;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;

/// A command with its place.
pub struct Spawn {
    command: Command,
    program: String,
    netns: Option<Arc<File>>,
    groups: Vec<File>,
    own_session: bool,
    die_with_parent: bool,
    terminal: bool,
}

impl Spawn {
    /// The program and its arguments. Standard input is empty unless set.
    pub fn new<S: AsRef<OsStr>>(words: &[S]) -> Self {
        let mut command = Command::new(words[0].as_ref());
        command.args(words[1..].iter()).stdin(Stdio::null());
        Self {
            command,
            program: words[0].as_ref().to_string_lossy().into_owned(),
            netns: None,
            groups: Vec::new(),
            own_session: false,
            die_with_parent: false,
            terminal: false,
        }
    }

    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    pub fn args<S: AsRef<OsStr>>(mut self, args: &[S]) -> Self {
        self.command.args(args);
        self
    }

    /// Starts it in this directory.
    pub fn dir(mut self, dir: &Path) -> Self {
        self.command.current_dir(dir);
        self
    }

    /// Makes the pseudo terminal its input, output and controlling terminal.
    pub fn terminal(mut self, pty: &Pty) -> Result<Self> {
        self.command
            .stdin(pty.slave()?)
            .stdout(pty.slave()?)
            .stderr(pty.slave()?);
        self.own_session = true;
        self.terminal = true;
        Ok(self)
    }

    pub fn netns(mut self, netns: &Netns) -> Self {
        self.netns = Some(netns.file().clone());
        self
    }

    /// Joins the control group whose `cgroup.procs` is given, before the program starts.
    pub fn group(mut self, procs: File) -> Self {
        self.groups.push(procs);
        self
    }

    /// Ends when the thread that started it ends.
    pub fn die_with_parent(mut self) -> Self {
        self.die_with_parent = true;
        self
    }

    pub fn stdin(mut self, s: impl Into<Stdio>) -> Self {
        self.command.stdin(s);
        self
    }

    pub fn stdout(mut self, s: impl Into<Stdio>) -> Self {
        self.command.stdout(s);
        self
    }

    pub fn stderr(mut self, s: impl Into<Stdio>) -> Self {
        self.command.stderr(s);
        self
    }

    pub fn env(mut self, key: &str, value: &str) -> Self {
        self.command.env(key, value);
        self
    }

    fn prepare(&mut self) {
        let netns = self.netns.clone();
        let groups = std::mem::take(&mut self.groups);
        let own_session = self.own_session;
        let die_with_parent = self.die_with_parent;
        let terminal = self.terminal;
        let place = move || -> std::io::Result<()> {
            for mut procs in &groups {
                procs.write_all(b"0")?;
            }
            if let Some(netns) = &netns {
                setns(&**netns, CloneFlags::CLONE_NEWNET)?;
            }
            if die_with_parent {
                nix::sys::prctl::set_pdeathsig(Signal::SIGTERM)?;
            }
            if own_session {
                nix::unistd::setsid()?;
            }
            // SAFETY: TIOCSCTTY takes a plain integer; 0 is this process's standard input.
            if terminal && unsafe { libc::ioctl(0, libc::TIOCSCTTY, 0) } != 0 {
                return Err(std::io::Error::last_os_error());
            }
            Ok(())
        };
        // SAFETY: between fork and exec `place` makes only the system calls write, setns,
        // prctl, setsid and ioctl, on descriptors opened before; it allocates nothing and takes no lock.
        unsafe { self.command.pre_exec(place) };
    }

    pub fn start(mut self) -> Result<Child> {
        self.prepare();
        self.command
            .spawn()
            .context(|| format!("starting {}", self.program))
    }

    pub fn output(mut self) -> Result<Output> {
        self.prepare();
        self.command
            .output()
            .context(|| format!("starting {}", self.program))
    }

    /// Runs it and takes its standard output; a failure is an error with what it said.
    pub fn read(self) -> Result<String> {
        let program = self.program.clone();
        let output = self.output()?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let why = String::from_utf8_lossy(&output.stderr);
        Err(Error::new(format!(
            "{program}: {} ({})",
            why.trim(),
            output.status
        )))
    }
}
