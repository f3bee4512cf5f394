//! `sshflow-lab link …`
#![forbid(unsafe_code)]

use crate::error::{Context, Error, Result};
use crate::link::{control, Direction, Link, Params};
use crate::sys::spawn::Spawn;
use crate::sys::{capsule, janitor};
use clap::{Args, Subcommand};
use nix::sched::{setns, CloneFlags};
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use serde_json::json;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::sync::Arc;

#[derive(Subcommand)]
pub enum Command {
    /// Bring a link up; it lasts until COMMAND ends, or `stop`, or this program's end
    Up(Up),
    /// Ask or change a link: get, set [up|down] KEY=VALUE..., stop
    Ctl {
        /// The control socket
        socket: PathBuf,
        /// What to say to it
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Run a command at one end of a link
    Exec {
        socket: PathBuf,
        /// client or server
        end: String,
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
}

#[derive(Args)]
pub struct Up {
    /// Rate each way, e.g. 400M or unlimited (bit/s of IP packets)
    #[arg(long, default_value = "unlimited")]
    rate: String,
    /// One-way delay, e.g. 50ms (the round trip is twice that)
    #[arg(long, default_value = "0ms")]
    delay: String,
    /// Bytes that may wait at the bottleneck; 0 is no limit
    #[arg(long, default_value = "0")]
    queue: String,
    /// Probability that a packet is lost, e.g. 0.1%
    #[arg(long, default_value = "0")]
    loss: String,
    #[arg(long, default_value_t = 1500)]
    mtu: u32,
    /// Congestion control of both ends (default: the kernel's)
    #[arg(long)]
    congestion: Option<String>,
    /// Largest TCP buffers, e.g. 64MiB (default: the kernel's)
    #[arg(long)]
    buffers: Option<String>,
    /// Seed of the random loss
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Control socket
    #[arg(long, default_value = "/tmp/sshflow-link.sock")]
    control: PathBuf,
    /// Runs here, in the namespaces of neither end; when it ends, so does the link
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
}

pub fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Up(up) => up.run(),
        Command::Ctl { socket, words } => {
            println!("{}", control::ask(&socket, &words.join(" "))?);
            Ok(ExitCode::SUCCESS)
        }
        Command::Exec {
            socket,
            end,
            command,
        } => exec(&socket, &end, &command),
    }
}

impl Up {
    fn params(&self) -> Result<Params> {
        let mut params = Params::default();
        let settings = [
            ("rate", &self.rate),
            ("delay", &self.delay),
            ("queue", &self.queue),
            ("loss", &self.loss),
        ];
        for (key, value) in settings {
            params.apply(&format!("{key}={value}"))?;
        }
        Ok(params)
    }

    fn run(self) -> Result<ExitCode> {
        let params = self.params()?;
        if let Some(why) = crate::link::obstacle() {
            return Err(Error::new(format!("no delay link here: {why}")));
        }
        let outside = std::process::id();
        janitor::start()?;
        capsule::enter()?;
        let link = Link::start([params.clone(), params], self.mtu, self.seed)?;
        for end in [&link.client, &link.server] {
            crate::link::tune(end, self.congestion.as_deref(), self.buffers.as_deref())?;
        }
        let listener = control::bind(&self.control)?;
        let about = json!({
            "pid": outside,
            "client_address": crate::link::CLIENT_ADDRESS,
            "server_address": crate::link::SERVER_ADDRESS,
            "client_fd": link.client.file().as_raw_fd(),
            "server_fd": link.server.file().as_raw_fd(),
        });
        let link = Arc::new(link);
        let server = {
            let link = link.clone();
            std::thread::spawn(move || control::serve(&listener, &link, &about))
        };
        if self.command.is_empty() {
            eprintln!("link up; control socket {}", self.control.display());
            server.join().map_err(|_| Error::new("a thread died"))??;
            return Ok(ExitCode::SUCCESS);
        }
        let status = Spawn::new(&self.command)
            .stdin(Stdio::inherit())
            .env("SSHFLOW_LINK", &self.control.to_string_lossy())
            .start()?
            .wait()?;
        for d in Direction::BOTH {
            eprintln!("{d:?}: {}", serde_json::to_string(&link.counters(d))?);
        }
        Ok(ExitCode::from(status.code().unwrap_or(1) as u8))
    }
}

/// Enters the link's process tree as well as its network, so that what runs there ends with it.
fn exec(socket: &Path, end: &str, command: &[String]) -> Result<ExitCode> {
    let about = control::ask(socket, "get")?;
    let fd = match end {
        "client" => &about["client_fd"],
        "server" => &about["server_fd"],
        _ => return Err(Error::new("the end is client or server")),
    };
    let pid = UnixStream::connect(socket)
        .and_then(|s| Ok(getsockopt(&s, PeerCredentials)?.pid()))
        .context(|| "asking who answers on the socket".into())?;
    let net = File::open(format!("/proc/{pid}/fd/{fd}"))?;
    let pids = File::open(format!("/proc/{pid}/ns/pid"))?;
    let mounts = File::open(format!("/proc/{pid}/ns/mnt"))?;
    let here = std::env::current_dir()?;
    let doing = || "entering the link's namespaces (this needs root)".to_string();
    setns(&net, CloneFlags::CLONE_NEWNET).context(doing)?;
    setns(&pids, CloneFlags::CLONE_NEWPID).context(doing)?;
    setns(&mounts, CloneFlags::CLONE_NEWNS).context(doing)?;
    std::env::set_current_dir(here)?;
    let status = Spawn::new(command)
        .stdin(Stdio::inherit())
        .die_with_parent()
        .start()?
        .wait()?;
    Ok(ExitCode::from(status.code().unwrap_or(1) as u8))
}
