//! `sshflow-lab data`
#![forbid(unsafe_code)]

use crate::data::{get, RECIPES};
use crate::error::Result;
use crate::work::Work;
use std::process::ExitCode;

pub fn run(work: &Work, names: &[String]) -> Result<ExitCode> {
    let mut failed = false;
    for recipe in RECIPES {
        if !names.is_empty() && !names.iter().any(|n| n == recipe.name) {
            continue;
        }
        match get(work, recipe.name) {
            Ok(d) => println!(
                "{}  {:>9} kB  {:<7} {}",
                d.sha256,
                d.bytes / 1000,
                d.name,
                recipe.about
            ),
            Err(e) => {
                eprintln!("{e}");
                failed = true;
            }
        }
    }
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}
