#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| sshflow_fuzz::config_set(data));
