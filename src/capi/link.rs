//! Links: what the windows of one connection share.

use libc::{c_char, c_int};

use super::config::sshflow_config;
use super::guard::export;
use super::handle::{self, opaque, Elements, Exclusive, Given, Handle, Out};
use super::shared::Shared;
use super::version::SSHFLOW_OK;
use crate::config::Config;
use crate::window::{LatencyMode, Link, Policy, WindowConfig};

/// The peer's KEXINIT lists the method zstd@sshflow.org, so its buffers bear
/// large windows.
pub const SSHFLOW_PEER_HAS_SSHFLOW: u32 = 1;

/// One SSH connection: its round trip, its peer, and the budget that its
/// windows share.
#[allow(non_camel_case_types)]
pub struct sshflow_link(Handle<Shared<Link>>);
opaque!(sshflow_link, Shared<Link>);

fn window_config(config: &Config) -> WindowConfig {
    WindowConfig {
        policy: if config.window_auto() {
            Policy::Auto
        } else {
            Policy::Fixed
        },
        window_max: config.window_max(),
        budget: u64::from(config.window_budget()),
        latency_mode: if config.latency_auto() {
            LatencyMode::Auto
        } else {
            LatencyMode::Off
        },
        fixed_window: 0,
    }
}

/// Makes a link and writes it to `*out`, on success only. `config` NULL means
/// the defaults. Free it with sshflow_link_free(), before its windows or after
/// them.
///
/// Returns SSHFLOW_OK, SSHFLOW_ERR_INVALID_ARGUMENT for `out` NULL, or
/// SSHFLOW_ERR_NO_MEMORY.
#[no_mangle]
pub unsafe extern "C" fn sshflow_link_new(
    config: *const sshflow_config,
    out: *mut *mut sshflow_link,
) -> c_int {
    export!(
        config: Option<handle::Shared<sshflow_config>> = config,
        out: Out<*mut sshflow_link> = out;
        {
            let defaults = Config::new();
            let config = config.as_deref().unwrap_or(&defaults);
            out.give(Shared::new(Link::new(window_config(config))?)?)?;
            Ok(SSHFLOW_OK)
        }
    )
}

/// Tells what the peer is: its identification line "SSH-2.0-..." (RFC 4253
/// section 4.2), with or without CR LF, and 0 or SSHFLOW_PEER_HAS_SSHFLOW.
/// Windows are then no larger than the peer's buffers bear: 2 MiB towards
/// OpenSSH up to 3.8, and 15 MiB towards whoever is not known to bear more,
/// to whom a window is also no larger than what the path holds (a quarter more
/// while the rate rises) and 2 MiB.
/// Without this call the same holds. May be called again.
///
/// Returns SSHFLOW_OK, or SSHFLOW_ERR_INVALID_ARGUMENT for NULL, an unknown
/// flag, or a line that does not begin with "SSH-"; nothing changes then.
#[no_mangle]
pub unsafe extern "C" fn sshflow_link_peer(
    link: *mut sshflow_link,
    ident: *const c_char,
    ident_len: usize,
    flags: u32,
) -> c_int {
    export!(
        link: Exclusive<sshflow_link> = link,
        ident: Elements<u8> = (ident.cast(), ident_len);
        {
            link.with(|link| link.peer(ident.as_slice(), flags))?;
            Ok(SSHFLOW_OK)
        }
    )
}

/// Gives a sample of the path's minimum round trip, in microseconds, taken at
/// `now_us` (microseconds of a monotonic clock, as everywhere here). Optional;
/// about once a round trip is plenty. sshflow_tcp_min_rtt() is one way to get
/// it; plain round trips do too, since the least of the last minutes counts.
/// Below 1000 the path is a LAN and every window behaves as OpenSSH's own.
///
/// Returns SSHFLOW_OK, or SSHFLOW_ERR_INVALID_ARGUMENT for NULL and for
/// UINT32_MAX, by which kernels say that they do not know.
#[no_mangle]
pub unsafe extern "C" fn sshflow_link_rtt(
    link: *mut sshflow_link,
    now_us: u64,
    min_rtt_us: u32,
) -> c_int {
    export!(link: Exclusive<sshflow_link> = link; {
        link.with(|link| link.rtt(now_us, min_rtt_us))?;
        Ok(SSHFLOW_OK)
    })
}

/// Frees a link. Its windows stay usable, and may be freed later. NULL is a
/// no-op.
#[no_mangle]
pub unsafe extern "C" fn sshflow_link_free(link: *mut sshflow_link) {
    export!(link: Given<sshflow_link> = link; {
        link.free();
        Ok(SSHFLOW_OK)
    });
}
