//! The laboratory that measures sshflow.
fn main() {}
