//! Whatever is parsed is written, and parsed as the same again.

use crate::collect::meanings;
use arc_lp::{LineWriter, points};

pub(crate) fn assert_same(input: &[u8]) {
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
    assert_eq!(meanings(writer.written()), meanings(input));
}
