//! Dropbear as a peer.
#![forbid(unsafe_code)]

use super::ends::{program, Ends};
use crate::error::Result;
use crate::sys::capsule;
use crate::sys::spawn::Spawn;
use std::path::Path;
use std::sync::OnceLock;

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
    if let Some(cipher) = &ends.group.cipher {
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
