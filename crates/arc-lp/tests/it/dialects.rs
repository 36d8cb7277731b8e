//! What the two switches change, case by case, and that they change nothing else.

use crate::collect::{Value, pulled, pulled_with};
use arc_lp::{Backslash, Chunks, Dialect, ErrorKind, FieldValue, ResumableSink, Series, Sink, Text, Utf8};

const KEEP: Dialect = Dialect::new().backslash(Backslash::Keep);
const LOSSY: Dialect = Dialect::new().utf8(Utf8::Lossy);

/// Measurement, then tags and fields as `key=value`, of the only record; or what is wrong with it.
fn parts(input: &[u8], dialect: Dialect) -> Result<Vec<String>, ErrorKind> {
    let mut records = pulled_with(input, dialect);
    assert_eq!(records.len(), 1);
    let record = records.remove(0).map_err(|error| error.kind())?;
    let tags = record.tags.into_iter().map(|(key, value)| format!("{key}={value}"));
    let fields = record.fields.into_iter().map(|(key, value)| match value {
        Value::String(text) => format!("{key}={text}"),
        Value::Float(bits) => format!("{key}={}", f64::from_bits(bits)),
        other => format!("{key}={other:?}"),
    });
    Ok([record.measurement].into_iter().chain(tags).chain(fields).collect())
}

#[test]
fn backslashes_in_names_are_kept_and_in_strings_are_not() {
    // (record, parts by default, parts with `Backslash::Keep`)
    let cases: [(&str, &[&str], &[&str]); 9] = [
        (r"m,t=\\srv\x f=1", &["m", r"t=\srv\x", "f=1"], &["m", r"t=\\srv\x", "f=1"]),
        (r"a\\b,k\\l=1 x\\y=1", &[r"a\b", r"k\l=1", r"x\y=1"], &[r"a\\b", r"k\\l=1", r"x\\y=1"]),
        (r"m,t=C:\\ f=1 g=2", &[], &["m", r"t=C:\ f=1", "g=2"]),
        (r"m,t=C:\\,u=1 f=1", &["m", r"t=C:\", "u=1", "f=1"], &["m", r"t=C:\,u=1", "f=1"]),
        (r"m\\ f=1 g=2", &[], &[r"m\ f=1", "g=2"]),
        (r"m k\\=1=2", &[], &["m", r"k\=1=2"]),
        (r"m\\=a f=1", &[r"m\=a", "f=1"], &[r"m\\=a", "f=1"]),
        (r#"m s="\\ \" \n""#, &["m", r#"s=\ " \n"#], &["m", r#"s=\ " \n"#]),
        (r"m\ a,t\,b=c\=d f=1", &["m a", "t,b=c=d", "f=1"], &["m a", "t,b=c=d", "f=1"]),
    ];
    for (input, default, keep) in cases {
        let expected = |parts: &[&str]| parts.iter().map(ToString::to_string).collect::<Vec<_>>();
        // Empty: the record is bad.
        assert_eq!(parts(input.as_bytes(), Dialect::new()).unwrap_or_default(), expected(default), "{input}");
        assert_eq!(parts(input.as_bytes(), KEEP).unwrap_or_default(), expected(keep), "{input}");
    }
    assert_eq!(parts(br"m,t=C:\\ f=1", KEEP), Err(ErrorKind::FieldMissing));
}

#[test]
fn text_that_is_not_utf8_is_shown_with_replacements() {
    let cases: [(&[u8], &[&str]); 5] = [
        (b"a\xff,t\xe2\x82=\xf0\x9f\x98 f=1", &["a\u{fffd}", "t\u{fffd}=\u{fffd}", "f=1"]),
        (b"m f\xc0\xaf=\"x\xed\xa0\x80y\"", &["m", "f\u{fffd}\u{fffd}=x\u{fffd}\u{fffd}\u{fffd}y"]),
        (b"m,t=\xe2\\,\x82 f=1", &["m", "t=\u{fffd},\u{fffd}", "f=1"]),
        (b"m f=\"\xff\n\\\"\xfe\"", &["m", "f=\u{fffd}\n\"\u{fffd}"]),
        ("m,t=é f=\"€\"".as_bytes(), &["m", "t=é", "f=€"]),
    ];
    for (input, expected) in cases {
        assert_eq!(parts(input, LOSSY).unwrap(), expected);
    }
    // What is no text is as bad as ever, and so are controls in names.
    assert_eq!(parts(b"m f=\xff", LOSSY), Err(ErrorKind::ValueInvalid));
    assert_eq!(parts(b"m\xff\t f=1", LOSSY), Err(ErrorKind::MeasurementControl));
    assert_eq!(parts(b"m,t=\xff\t f=1", LOSSY), Err(ErrorKind::TagControl));
}

#[test]
fn every_way_to_the_characters_of_bad_text_gives_the_same() {
    let point = arc_lp::points_with(b"m,t=\xff\\ x f=1", LOSSY).next().unwrap().unwrap();
    let (_, text) = point.tags().next().unwrap();
    assert_eq!(text.to_string(), "\u{fffd} x");
    assert_eq!(text.chars().collect::<String>(), "\u{fffd} x");
    assert_eq!(text.unescaped_len(), 5);
    assert_eq!(text.unescape_into(&mut [0; 5]), Some("\u{fffd} x"));
    assert_eq!(text.unescape_into(&mut [0; 4]), None);
    assert_eq!((text.as_str(), text.raw()), (None, &b"\xff\\ x"[..]));
    #[cfg(feature = "alloc")]
    assert_eq!(text.to_cow(), "\u{fffd} x");
    // Compared by its bytes, not by what is shown.
    assert!(text != "\u{fffd} x");
    let mut buffer = [0; 32];
    let mut writer = arc_lp::LineWriter::new(&mut buffer);
    let mut line = writer.line("m").unwrap();
    line.tag("t", text).unwrap().field("f", 1.0).unwrap();
    line.end(None).unwrap();
    assert_eq!(pulled(writer.written())[0].as_ref().unwrap().tags[0].1, "\u{fffd} x");
}

/// Counts points.
struct Count(usize);

impl<'a> Sink<'a> for Count {
    fn series(&mut self, _: u64, _: &'a [u8]) -> Series {
        Series::Unknown
    }
    fn measurement(&mut self, _: Text<'a>) {}
    fn tag(&mut self, _: Text<'a>, _: Text<'a>) {}
    fn field(&mut self, _: Text<'a>, _: FieldValue<'a>) {}
    fn point(&mut self, _: Option<i64>) {
        self.0 += 1;
    }
    fn error(&mut self, _: arc_lp::Error) {}
}

impl<'a> ResumableSink<'a> for Count {
    fn unfinished(&mut self) {}
}

#[test]
fn chunks_keep_their_dialect_from_the_first_to_the_last() {
    let body = b"m,t=\\\\ a f=1\nm\xff f=1\nm,t=\\\\ a f=1";
    for (dialect, expected) in [(Dialect::new(), 0), (KEEP, 2), (LOSSY, 1), (KEEP.utf8(Utf8::Lossy), 3)] {
        let (mut chunks, mut count) = (Chunks::with_dialect(dialect), Count(0));
        let done = chunks.parse(body, &mut count);
        chunks.finish(&body[done..], &mut count);
        assert_eq!(count.0, expected, "{dialect:?}");
    }
}
