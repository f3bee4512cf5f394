//! What is done in one run.
#![forbid(unsafe_code)]

mod channels;
mod connect;
mod copy;
mod echo;
mod fault;
mod forward;
mod pipe;
mod session;

use super::ends::Ends;
use super::groups::{End, Groups, Role};
use super::matrix::{Driver, Point};
use super::record::Outcome;
use super::watch;
use super::world::Place;
use crate::data::Data;
use crate::error::{Error, Result};
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::Mutex;

/// Of a session that goes over a connection which has a log of its own.
const SESSION_LOG: &str = "session.log";

/// One run.
pub struct Run<'a> {
    pub ends: Ends<'a>,
    pub point: &'a Point<'a>,
    pub data: Option<&'a Data>,
    pub place: &'a Place,
    pub groups: &'a Groups,
    /// Processes to follow where there are no control groups.
    pub roots: &'a Mutex<Vec<(i32, End)>>,
    pub seed: u64,
}

/// Does what the group says.
pub fn run(run: &Run<'_>) -> Result<Outcome> {
    if run.ends.variant.kind == "tcp" {
        return pipe::plain_tcp(run);
    }
    let servers = run.ends.start_servers()?;
    for s in &servers {
        run.follow(s.pid(), End::Server);
    }
    match run.point.group.driver {
        Driver::Download | Driver::Upload => pipe::ssh(run),
        Driver::Mux => pipe::second_session(run),
        Driver::ForwardLocal | Driver::ForwardRemote | Driver::ForwardDynamic => forward::run(run),
        Driver::ScpGet | Driver::ScpPut | Driver::SftpGet | Driver::SftpPut => copy::run(run),
        Driver::Echo => echo::run(run),
        Driver::Channels => channels::run(run),
        Driver::Session => session::run(run),
        Driver::Connect => connect::run(run),
    }
}

impl Run<'_> {
    pub fn follow(&self, pid: i32, end: End) {
        if let Ok(mut roots) = self.roots.lock() {
            roots.push((pid, end));
        }
    }

    pub fn data(&self) -> Result<&Data> {
        self.data
            .ok_or_else(|| Error::new("this driver needs data"))
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.ends.dir.join(name)
    }

    /// Bytes of a transfer by size.
    pub fn bytes(&self) -> Result<Option<u64>> {
        self.point
            .group
            .bytes
            .as_deref()
            .map(crate::units::bytes)
            .transpose()
    }

    /// The order in which the data's pieces are sent: by chance where time cuts a run, but not
    /// where the data changes in the course of it.
    pub fn order(&self) -> Option<u64> {
        const SEED: u64 = 1;
        let changes = self.data.is_some_and(|d| d.name == "mixed");
        (self.point.group.seconds.is_some() && !changes).then_some(SEED)
    }

    /// The end at which SSH sends the data.
    pub fn sender(&self) -> End {
        match self.point.group.driver {
            Driver::Upload | Driver::ScpPut | Driver::SftpPut => End::Client,
            _ => End::Server,
        }
    }

    /// SSH processes of the sending end.
    pub fn sending_processes(&self) -> Vec<i32> {
        watch::processes_of(self.groups, self.roots, self.sender())
    }

    /// What the client said, for an error and for what was negotiated; then what a session said
    /// that went over a shared connection.
    pub fn client_log(&self) -> String {
        let of = |name| std::fs::read(self.file(name)).unwrap_or_default();
        let text = [of("client.log"), of(SESSION_LOG)].concat();
        String::from_utf8_lossy(&text).into_owned()
    }

    /// The client's last words, without its debug lines.
    pub fn complaint(&self) -> String {
        let log = self.client_log();
        let chatter = [
            "debug1:",
            "OpenSSH_",
            "Authenticated to",
            "Bytes per second",
            "Transferred:",
        ];
        let says = |l: &&str| !l.trim().is_empty() && !chatter.iter().any(|c| l.contains(c));
        log.lines().rfind(says).unwrap_or("").trim().to_string()
    }
}

/// Starts a client that writes nothing but its log, and follows it.
pub fn start_client(run: &Run<'_>, words: &[String]) -> Result<Child> {
    let child = run
        .ends
        .spawn(words, End::Client, Role::Ssh)?
        .stdout(Stdio::null())
        .stderr(File::create(run.file("client.log"))?)
        .start()?;
    run.follow(child.id() as i32, End::Client);
    Ok(child)
}

/// Waits for a child; a kill by the watcher ends it too.
pub fn finish(mut child: Child) -> Result<ExitStatus> {
    Ok(child.wait()?)
}

/// A cipher and a compression as the client's log names them.
pub fn negotiated(log: &str) -> (String, String) {
    let line = log
        .lines()
        .find(|l| l.contains("kex: server->client cipher:"))
        .unwrap_or("");
    let after = |key: &str| {
        let rest = line.split_once(key).map_or("", |(_, r)| r);
        rest.split_whitespace().next().unwrap_or("").to_string()
    };
    let mac = after("MAC: ");
    let cipher = match mac.as_str() {
        "" | "<implicit>" => after("cipher: "),
        mac => format!("{} {mac}", after("cipher: ")),
    };
    (cipher, after("compression: "))
}

/// BLAKE3 of the first `bytes` of a file that is read again and again, in the order of `seed`.
pub fn expected_hash(data: &Data, mut bytes: u64, seed: Option<u64>) -> Result<String> {
    let content = std::fs::read(&data.path)?;
    if content.is_empty() {
        return Err(Error::new(format!("{} is empty", data.path.display())));
    }
    let chunks = crate::payload::chunks(content.len() as u64, seed);
    let mut hash = blake3::Hasher::new();
    for chunk in chunks.iter().cycle() {
        if bytes == 0 {
            break;
        }
        let n = bytes.min(chunk.end - chunk.start);
        hash.update(&content[chunk.start as usize..(chunk.start + n) as usize]);
        bytes -= n;
    }
    Ok(hash.finalize().to_hex().to_string())
}

#[cfg(test)]
mod tests {
    use super::negotiated;

    #[test]
    fn what_was_negotiated_is_read_from_the_log() {
        let log = "x\ndebug1: kex: server->client cipher: aes128-gcm@openssh.com MAC: <implicit> compression: none\n";
        assert_eq!(
            negotiated(log),
            ("aes128-gcm@openssh.com".into(), "none".into())
        );
        let log = "debug1: kex: server->client cipher: aes256-ctr MAC: hmac-sha2-512 compression: zlib@openssh.com";
        assert_eq!(
            negotiated(log),
            ("aes256-ctr hmac-sha2-512".into(), "zlib@openssh.com".into())
        );
    }
}
