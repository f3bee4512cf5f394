//! Where runs take place: a delay link, a veth pair, or the loopback device.
#![forbid(unsafe_code)]

use super::matrix::LinkSpec;
use crate::error::{Error, Result};
use crate::link::{self, Counters, Direction, Link, Params};
use crate::sys::netns::Netns;

/// Places that were made so far. Each is kept, and set anew for each run.
pub struct World {
    seed: u64,
    tun: Option<Link>,
    veth: Option<(Netns, Netns)>,
    loopback: Option<Netns>,
    defaults: Option<[String; 4]>,
    /// Why there is no delay link, and no namespace.
    pub no_link: Option<String>,
    pub no_netns: Option<String>,
}

/// The settings of TCP at both ends of a place.
#[derive(Debug, Clone, Default)]
pub struct TcpSettings {
    pub congestion: String,
    pub rmem: String,
    pub wmem: String,
}

/// A place that is ready for one run.
pub struct Place<'a> {
    pub client: Option<Netns>,
    pub server: Option<Netns>,
    pub address: &'static str,
    pub tcp: TcpSettings,
    link: Option<&'a Link>,
    device: &'static str,
}

const VETH_CLIENT: &str = "10.98.0.1";
const VETH_SERVER: &str = "10.98.0.2";

impl World {
    pub fn new(seed: u64) -> Self {
        let no_netns = Netns::new("probe").err().map(|e| e.to_string());
        let no_link = link::obstacle();
        Self { seed, tun: None, veth: None, loopback: None, defaults: None, no_link, no_netns }
    }

    /// Why this link cannot be had here.
    pub fn obstacle(&self, spec: &LinkSpec) -> Option<&str> {
        match spec.kind.as_str() {
            "tun" => self.no_link.as_deref(),
            "veth" => self.no_netns.as_deref(),
            _ => None,
        }
    }

    pub fn prepare(&mut self, spec: &LinkSpec) -> Result<Place<'_>> {
        match spec.kind.as_str() {
            "tun" => self.prepare_tun(spec),
            "veth" => self.prepare_veth(spec),
            "loopback" => self.prepare_loopback(spec),
            other => Err(Error::new(format!("a link is tun, veth or loopback, not \"{other}\""))),
        }
    }

    fn prepare_tun(&mut self, spec: &LinkSpec) -> Result<Place<'_>> {
        let params = spec.params()?;
        if self.tun.is_none() {
            self.tun = Some(Link::start([Params::default(), Params::default()], 1500, self.seed)?);
        }
        let Some(link) = &self.tun else {
            return Err(Error::new("there is no link"));
        };
        for direction in Direction::BOTH {
            link.set(direction, params.clone());
        }
        let (client, server) = (link.client.clone(), link.server.clone());
        let tcp = tune(&mut self.defaults, spec, &[&client, &server])?;
        Ok(Place {
            client: Some(client),
            server: Some(server),
            address: link::SERVER_ADDRESS,
            tcp,
            link: self.tun.as_ref(),
            device: "path0",
        })
    }

    fn prepare_veth(&mut self, spec: &LinkSpec) -> Result<Place<'_>> {
        let (client, server) = match &self.veth {
            Some((c, s)) => (c.clone(), s.clone()),
            None => {
                let pair = veth_pair()?;
                self.veth = Some(pair.clone());
                pair
            }
        };
        let tcp = tune(&mut self.defaults, spec, &[&client, &server])?;
        Ok(Place {
            client: Some(client),
            server: Some(server),
            address: VETH_SERVER,
            tcp,
            link: None,
            device: "pair0",
        })
    }

    fn prepare_loopback(&mut self, spec: &LinkSpec) -> Result<Place<'_>> {
        if self.no_netns.is_some() {
            let here = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control")?;
            let tcp = TcpSettings { congestion: here.trim().into(), ..TcpSettings::default() };
            let address = "127.0.0.1";
            return Ok(Place { client: None, server: None, address, tcp, link: None, device: "" });
        }
        let netns = match &self.loopback {
            Some(n) => n.clone(),
            None => {
                let n = Netns::new("loopback")?;
                n.ip("link set lo up")?;
                self.loopback = Some(n.clone());
                n
            }
        };
        let tcp = tune(&mut self.defaults, spec, &[&netns])?;
        Ok(Place {
            client: Some(netns.clone()),
            server: Some(netns),
            address: "127.0.0.1",
            tcp,
            link: None,
            device: "lo",
        })
    }
}

fn veth_pair() -> Result<(Netns, Netns)> {
    let client = Netns::new("client")?;
    let server = Netns::new("server")?;
    client.ip("link add pair0 type veth peer name pair1")?;
    client.move_link("pair1", &server)?;
    server.ip("link set pair1 name pair0")?;
    for (netns, own, peer) in
        [(&client, VETH_CLIENT, VETH_SERVER), (&server, VETH_SERVER, VETH_CLIENT)]
    {
        netns.ip("link set lo up")?;
        netns.ip(&format!("address add {own}/32 peer {peer} dev pair0"))?;
        netns.ip("link set pair0 up")?;
    }
    Ok((client, server))
}

/// Sets what the link names and puts all else back to the kernel's own values.
fn tune(
    defaults: &mut Option<[String; 4]>,
    spec: &LinkSpec,
    ends: &[&Netns],
) -> Result<TcpSettings> {
    let mut seen = TcpSettings::default();
    for netns in ends {
        if defaults.is_none() {
            *defaults = Some(link::settings(netns)?);
        }
        if let Some([congestion, _, rmem, wmem]) = defaults {
            netns.sysctl("net.ipv4.tcp_congestion_control", congestion)?;
            netns.sysctl("net.ipv4.tcp_rmem", rmem)?;
            netns.sysctl("net.ipv4.tcp_wmem", wmem)?;
        }
        link::tune(netns, spec.congestion.as_deref(), spec.buffers.as_deref())?;
        let [congestion, _, rmem, wmem] = link::settings(netns)?;
        seen = TcpSettings { congestion, rmem, wmem };
    }
    Ok(seen)
}

impl Place<'_> {
    /// The delay link, where there is one.
    pub fn link(&self) -> Option<&Link> {
        self.link
    }

    /// IP bytes carried so far from client to server, and back.
    pub fn wire(&self) -> Option<(u64, u64)> {
        if let Some(link) = self.link {
            let out = |d| -> Counters { link.counters(d) };
            return Some((out(Direction::Up).bytes_out, out(Direction::Down).bytes_out));
        }
        let netns = self.client.as_ref()?;
        netns.within(|| {
            let text = std::fs::read_to_string("/proc/thread-self/net/dev")?;
            let prefix = format!("{}:", self.device);
            let line = text.lines().find_map(|l| l.trim().strip_prefix(&prefix)).unwrap_or("");
            let field = |i: usize| line.split_whitespace().nth(i).and_then(|f| f.parse().ok());
            Ok((field(8).unwrap_or(0), field(0).unwrap_or(0)))
        }).ok()
    }
}
