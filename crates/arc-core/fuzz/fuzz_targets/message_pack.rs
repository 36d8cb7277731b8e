//! Any bytes as a body of MessagePack: no panic, and what is taken is kept as it is.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| arc_core::fuzzing::message_pack(input));
