//! Where runs take place: a delay link, a veth pair, or the loopback device.
#![forbid(unsafe_code)]

use super::matrix::LinkSpec;
use crate::error::{Error, Result};
use crate::link::{self, Counters, Direction, Link, Params};
use crate::sys::netns::Netns;
use crate::sys::pty::Pty;

/// Makes places. Each run gets a new one, so that nothing of the run before, not even a
/// retransmission of a killed connection, is on the way there.
pub struct World {
    /// Why there is no delay link, and no namespace.
    pub no_link: Option<String>,
    pub no_netns: Option<String>,
    /// Why sshd cannot hand out terminals.
    pub no_terminal: Option<String>,
}

/// The settings of TCP at both ends of a place.
#[derive(Debug, Clone, Default)]
pub struct TcpSettings {
    pub congestion: String,
    pub rmem: String,
    pub wmem: String,
}

/// A place that is ready for one run.
pub struct Place {
    pub client: Option<Netns>,
    pub server: Option<Netns>,
    pub address: &'static str,
    pub tcp: TcpSettings,
    link: Option<Link>,
    device: &'static str,
}

const VETH_CLIENT: &str = "10.98.0.1";
const VETH_SERVER: &str = "10.98.0.2";

impl World {
    pub fn new() -> Self {
        let no_netns = Netns::new("probe").err().map(|e| e.to_string());
        Self {
            no_link: link::obstacle(),
            no_netns,
            no_terminal: no_terminal(),
        }
    }

    /// Why this link cannot be had here.
    pub fn obstacle(&self, spec: &LinkSpec) -> Option<&str> {
        match spec.kind.as_str() {
            "tun" => self.no_link.as_deref(),
            "veth" => self.no_netns.as_deref(),
            _ => None,
        }
    }

    /// A place as the link describes it; its rate is multiplied by `rate_factor`.
    pub fn prepare(&self, spec: &LinkSpec, rate_factor: f64, seed: u64) -> Result<Place> {
        let mut params = spec.params()?;
        params.rate = (params.rate as f64 * rate_factor).round() as u64;
        match spec.kind.as_str() {
            "tun" => tun(spec, params, seed),
            "veth" => {
                let (client, server) = veth_pair()?;
                let tcp = tune(spec, &[&client, &server])?;
                Ok(Place::new(client, server, VETH_SERVER, tcp, "pair0"))
            }
            "loopback" if self.no_netns.is_some() => {
                let here = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control")?;
                let tcp = TcpSettings {
                    congestion: here.trim().into(),
                    ..TcpSettings::default()
                };
                let address = "127.0.0.1";
                Ok(Place {
                    client: None,
                    server: None,
                    address,
                    tcp,
                    link: None,
                    device: "",
                })
            }
            "loopback" => {
                let netns = Netns::new("loopback")?;
                netns.ip("link set lo up")?;
                let tcp = tune(spec, &[&netns])?;
                Ok(Place::new(netns.clone(), netns, "127.0.0.1", tcp, "lo"))
            }
            other => Err(Error::new(format!(
                "a link is tun, veth or loopback, not \"{other}\""
            ))),
        }
    }
}

/// sshd gives a terminal to the group `tty`. Without root it can only find it there already.
fn no_terminal() -> Option<String> {
    if nix::unistd::geteuid().is_root() {
        return None;
    }
    let slave = Pty::open(24, 80).and_then(|p| p.slave());
    let owner = slave.and_then(|s| Ok(nix::sys::stat::fstat(&s)?.st_gid));
    let group = nix::unistd::Group::from_name("tty").ok().flatten();
    match (owner, group) {
        (Ok(owner), Some(group)) if owner == group.gid.as_raw() => None,
        _ => Some("not root, and new terminals do not belong to the group tty".into()),
    }
}

fn tun(spec: &LinkSpec, params: Params, seed: u64) -> Result<Place> {
    let link = Link::start([params.clone(), params], 1500, seed)?;
    let (client, server) = (link.client.clone(), link.server.clone());
    let tcp = tune(spec, &[&client, &server])?;
    let place = Place::new(client, server, link::SERVER_ADDRESS, tcp, "path0");
    Ok(Place {
        link: Some(link),
        ..place
    })
}

fn veth_pair() -> Result<(Netns, Netns)> {
    let client = Netns::new("client")?;
    let server = Netns::new("server")?;
    client.ip("link add pair0 type veth peer name pair1")?;
    client.move_link("pair1", &server)?;
    server.ip("link set pair1 name pair0")?;
    for (netns, own, peer) in [
        (&client, VETH_CLIENT, VETH_SERVER),
        (&server, VETH_SERVER, VETH_CLIENT),
    ] {
        netns.ip("link set lo up")?;
        netns.ip(&format!("address add {own}/32 peer {peer} dev pair0"))?;
        netns.ip("link set pair0 up")?;
    }
    Ok((client, server))
}

/// Sets what the link names; all else is as the kernel has it in a new namespace.
fn tune(spec: &LinkSpec, ends: &[&Netns]) -> Result<TcpSettings> {
    let mut seen = TcpSettings::default();
    for netns in ends {
        link::tune(netns, spec.congestion.as_deref(), spec.buffers.as_deref())?;
        let [congestion, _, rmem, wmem] = link::settings(netns)?;
        seen = TcpSettings {
            congestion,
            rmem,
            wmem,
        };
    }
    Ok(seen)
}

impl Place {
    fn new(
        client: Netns,
        server: Netns,
        address: &'static str,
        tcp: TcpSettings,
        device: &'static str,
    ) -> Self {
        Self {
            client: Some(client),
            server: Some(server),
            address,
            tcp,
            link: None,
            device,
        }
    }

    /// The delay link, where there is one.
    pub fn link(&self) -> Option<&Link> {
        self.link.as_ref()
    }

    /// IP bytes carried so far from client to server, and back.
    pub fn wire(&self) -> Option<(u64, u64)> {
        if let Some(link) = &self.link {
            let out = |d| -> Counters { link.counters(d) };
            return Some((out(Direction::Up).bytes_out, out(Direction::Down).bytes_out));
        }
        let netns = self.client.as_ref()?;
        netns
            .within(|| {
                let text = std::fs::read_to_string("/proc/thread-self/net/dev")?;
                let prefix = format!("{}:", self.device);
                let line = text
                    .lines()
                    .find_map(|l| l.trim().strip_prefix(&prefix))
                    .unwrap_or("");
                let field = |i: usize| line.split_whitespace().nth(i).and_then(|f| f.parse().ok());
                Ok((field(8).unwrap_or(0), field(0).unwrap_or(0)))
            })
            .ok()
    }
}
