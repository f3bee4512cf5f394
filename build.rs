//! Names the shared object, and makes sure that zlib and zstd come from where
//! the features say: both from the system, or (feature `bundled`) both from the
//! sources inside the `-sys` crates.

use std::env;
use std::process;

/// A C library behind a `-sys` crate, and what can go wrong with it.
struct Engine {
    name: &'static str,
    /// Cargo sets it when the `-sys` crate compiled its own copy.
    built_variable: &'static str,
    /// Tells the crate which of the two it is, for `sshflow_build_info`.
    origin_variable: &'static str,
    packages: &'static str,
    override_variable: &'static str,
}

const ENGINES: [Engine; 2] = [
    Engine {
        name: "zlib",
        built_variable: "DEP_Z_ROOT",
        origin_variable: "SSHFLOW_ZLIB_ORIGIN",
        packages: "zlib1g-dev, zlib-devel or zlib-dev",
        override_variable: "LIBZ_SYS_STATIC",
    },
    Engine {
        name: "libzstd",
        built_variable: "DEP_ZSTD_ROOT",
        origin_variable: "SSHFLOW_ZSTD_ORIGIN",
        packages: "libzstd-dev, libzstd-devel or zstd-dev",
        override_variable: "ZSTD_SYS_USE_PKG_CONFIG",
    },
];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let bundled = env::var_os("CARGO_FEATURE_BUNDLED").is_some();
    for engine in &ENGINES {
        if let Err(message) = announce(engine, bundled) {
            eprintln!("error: {message}");
            process::exit(1);
        }
    }
    if let Some(argument) = shared_object_name() {
        println!("cargo:rustc-cdylib-link-arg={argument}");
    }
}

/// The `-sys` crates fall back to the other origin without a word (libz-sys
/// compiles its own zlib when it finds none), which is how a distribution's
/// package would end up with a private copy. So what was asked for is compared
/// with what was done.
fn announce(engine: &Engine, bundled: bool) -> Result<(), String> {
    let built = env::var_os(engine.built_variable).is_some();
    let Engine {
        name,
        packages,
        override_variable,
        ..
    } = engine;
    if built && !bundled {
        return Err(format!(
            "the system's {name} was not found. Install its development files \
             ({packages}); if they are outside the standard directories, name \
             them in PKG_CONFIG_PATH, CPATH and LIBRARY_PATH; or build with \
             `--features bundled` (and without {override_variable} in the environment)"
        ));
    }
    if bundled && !built {
        return Err(format!(
            "feature `bundled` asks for a {name} built from source, but the system's \
             was taken: remove {override_variable} from the environment"
        ));
    }
    let origin = if built { "bundled" } else { "system" };
    println!("cargo:rustc-env={}={origin}", engine.origin_variable);
    Ok(())
}

/// The linker argument that gives the shared object its name. As long as the
/// major version is the same, programs find it under this name. cargo-c passes
/// the same name on ELF systems, and its own one on macOS.
fn shared_object_name() -> Option<String> {
    let major = env::var("CARGO_PKG_VERSION_MAJOR").ok()?;
    let family = env::var("CARGO_CFG_TARGET_FAMILY").ok()?;
    let vendor = env::var("CARGO_CFG_TARGET_VENDOR").ok()?;
    if !family.split(',').any(|word| word == "unix") {
        return None;
    }
    if vendor != "apple" {
        return Some(format!("-Wl,-soname,libsshflow.so.{major}"));
    }
    let cargo_c = env::var_os("CARGO_FEATURE_CAPI").is_some();
    (!cargo_c).then(|| format!("-Wl,-install_name,@rpath/libsshflow.{major}.dylib"))
}
