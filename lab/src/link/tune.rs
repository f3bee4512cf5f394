//! TCP settings of a namespace.
#![forbid(unsafe_code)]

use crate::error::{Context, Result};
use crate::sys::janitor;
use crate::sys::netns::Netns;
use crate::units;

/// Sets the congestion control and the largest buffers where given. Nothing that one connection
/// learned about the path is passed on to the next.
pub fn tune(netns: &Netns, congestion: Option<&str>, buffers: Option<&str>) -> Result<()> {
    netns.sysctl("net.ipv4.tcp_no_metrics_save", "1")?;
    if let Some(name) = congestion {
        allow(name)?;
        netns.sysctl("net.ipv4.tcp_congestion_control", name)?;
    }
    if let Some(buffers) = buffers {
        let max = units::bytes(buffers)?;
        netns.sysctl("net.ipv4.tcp_rmem", &format!("4096 131072 {max}"))?;
        netns.sysctl("net.ipv4.tcp_wmem", &format!("4096 16384 {max}"))?;
    }
    Ok(())
}

/// A namespace may only choose what the first namespace allows to everyone. Adds `name` to that
/// list until this program ends.
fn allow(name: &str) -> Result<()> {
    const ALLOWED: &str = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";
    let list = std::fs::read_to_string(ALLOWED)?;
    if list.split_whitespace().any(|n| n == name) {
        return Ok(());
    }
    let doing = || format!("allowing the congestion control \"{name}\" in namespaces");
    std::fs::write(ALLOWED, format!("{} {name}", list.trim())).context(doing)?;
    janitor::write_later(ALLOWED, list.trim());
    Ok(())
}

/// What is in force: congestion control, the ones to be had, receive and send buffers.
pub fn settings(netns: &Netns) -> Result<[String; 4]> {
    Ok([
        netns.read_sysctl("net.ipv4.tcp_congestion_control")?,
        netns.read_sysctl("net.ipv4.tcp_available_congestion_control")?,
        netns.read_sysctl("net.ipv4.tcp_rmem")?,
        netns.read_sysctl("net.ipv4.tcp_wmem")?,
    ])
}
