//! Dropbear as a peer.
#![forbid(unsafe_code)]

use super::ends::{program, Ends};
use super::matrix::{Driver, Group, Variant};
use crate::error::Result;
use crate::sys::capsule;
use crate::sys::spawn::Spawn;
use std::path::Path;
use std::sync::OnceLock;

/// Its receive window unless `-W` says otherwise, in bytes.
pub const WINDOW: f64 = 24.0 * 1024.0;

/// Converts the keys, and shows the server an `authorized_keys` of our own in the place where it
/// looks for the user's.
pub fn prepare(keys: &Path) -> Result<()> {
    for name in ["host", "user"] {
        let to = keys.join(format!("{name}.dropbear"));
        if !to.exists() {
            Spawn::new(&["dropbearconvert", "openssh", "dropbear"])
                .arg(keys.join(name))
                .arg(&to)
                .read()?;
        }
    }
    static SHOWN: OnceLock<()> = OnceLock::new();
    if SHOWN.get().is_none() {
        let home = nix::unistd::User::from_uid(nix::unistd::geteuid())?.map(|u| u.dir);
        if let Some(dir) = home.map(|h| h.join(".ssh")) {
            std::fs::create_dir_all(&dir)?;
            capsule::private_tmpfs(&dir.display().to_string(), "mode=700")?;
            std::fs::copy(keys.join("authorized"), dir.join("authorized_keys"))?;
        }
        let _ = SHOWN.set(());
    }
    Ok(())
}

/// Why a group says nothing of this variant; `None` for OpenSSH, and for what Dropbear can do.
pub fn cannot(variant: &Variant, group: &Group) -> Option<&'static str> {
    if variant.kind != "dropbear" {
        return None;
    }
    if !nix::unistd::geteuid().is_root() {
        return Some("Dropbear's server reads the user's own authorized_keys: this needs root");
    }
    match group.driver {
        _ if group.jump => Some("ProxyJump is OpenSSH's"),
        Driver::Echo if group.beside.as_deref() == Some("same") => {
            Some("Dropbear does not share connections")
        }
        Driver::Download | Driver::Upload | Driver::Echo | Driver::Session | Driver::Connect => {
            None
        }
        Driver::Channels | Driver::Mux => Some("Dropbear does not share connections"),
        Driver::ForwardLocal | Driver::ForwardRemote | Driver::ForwardDynamic => {
            Some("forwards are measured with OpenSSH alone")
        }
        Driver::ScpGet | Driver::ScpPut | Driver::SftpGet | Driver::SftpPut => {
            Some("scp and sftp are OpenSSH's")
        }
    }
}

/// Whether dbclient has a cipher; many builds have no GCM.
fn has_cipher(dbclient: &Path, name: &str) -> bool {
    let said = Spawn::new(&[dbclient.as_os_str(), "-c".as_ref(), "help".as_ref()]).output();
    let text = said.map(|o| [o.stdout, o.stderr].concat());
    let text = String::from_utf8_lossy(&text.unwrap_or_default()).into_owned();
    text.split([',', ' ', '\n']).any(|w| w == name)
}

/// The words that start `dbclient`, with the destination that OpenSSH's words end in replaced.
pub fn client(ends: &Ends<'_>, more: &[&str], port: u16, user: &str) -> Result<Vec<String>> {
    let dbclient = program(&ends.variant.client, "bin/dbclient")?;
    prepare(ends.key_dir())?;
    let key = ends.key_dir().join("user.dropbear");
    let mut words = vec![
        dbclient.display().to_string(),
        "-y".into(),
        "-y".into(),
        "-i".into(),
    ];
    words.push(key.display().to_string());
    words.extend(["-p".to_string(), port.to_string()]);
    let cipher = ends.group.cipher.as_ref();
    if let Some(cipher) = cipher.filter(|c| has_cipher(&dbclient, c)) {
        words.extend(["-c".to_string(), cipher.clone()]);
    }
    words.extend(ends.variant.options.iter().cloned());
    let address = format!("{user}@{}", ends.place.address);
    words.extend(more.iter().map(|w| {
        if *w == "target" {
            address.clone()
        } else {
            w.to_string()
        }
    }));
    Ok(words)
}
