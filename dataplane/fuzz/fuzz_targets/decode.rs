//! An endpoint decodes frames.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::frames::decode_all(bytes));
