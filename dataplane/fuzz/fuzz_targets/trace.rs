//! A trace file is read.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::trace::read(bytes));
