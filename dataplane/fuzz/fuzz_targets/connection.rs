//! Two ends exchange messages over a bad wire.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::connection::run(bytes));
