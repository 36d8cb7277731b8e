//! Inputs made to hurt: they end, with the right error, and cost no more than their length.

use crate::collect::{pulled, pushed};
use arc_lp::{Error, ErrorKind, RawValue, Series, Sink, Text};

const LENGTH: usize = 64 * 1024;

/// The kind and the offset of the only record of `input`, which is bad.
fn only_error(input: &[u8]) -> (ErrorKind, usize) {
    let outcomes = pushed(input);
    assert_eq!(outcomes, pulled(input));
    match outcomes.as_slice() {
        [Err(error)] => (error.kind(), error.offset()),
        other => panic!("{} outcomes", other.len()),
    }
}

#[test]
fn one_byte_over_and_over_is_one_error() {
    let cases = [
        (b'\\', (ErrorKind::FieldMissing, LENGTH)),
        (b'"', (ErrorKind::FieldMissing, LENGTH)),
        (b',', (ErrorKind::MeasurementMissing, 0)),
        (b'=', (ErrorKind::FieldMissing, LENGTH)),
        (b'\0', (ErrorKind::MeasurementControl, 0)),
        (0xff, (ErrorKind::NotUtf8, 0)),
    ];
    for (byte, expected) in cases {
        assert_eq!(only_error(&[byte].repeat(LENGTH)), expected, "{byte}");
    }
    for blank in [b' ', b'\t', b'\n'] {
        assert_eq!(pushed(&[blank].repeat(LENGTH)), []);
    }
}

#[test]
fn one_byte_over_and_over_inside_a_part_is_found_there() {
    let parts = [("m,t=", "tag"), ("m,", "tag"), ("m ", "field"), ("m f=", "value")];
    for (front, part) in parts {
        for byte in [b'\\', b'"', b',', b'='] {
            let mut input = front.as_bytes().to_vec();
            input.extend([byte].repeat(LENGTH));
            let (kind, offset) = only_error(&input);
            assert!(offset <= input.len());
            let unclosed = (front, byte) == ("m f=", b'"');
            // `m,t=\\\…`, `m,t="""…` and `m,t===…` are tags: what is missing is a field.
            let is_tag = front == "m,t=" && byte != b',';
            let expected = if unclosed {
                kind.part()
            } else if is_tag {
                "field"
            } else {
                part
            };
            assert_eq!(kind.part(), expected, "{front}{}", char::from(byte));
        }
    }
}

#[test]
fn a_string_that_is_never_closed_takes_the_rest_once() {
    let input = format!("m f=\"{}", "m f=1\n\\\"".repeat(LENGTH / 8));
    assert_eq!(only_error(input.as_bytes()), (ErrorKind::StringUnclosed, 4));
}

/// Counts the calls it gets: the work done, without a clock.
#[derive(Default)]
struct Calls(usize);

impl<'a> Sink<'a> for Calls {
    fn series(&mut self, _: u64, _: &'a [u8]) -> Series {
        self.0 += 1;
        Series::Unknown
    }
    fn measurement(&mut self, _: Text<'a>) {
        self.0 += 1;
    }
    fn tag(&mut self, _: Text<'a>, _: Text<'a>) {
        self.0 += 1;
    }
    fn field(&mut self, _: Text<'a>, _: arc_lp::FieldValue<'a>) {
        self.0 += 1;
    }
    fn raw_field(&mut self, _: Text<'a>, _: RawValue<'a>) -> Result<(), ErrorKind> {
        self.0 += 1;
        Ok(())
    }
    fn point(&mut self, _: Option<i64>) {
        self.0 += 1;
    }
    fn error(&mut self, _: Error) {
        self.0 += 1;
    }
}

#[test]
fn twice_the_input_is_twice_the_calls() {
    for piece in [",", "m,", "m \n", "a=\"\n", "m f=\"x\n\"y\n", "m,t=1 f=1,", "\\\n", "m f=1\n"] {
        let calls = |times: usize| {
            let mut calls = Calls::default();
            arc_lp::parse(piece.repeat(times).as_bytes(), &mut calls);
            calls.0
        };
        let (once, twice) = (calls(LENGTH), calls(2 * LENGTH));
        assert!(twice <= 2 * once + 4, "{piece}: {once}, {twice}");
    }
}
