//! A switch decodes and passes on frames.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::frames::forward_all(bytes));
