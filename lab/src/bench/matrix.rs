//! The matrix file: which variants run over which links with which data, and how.
#![forbid(unsafe_code)]

use crate::error::{Context, Error, Result};
use crate::link::Params;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The reference that needs no SSH: the same bytes over plain TCP.
pub const PLAIN_TCP: &str = "plain-tcp";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Matrix {
    pub name: String,
    /// Seed of the order of runs and of the random loss.
    #[serde(default = "one")]
    pub seed: u64,
    #[serde(rename = "variant")]
    pub variants: Vec<Variant>,
    #[serde(rename = "link")]
    pub links: Vec<LinkSpec>,
    #[serde(rename = "cpu", default)]
    pub cpus: Vec<CpuSpec>,
    #[serde(rename = "group")]
    pub groups: Vec<Group>,
}

fn one() -> u64 {
    1
}

/// One SSH with its options.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    pub name: String,
    /// `openssh`, `dropbear`, or `tcp`, which is no SSH at all.
    #[serde(default = "openssh")]
    pub kind: String,
    /// Where the client is installed (`bin/ssh` below, or the program itself).
    #[serde(default)]
    pub client: PathBuf,
    /// Where the server is installed (`sbin/sshd` below, or the program itself).
    #[serde(default)]
    pub server: PathBuf,
    #[serde(default)]
    pub options: Vec<String>,
    #[serde(default)]
    pub server_options: Vec<String>,
    /// Multiplies the link's rate for this variant alone: a planted difference, to test the
    /// summary with.
    #[serde(default = "full")]
    pub rate_factor: f64,
}

fn openssh() -> String {
    "openssh".into()
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    pub name: String,
    /// `tun` (the delay link), `veth` or `loopback`.
    #[serde(default = "tun")]
    pub kind: String,
    #[serde(default = "unlimited")]
    pub rate: String,
    /// Round trip; each direction delays by half.
    #[serde(default = "zero")]
    pub rtt: String,
    #[serde(default = "zero")]
    pub queue: String,
    #[serde(default = "zero")]
    pub loss: String,
    /// Largest TCP buffers of both ends; without it the kernel's default.
    pub buffers: Option<String>,
    pub congestion: Option<String>,
    /// What changes while a run lasts.
    #[serde(default)]
    pub changes: Vec<Change>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Since the first byte arrived.
    pub after: String,
    /// As in `link ctl … set`: `rate=20M delay=10ms`.
    pub set: String,
}

fn tun() -> String {
    "tun".into()
}

fn unlimited() -> String {
    "unlimited".into()
}

fn zero() -> String {
    "0".into()
}

impl LinkSpec {
    pub fn params(&self) -> Result<Params> {
        let mut p = Params::default();
        for (key, value) in [
            ("rate", &self.rate),
            ("delay", &self.rtt),
            ("queue", &self.queue),
            ("loss", &self.loss),
        ] {
            p.apply(&format!("{key}={value}"))
                .context(|| format!("link \"{}\"", self.name))?;
        }
        p.delay_ns /= 2;
        Ok(p)
    }
}

/// How many times slower than this machine each end is.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct CpuSpec {
    pub name: String,
    #[serde(default = "full")]
    pub sender: f64,
    #[serde(default = "full")]
    pub receiver: f64,
}

fn full() -> f64 {
    1.0
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Driver {
    Download,
    Upload,
    ScpGet,
    ScpPut,
    SftpGet,
    SftpPut,
    /// A download through a second session of a shared connection.
    Mux,
    /// A download over a forwarded TCP connection.
    ForwardLocal,
    ForwardRemote,
    ForwardDynamic,
    Echo,
    Channels,
    Session,
    Connect,
}

/// A block of runs: every combination of what its lists name.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    pub name: String,
    pub driver: Driver,
    pub variants: Vec<String>,
    pub links: Vec<String>,
    #[serde(default)]
    pub data: Vec<String>,
    #[serde(default)]
    pub cpus: Vec<String>,
    #[serde(default = "three")]
    pub repeats: usize,
    /// Size of a transfer …
    pub bytes: Option<String>,
    /// … or for how long it is watched, once the sender's kernel buffer has filled.
    pub seconds: Option<f64>,
    /// Ciphers of both sides (OpenSSH's names); without it what the two agree on.
    pub cipher: Option<String>,
    pub mac: Option<String>,
    /// Adds plain TCP to the comparison.
    #[serde(default)]
    pub limit: bool,
    /// Slow consumer: bytes per second.
    pub consume: Option<String>,
    /// Through ssh -J.
    #[serde(default)]
    pub jump: bool,
    /// Number of channels, for `channels`.
    #[serde(default)]
    pub channels: usize,
    /// Keys, for `echo`.
    #[serde(default)]
    pub keys: usize,
    /// Echo beside a download: `same` connection or an `other` one.
    pub beside: Option<String>,
    /// Breaks the run on purpose: `corrupt`, `kill` or `disk-full`. It must be reported as failed.
    pub fault: Option<String>,
}

fn three() -> usize {
    3
}

impl Matrix {
    pub fn load(path: &Path) -> Result<Self> {
        let text =
            std::fs::read_to_string(path).context(|| format!("reading {}", path.display()))?;
        Self::parse(&text).context(|| format!("{}", path.display()))
    }

    pub fn parse(text: &str) -> Result<Self> {
        let mut matrix: Matrix = toml::from_str(text)?;
        matrix.cpus.push(CpuSpec {
            name: "full".into(),
            sender: 1.0,
            receiver: 1.0,
        });
        matrix.check()?;
        Ok(matrix)
    }

    fn check(&self) -> Result<()> {
        for g in &self.groups {
            let wrong = |e: Error| Error::new(format!("group \"{}\": {e}", g.name));
            for v in &g.variants {
                self.variant(v).map_err(wrong)?;
            }
            for l in &g.links {
                self.link(l).and_then(|l| l.params()).map_err(wrong)?;
            }
            for c in &g.cpus {
                self.cpu(c).map_err(wrong)?;
            }
            for d in &g.data {
                crate::data::recipe(d).map_err(wrong)?;
            }
            if let Some(bytes) = &g.bytes {
                crate::units::bytes(bytes).map_err(wrong)?;
            }
            let transfer = !matches!(g.driver, Driver::Echo | Driver::Session | Driver::Connect);
            if transfer && (g.data.is_empty() || g.bytes.is_some() == g.seconds.is_some()) {
                return Err(wrong(Error::new(
                    "a transfer needs data, and either bytes or seconds",
                )));
            }
            let pipe = matches!(g.driver, Driver::Download | Driver::Upload);
            if g.seconds.is_some() && !pipe {
                return Err(wrong(Error::new(
                    "only download and upload can be cut by time",
                )));
            }
        }
        Ok(())
    }

    pub fn variant(&self, name: &str) -> Result<&Variant> {
        find(&self.variants, name, |v| &v.name, "variant")
    }

    pub fn link(&self, name: &str) -> Result<&LinkSpec> {
        find(&self.links, name, |l| &l.name, "link")
    }

    pub fn cpu(&self, name: &str) -> Result<&CpuSpec> {
        find(&self.cpus, name, |c| &c.name, "cpu")
    }
}

fn find<'a, T>(
    list: &'a [T],
    name: &str,
    key: impl Fn(&T) -> &String,
    what: &str,
) -> Result<&'a T> {
    list.iter()
        .find(|x| key(x) == name)
        .ok_or_else(|| Error::new(format!("there is no {what} \"{name}\"")))
}

/// One cell: everything but the variant and the repetition.
#[derive(Debug, Clone)]
pub struct Point<'a> {
    pub group: &'a Group,
    pub link: &'a LinkSpec,
    pub cpu: &'a CpuSpec,
    pub data: Option<&'a str>,
}

impl Matrix {
    /// All cells, in the order of the file.
    pub fn points(&self) -> Result<Vec<Point<'_>>> {
        let mut points = Vec::new();
        for group in &self.groups {
            let cpus = if group.cpus.is_empty() {
                vec!["full".to_string()]
            } else {
                group.cpus.clone()
            };
            let data: Vec<Option<&str>> = match group.data.as_slice() {
                [] => vec![None],
                list => list.iter().map(|d| Some(d.as_str())).collect(),
            };
            for link in &group.links {
                for cpu in &cpus {
                    for &data in &data {
                        let (link, cpu) = (self.link(link)?, self.cpu(cpu)?);
                        points.push(Point {
                            group,
                            link,
                            cpu,
                            data,
                        });
                    }
                }
            }
        }
        Ok(points)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"
        name = "small"
        [[variant]]
        name = "a"
        client = "x"
        server = "y"
        [[link]]
        name = "l"
        rate = "400M"
        rtt = "100ms"
        [[group]]
        name = "g"
        driver = "download"
        variants = ["a"]
        links = ["l"]
        data = ["log", "random"]
        bytes = "1MB"
    "#;

    #[test]
    fn a_matrix_expands_to_its_cells() {
        let m = Matrix::parse(SMALL).unwrap();
        assert_eq!(m.points().unwrap().len(), 2);
        assert_eq!(m.link("l").unwrap().params().unwrap().delay_ns, 50_000_000);
    }

    #[test]
    fn what_is_not_there_is_named() {
        for (from, to, word) in [
            ("variants = [\"a\"]", "variants = [\"b\"]", "variant \"b\""),
            ("rtt = \"100ms\"", "rtt = \"fast\"", "fast"),
            ("bytes = \"1MB\"", "bytes = \"1MB\"\nspeed = 3", "speed"),
            ("bytes = \"1MB\"", "", "bytes or seconds"),
            ("\"random\"", "\"rnd\"", "rnd"),
        ] {
            let e = Matrix::parse(&SMALL.replace(from, to))
                .unwrap_err()
                .to_string();
            assert!(e.contains(word), "{e}");
        }
    }
}
