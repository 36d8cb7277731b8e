//! Any bytes: no panic, every face agrees with the naive parser, offsets are inside the input.
#![no_main]

#[expect(dead_code, reason = "shared with the tests; each target needs a part")]
#[path = "../../tests/it/collect.rs"]
mod collect;
#[path = "../../tests/it/naive.rs"]
mod naive;

libfuzzer_sys::fuzz_target!(|input: &[u8]| naive::assert_agrees(input));
