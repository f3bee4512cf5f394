#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| sshflow_fuzz::window(data));
