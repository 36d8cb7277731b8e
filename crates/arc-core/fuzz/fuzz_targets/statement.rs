//! Any bytes as a statement of SQL: no panic, and what is taken is kept as it is.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| arc_core::fuzzing::statement(input));
