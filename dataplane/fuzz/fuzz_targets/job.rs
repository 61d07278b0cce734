//! A job configuration is read, checked and run for some events.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::job::run(bytes));
