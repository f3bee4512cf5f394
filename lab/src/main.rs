//! The laboratory that measures sshflow: real kernels, real TCP, real SSH, over a path and on a
//! CPU that a desk does not have. `lab/README.md` is the manual.
#![forbid(unsafe_op_in_unsafe_fn)]

mod bench;
mod cli;
mod data;
mod error;
mod link;
mod payload;
mod report;
mod stats;
mod summary;
mod sys;
mod units;
mod work;

fn main() -> std::process::ExitCode {
    cli::main()
}
