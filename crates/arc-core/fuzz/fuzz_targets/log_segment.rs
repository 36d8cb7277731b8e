//! Any bytes as a segment of the log: no panic, and what is taken is kept as it is.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| arc_core::fuzzing::log_segment(input));
