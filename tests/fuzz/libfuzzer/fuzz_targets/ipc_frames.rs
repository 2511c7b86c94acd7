#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| firedoor_fuzz::run("ipc_frames", bytes));
