//! Any bytes as a ticket of Arrow Flight: no panic.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| arc_server::fuzzing::flight_ticket(input));
