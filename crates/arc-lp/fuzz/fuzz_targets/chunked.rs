//! Any bytes, cut anywhere: the pieces give what the whole gives.
#![no_main]

#[path = "../../tests/it/chunked.rs"]
mod chunked;
#[expect(dead_code, reason = "shared with the tests; each target needs a part")]
#[path = "../../tests/it/collect.rs"]
mod collect;

libfuzzer_sys::fuzz_target!(|input: (usize, usize, &[u8])| {
    let (first, second, body) = input;
    let first = first % (body.len() + 1);
    let second = first + second % (body.len() - first + 1);
    chunked::assert_same(body, &[first, second]);
});
