//! Any bytes as the rows of a frame: no panic, and what is taken is kept as it is.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| arc_core::fuzzing::logged_rows(input));
