#![forbid(unsafe_code)]
//! How large a window the software at the other end bears.

use super::WINDOW_LIMIT;
use crate::{Error, Result};

/// Flag of [`super::Link::peer`]: the peer's `KEXINIT` lists
/// `zstd@sshflow.org`, so its buffers bear large windows.
pub const PEER_HAS_SSHFLOW: u32 = 1;

const MIB: u32 = 1024 * 1024;

/// Towards a peer whose send path is not known to bear more. OpenSSH reads the
/// local descriptor into the channel's buffer up to the peer's window or
/// 16 MiB (`CHAN_INPUT_MAX`, channels.h), and moves what is there at each
/// read: above 16 MiB its CPU time per byte was measured at 15 times the
/// usual. One MiB stays free for what an adjust adds in flight.
pub(super) const UNKNOWN_PEER_CAP: u32 = 15 * MIB;

/// OpenSSH up to 3.8 reads the local descriptor into a buffer up to the peer's
/// window and gives up the whole process when a buffer passes 10 MiB. No more
/// than it uses itself; HPN-SSH treats the same versions so.
pub(super) const OLD_OPENSSH_CAP: u32 = 2 * MIB;

/// RFC 4253, 4.2: an identification line has at most 255 characters, CR and LF
/// included. A longer one is cut, not refused: hosts that accept it know why.
const IDENT_MAX: usize = 255;

/// The cap in bytes for a peer that sent the identification line `ident`.
///
/// # Errors
/// `InvalidArgument`: no identification line, or a flag that is not known.
pub(super) fn cap(ident: &[u8], flags: u32) -> Result<u32> {
    if flags & !PEER_HAS_SSHFLOW != 0 {
        return Err(Error::InvalidArgument);
    }
    let ident = &ident[..ident.len().min(IDENT_MAX)];
    if !ident.starts_with(b"SSH-") {
        return Err(Error::InvalidArgument);
    }
    if flags & PEER_HAS_SSHFLOW != 0 {
        return Ok(WINDOW_LIMIT);
    }
    Ok(match openssh_version(ident) {
        Some(version) if version <= (3, 8) => OLD_OPENSSH_CAP,
        _ => UNKNOWN_PEER_CAP,
    })
}

/// Major and minor version from "SSH-2.0-OpenSSH_9.2p1 Debian-2".
fn openssh_version(ident: &[u8]) -> Option<(u32, u32)> {
    let mut fields = ident.splitn(3, |&byte| byte == b'-');
    let software = fields.nth(2)?;
    let version = software.strip_prefix(b"OpenSSH_".as_slice())?;
    let (major, rest) = leading_number(version)?;
    let (minor, _) = leading_number(rest.strip_prefix(b".".as_slice())?)?;
    Some((major, minor))
}

fn leading_number(text: &[u8]) -> Option<(u32, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, rest) = text.split_at(digits);
    Some((std::str::from_utf8(number).ok()?.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cap_follows_the_peers_software() {
        let cases: [(&[u8], u32); 12] = [
            (b"SSH-2.0-OpenSSH_3.8.1p1 Debian-8.sarge.6", OLD_OPENSSH_CAP),
            (b"SSH-2.0-OpenSSH_2.3.0", OLD_OPENSSH_CAP),
            (b"SSH-1.99-OpenSSH_3.4p1\r\n", OLD_OPENSSH_CAP),
            (b"SSH-2.0-OpenSSH_3.9p1", UNKNOWN_PEER_CAP),
            (b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3", UNKNOWN_PEER_CAP),
            (b"SSH-2.0-OpenSSH_10.0", UNKNOWN_PEER_CAP),
            (b"SSH-2.0-OpenSSH_for_Windows_9.5", UNKNOWN_PEER_CAP),
            (b"SSH-2.0-OpenSSH_3", UNKNOWN_PEER_CAP),
            (b"SSH-2.0-OpenSSH_99999999999.1", UNKNOWN_PEER_CAP),
            (b"SSH-2.0-dropbear_2022.83", UNKNOWN_PEER_CAP),
            (b"SSH-2.0-libssh2_1.11.1", UNKNOWN_PEER_CAP),
            (b"SSH-2.0-\xff\xfe", UNKNOWN_PEER_CAP),
        ];
        for (ident, expected) in cases {
            assert_eq!(cap(ident, 0), Ok(expected), "{}", ident.escape_ascii());
        }
    }

    #[test]
    fn the_marker_lifts_every_cap() {
        assert_eq!(
            cap(b"SSH-2.0-OpenSSH_10.0", PEER_HAS_SSHFLOW),
            Ok(WINDOW_LIMIT)
        );
    }

    #[test]
    fn what_is_no_identification_is_refused() {
        assert_eq!(cap(b"", 0), Err(Error::InvalidArgument));
        assert_eq!(cap(b"HTTP/1.1 400", 0), Err(Error::InvalidArgument));
        assert_eq!(cap(b"SSH-2.0-x", 2), Err(Error::InvalidArgument));
    }
}
