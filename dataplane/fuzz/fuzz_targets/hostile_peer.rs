//! A queue pair gets packets that nobody would send.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::hostile_peer::run(bytes));
