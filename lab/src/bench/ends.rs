//! Servers and clients of a variant, configured for one run.
#![forbid(unsafe_code)]

use super::groups::{End, Groups, Role};
use super::matrix::{Group, Variant};
use super::world::Place;
use crate::error::{Context, Error, Result};
use crate::sys::spawn::Spawn;
use std::fs::{create_dir_all, write, File};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

const PORT: u16 = 2200;
const JUMP_PORT: u16 = 2201;
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// Keys and files that all runs share.
pub struct Keys {
    dir: PathBuf,
}

impl Keys {
    /// Makes a host key and a user key, unless no variant needs them.
    pub fn make(dir: &Path, keygen: Option<&Path>) -> Result<Self> {
        create_dir_all(dir)?;
        let Some(keygen) = keygen else {
            return Ok(Self {
                dir: dir.to_path_buf(),
            });
        };
        for name in ["host", "user"] {
            let path = dir.join(name);
            if !path.exists() {
                Spawn::new(&[
                    keygen,
                    Path::new("-q"),
                    Path::new("-t"),
                    Path::new("ed25519"),
                ])
                .args(&["-N", "", "-C", "lab", "-f"])
                .arg(&path)
                .read()?;
            }
        }
        std::fs::copy(dir.join("user.pub"), dir.join("authorized"))?;
        Ok(Self {
            dir: dir.to_path_buf(),
        })
    }

    fn path(&self, name: &str) -> String {
        self.dir.join(name).display().to_string()
    }
}

/// `bin/ssh`, `sbin/sshd` … of an installation, or the path itself when it is a program.
pub fn program(installed: &Path, below: &str) -> Result<PathBuf> {
    let path = if installed.is_file() {
        installed.to_path_buf()
    } else {
        installed.join(below)
    };
    path.canonicalize()
        .map_err(|e| Error::new(format!("{}: {e} (build or name it first)", path.display())))
}

/// A running server. Dropping it ends it.
pub struct Server {
    child: Child,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }
}

/// Everything that is needed to start things for one run.
pub struct Ends<'a> {
    pub variant: &'a Variant,
    pub group: &'a Group,
    pub place: &'a Place,
    pub groups: &'a Groups,
    pub keys: &'a Keys,
    /// Scratch space of this run.
    pub dir: &'a Path,
}

impl Ends<'_> {
    fn user() -> String {
        let uid = nix::unistd::geteuid();
        let user = nix::unistd::User::from_uid(uid).ok().flatten();
        user.map_or_else(|| "root".into(), |u| u.name)
    }

    fn algorithms(&self) -> String {
        let mut text = String::new();
        if let Some(c) = &self.group.cipher {
            text += &format!("Ciphers {c}\n");
        }
        if let Some(m) = &self.group.mac {
            text += &format!("MACs {m}\n");
        }
        text
    }

    /// Starts the servers that the run needs and waits until they listen.
    pub fn start_servers(&self) -> Result<Vec<Server>> {
        let mut servers = vec![self.start_server(PORT)?];
        if self.group.jump {
            servers.push(self.start_server(JUMP_PORT)?);
        }
        Ok(servers)
    }

    fn start_server(&self, port: u16) -> Result<Server> {
        let log = self.dir.join(format!("server-{port}.log"));
        let words = match self.variant.kind.as_str() {
            "dropbear" => self.dropbear_words(port)?,
            _ => self.sshd_words(port)?,
        };
        let child = self
            .spawn(&words, End::Server, Role::Ssh)?
            .stdout(File::create(&log)?)
            .stderr(File::options().append(true).open(&log)?)
            .start()?;
        let server = Server { child };
        let start = Instant::now();
        let ready = ["Server listening on", "Not backgrounding"];
        loop {
            let text = std::fs::read_to_string(&log).unwrap_or_default();
            if ready.iter().any(|r| text.contains(r)) {
                return Ok(server);
            }
            if start.elapsed() > START_TIMEOUT {
                return Err(Error::new(format!(
                    "the server did not start: {}",
                    text.trim()
                )));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn sshd_words(&self, port: u16) -> Result<Vec<String>> {
        let config = self.dir.join(format!("sshd-{port}.conf"));
        let mut text = options(&self.variant.server_options)?;
        text += &self.algorithms();
        text += &format!(
            "Port {port}\nListenAddress {}\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\n\
             PidFile none\nPermitRootLogin yes\nPrintMotd no\nMaxSessions 200\nMaxStartups 200\n\
             LogLevel INFO\nAllowTcpForwarding yes\n",
            self.place.address,
            self.keys.path("host"),
            self.keys.path("authorized"),
        );
        let sftp = ["libexec/sftp-server", "lib/openssh/sftp-server"];
        if let Some(sftp) = sftp
            .iter()
            .map(|s| self.variant.server.join(s))
            .find(|s| s.exists())
        {
            text += &format!("Subsystem sftp {}\n", sftp.canonicalize()?.display());
        }
        write(&config, text)?;
        let sshd = program(&self.variant.server, "sbin/sshd")?;
        let words = [sshd, "-D".into(), "-e".into(), "-f".into(), config];
        Ok(words.iter().map(|w| w.display().to_string()).collect())
    }

    fn dropbear_words(&self, port: u16) -> Result<Vec<String>> {
        let dropbear = program(&self.variant.server, "sbin/dropbear")?;
        super::dropbear::prepare(&self.keys.dir)?;
        let address = format!("{}:{port}", self.place.address);
        let host = self.keys.path("host.dropbear");
        Ok([
            &*dropbear.to_string_lossy(),
            "-F",
            "-E",
            "-p",
            &address,
            "-r",
            &host,
        ]
        .iter()
        .map(|s| s.to_string())
        .chain(self.variant.server_options.iter().cloned())
        .collect())
    }

    /// Writes the client's configuration; ssh, scp and sftp take it with -F.
    pub fn write_client_config(&self) -> Result<PathBuf> {
        let config = self.dir.join("ssh.conf");
        let mut text = options(&self.variant.options)?;
        text += &self.algorithms();
        text += &format!(
            "User {}\nIdentityFile {}\nIdentitiesOnly yes\nStrictHostKeyChecking no\n\
             UserKnownHostsFile {}\nGlobalKnownHostsFile none\nBatchMode yes\nLogLevel DEBUG1\n\
             ControlPath {}\n",
            Self::user(),
            self.keys.path("user"),
            self.dir.join("known_hosts").display(),
            self.control_path(),
        );
        let address = self.place.address;
        text += &format!("Host jump\n    HostName {address}\n    Port {JUMP_PORT}\n");
        text += &format!("Host target\n    HostName {address}\n    Port {PORT}\n");
        if self.group.jump {
            text += "    ProxyJump jump\n";
        }
        write(&config, text)?;
        Ok(config)
    }

    fn control_path(&self) -> String {
        self.dir.join("mux").display().to_string()
    }

    /// The words that start the client, up to and including the destination.
    pub fn client(&self, program_below: &str, more: &[&str]) -> Result<Vec<String>> {
        if self.variant.kind == "dropbear" {
            return super::dropbear::client(self, more, PORT, &Self::user());
        }
        let client = program(&self.variant.client, program_below)?;
        let config = self.write_client_config()?;
        let mut words = vec![
            client.display().to_string(),
            "-F".into(),
            config.display().to_string(),
        ];
        words.extend(more.iter().map(|s| s.to_string()));
        Ok(words)
    }

    pub fn key_dir(&self) -> &Path {
        &self.keys.dir
    }

    /// A command at one end, in its namespace and control group.
    pub fn spawn<S: AsRef<std::ffi::OsStr>>(
        &self,
        words: &[S],
        end: End,
        role: Role,
    ) -> Result<Spawn> {
        let mut spawn = Spawn::new(words);
        let netns = match end {
            End::Client => &self.place.client,
            End::Server => &self.place.server,
        };
        if let Some(netns) = netns {
            spawn = spawn.netns(netns);
        }
        for procs in self.groups.open_procs(end, role)? {
            spawn = spawn.group(procs);
        }
        Ok(spawn)
    }

    /// The remote command line that runs a payload of this program, outside of ssh's group.
    pub fn remote_payload(&self, words: &[String]) -> Result<String> {
        let mut line = vec![quote(&exe()?)];
        line.push("payload".into());
        line.extend(words.iter().map(|w| quote(w)));
        for procs in self.groups.procs(End::Server, Role::Payload) {
            line.push("--group".into());
            line.push(quote(&procs.display().to_string()));
        }
        Ok(line.join(" "))
    }
}

/// This program, by a path that other processes can start.
pub fn exe() -> Result<String> {
    let path = std::env::current_exe().context(|| "finding this program".into())?;
    Ok(path.display().to_string())
}

fn options(list: &[String]) -> Result<String> {
    let mut text = String::new();
    for option in list {
        let (key, value) = option
            .split_once('=')
            .ok_or_else(|| Error::new(format!("the option \"{option}\" is not Key=Value")))?;
        text += &format!("{key} {value}\n");
    }
    Ok(text)
}

/// For a POSIX shell.
fn quote(word: &str) -> String {
    if word
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "/._-+:=".contains(c))
        && !word.is_empty()
    {
        return word.into();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}
