//! Any bytes: each point that is parsed is written, and parsed as the same again.
#![no_main]

#[expect(dead_code, reason = "shared with the tests; each target needs a part")]
#[path = "../../tests/it/collect.rs"]
mod collect;
#[path = "../../tests/it/rewritten.rs"]
mod rewritten;

libfuzzer_sys::fuzz_target!(|input: &[u8]| rewritten::assert_same(input));
