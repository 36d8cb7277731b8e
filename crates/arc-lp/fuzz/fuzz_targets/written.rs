//! Any bytes: each point that is parsed is written, and parsed as the same again.
#![no_main]

use arc_lp::{LineWriter, points};

#[expect(dead_code, reason = "shared with the tests; each target needs a part")]
#[path = "../../tests/it/collect.rs"]
mod collect;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let mut buffer = vec![0; 16 * input.len() + 1024];
    let mut writer = LineWriter::new(&mut buffer);
    for point in points(input).flatten() {
        let mut line = writer.line(point.measurement()).unwrap();
        for (key, value) in point.tags() {
            line.tag(key, value).unwrap();
        }
        for (key, value) in point.fields() {
            line.field(key, value).unwrap();
        }
        line.end(point.timestamp()).unwrap();
    }
    assert_eq!(collect::meanings(writer.written()), collect::meanings(input));
});
