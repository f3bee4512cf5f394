//! TUN devices with vnet header and segmentation offload (`Documentation/networking/tuntap.rst`).
// unsafe: ioctl.

use crate::error::{Context, Result};
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

const IFF_TUN: i16 = 0x0001;
const IFF_NO_PI: i16 = 0x1000;
const IFF_VNET_HDR: i16 = 0x4000;
const TUN_F_CSUM: i32 = 1;
const TUN_F_TSO4: i32 = 2;
const TUN_F_TSO6: i32 = 4;
const TUN_F_TSO_ECN: i32 = 8;

#[repr(C)]
struct IfReq {
    name: [u8; libc::IFNAMSIZ],
    flags: i16,
    rest: [u8; 22],
}

nix::ioctl_write_ptr_bad!(tunsetiff, nix::request_code_write!(b'T', 202, 4), IfReq);
nix::ioctl_write_int_bad!(tunsetoffload, nix::request_code_write!(b'T', 208, 4));

/// Makes a TUN device in the calling thread's network namespace. It goes when the file is closed.
pub fn open(name: &str) -> Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open("/dev/net/tun")
        .context(|| "opening /dev/net/tun".into())?;
    let mut request = IfReq {
        name: [0; libc::IFNAMSIZ],
        flags: IFF_TUN | IFF_NO_PI | IFF_VNET_HDR,
        rest: [0; 22],
    };
    let room = libc::IFNAMSIZ - 1;
    let bytes = name.as_bytes();
    request.name[..bytes.len().min(room)].copy_from_slice(&bytes[..bytes.len().min(room)]);
    // SAFETY: the descriptor is open and the structure has the layout and size of `struct ifreq`.
    unsafe { tunsetiff(file.as_raw_fd(), &request) }
        .context(|| format!("making the TUN device {name}"))?;
    let offload = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
    // SAFETY: TUNSETOFFLOAD takes a plain integer.
    unsafe { tunsetoffload(file.as_raw_fd(), offload) }
        .context(|| format!("switching segmentation offload on for {name}"))?;
    Ok(file)
}
