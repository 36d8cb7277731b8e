//! Any bytes as a body of record batches: no panic, and what is taken is kept as it is.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| arc_core::fuzzing::arrow_stream(input));
