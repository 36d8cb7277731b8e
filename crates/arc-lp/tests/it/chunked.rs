//! A body in pieces is parsed like the body in one.

use crate::collect::{All, Outcome, Record, pushed};
use arc_lp::{Chunks, Error, ErrorKind, FieldValue, ResumableSink, Series, Sink, Text};

/// Where a record is bad: its line, the kind, and the site in the whole body.
type BadRecord = (u64, ErrorKind, usize);

/// Collects records, and errors with their site in the whole body.
#[derive(Default)]
struct Body {
    all: All,
    errors: Vec<BadRecord>,
    chunk_start: usize,
    is_open: bool,
}

impl<'a> Sink<'a> for Body {
    fn series(&mut self, line: u64, series_key: &'a [u8]) -> Series {
        assert!(!self.is_open);
        self.is_open = true;
        self.all.series(line, series_key)
    }
    fn measurement(&mut self, name: Text<'a>) {
        self.all.measurement(name);
    }
    fn tag(&mut self, key: Text<'a>, value: Text<'a>) {
        self.all.tag(key, value);
    }
    fn field(&mut self, key: Text<'a>, value: FieldValue<'a>) {
        self.all.field(key, value);
    }
    fn point(&mut self, timestamp: Option<i64>) {
        self.is_open = false;
        self.all.point(timestamp);
    }
    fn error(&mut self, error: Error) {
        self.is_open = false;
        let offset = self.chunk_start + error.offset();
        self.errors.push((error.line(), error.kind(), offset));
        self.all.error(error);
    }
}

impl<'a> ResumableSink<'a> for Body {
    fn unfinished(&mut self) {
        self.is_open = false;
    }
}

pub(crate) fn assert_same(input: &[u8], cuts: &[usize]) {
    let (mut chunks, mut body) = (Chunks::new(), Body::default());
    for &cut in cuts {
        body.chunk_start = chunks.offset();
        let chunk = &input[body.chunk_start..cut.max(body.chunk_start)];
        let done = chunks.parse(chunk, &mut body);
        assert_eq!(chunks.offset(), body.chunk_start + done);
    }
    body.chunk_start = chunks.offset();
    let summary = chunks.finish(&input[body.chunk_start..], &mut body);

    let expected = pushed(input);
    let errors = expected.iter().filter_map(|outcome| outcome.as_ref().err());
    let sites = errors.map(|error| (error.line(), error.kind(), error.offset()));
    assert_eq!(body.errors, sites.collect::<Vec<_>>());
    assert_eq!(good(&body.all.done), good(&expected));
    assert_eq!(summary, arc_lp::parse(input, &mut All::default()));
}

fn good(outcomes: &[Outcome]) -> Vec<&Record> {
    outcomes.iter().filter_map(|outcome| outcome.as_ref().ok()).collect()
}

#[test]
fn a_body_may_be_cut_anywhere() {
    let body = "a f=1 1\r\n# \"\nb,t=\\\n\nc f=\"x\ny\\\"\n\" 2\nbad\nd f=\"\n\"x\ne f=1\nf f=\"never\nclosed";
    for first in 0..=body.len() {
        for second in first..=body.len() {
            assert_same(body.as_bytes(), &[first, second]);
        }
    }
}

/// Gives the record back that begins on a line.
#[derive(Default)]
struct Until {
    body: Body,
    line: u64,
    has_come: bool,
}

impl<'a> Sink<'a> for Until {
    fn series(&mut self, line: u64, series_key: &'a [u8]) -> Series {
        self.has_come = line == self.line;
        self.body.series(line, series_key)
    }
    fn measurement(&mut self, name: Text<'a>) {
        self.body.measurement(name);
    }
    fn tag(&mut self, key: Text<'a>, value: Text<'a>) {
        self.body.tag(key, value);
    }
    fn field(&mut self, key: Text<'a>, value: FieldValue<'a>) {
        self.body.field(key, value);
    }
    fn point(&mut self, timestamp: Option<i64>) {
        if self.has_come { self.body.unfinished() } else { self.body.point(timestamp) }
    }
    fn error(&mut self, error: Error) {
        if self.has_come { self.body.unfinished() } else { self.body.error(error) }
    }
}

impl<'a> ResumableSink<'a> for Until {
    fn unfinished(&mut self) {
        self.body.unfinished();
    }
    fn gives_back(&mut self) -> bool {
        self.has_come
    }
}

#[test]
fn a_record_that_is_given_back_comes_again() {
    let body = b"a f=1 1\n# c\nb f=\"x\ny\" 2\nbad\n\nc f=1 3\n";
    let starts = [(1, 0), (3, 8), (5, 24), (7, 29)];
    for (line, at) in starts {
        let (mut chunks, mut until) = (Chunks::new(), Until { line, ..Until::default() });
        let done = chunks.parse(body, &mut until);
        // What is blank in front of a record may come again with it.
        assert!(done <= at && body[done..at].iter().all(|byte| b"# c\n".contains(byte)), "line {line}: {done}");
        let mut rest = Until::default();
        assert_eq!(chunks.parse(&body[done..], &mut rest), body.len() - done);
        let records = until.body.all.done.len() + rest.body.all.done.len();
        assert_eq!((chunks.offset(), chunks.lines(), records), (body.len(), 7, 4), "line {line}");
    }
}

#[test]
fn parts_of_a_body_add_up() {
    let body = b"a f=1 1\nbad\n\nb f=\"x\ny\" 2\n# c\nc f=1 3";
    let whole = arc_lp::parse(body, &mut All::default());
    for cut in [8, 12, 13, 25, 29] {
        let (mut first, mut second) = (Chunks::new(), Chunks::new());
        assert_eq!(first.parse(&body[..cut], &mut Body::default()), cut);
        second.parse(&body[cut..], &mut Body::default());
        first.append(&second);
        let rest = &body[first.offset()..];
        assert_eq!(first.finish(rest, &mut Body::default()), whole, "cut at {cut}");
    }
}
