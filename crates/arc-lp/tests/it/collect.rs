//! Records with nothing borrowed, so that the faces and the naive parser can be compared.

use arc_lp::{Dialect, Error, ErrorKind, FieldValue, Point, Series, Sink, SplitPoint, Text, Token};
use std::collections::HashSet;

/// A field value that compares floats by their bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Float(u64),
    Integer(i64),
    Unsigned(u64),
    Boolean(bool),
    String(String),
}

impl From<FieldValue<'_>> for Value {
    fn from(value: FieldValue<'_>) -> Self {
        match value {
            FieldValue::Float(value) => Self::Float(value.to_bits()),
            FieldValue::Integer(value) => Self::Integer(value),
            FieldValue::Unsigned(value) => Self::Unsigned(value),
            FieldValue::Boolean(value) => Self::Boolean(value),
            FieldValue::String(value) => Self::String(value.to_string()),
            other => panic!("a new type of value: {other:?}"),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) line: u64,
    pub(crate) series_key: Vec<u8>,
    pub(crate) measurement: String,
    pub(crate) tags: Vec<(String, String)>,
    pub(crate) fields: Vec<(String, Value)>,
    pub(crate) timestamp: Option<i64>,
}

pub(crate) type Outcome = Result<Record, Error>;

/// All records through the pull face.
pub(crate) fn pulled(input: &[u8]) -> Vec<Outcome> {
    pulled_with(input, Dialect::new())
}

pub(crate) fn pulled_with(input: &[u8], dialect: Dialect) -> Vec<Outcome> {
    arc_lp::points_with(input, dialect).map(|point| Ok(owned(&point?))).collect()
}

fn owned(point: &Point<'_>) -> Record {
    let text = |text: Text<'_>| text.to_string();
    Record {
        line: point.line(),
        series_key: point.series_key().to_vec(),
        measurement: text(point.measurement()),
        tags: point.tags().map(|(key, value)| (text(key), text(value))).collect(),
        fields: point.fields().map(|(key, value)| (text(key), value.into())).collect(),
        timestamp: point.timestamp(),
    }
}

/// All records through the pull face with a scratch that has room for `tokens`.
pub(crate) fn split_with(input: &[u8], dialect: Dialect, tokens: usize) -> Vec<Outcome> {
    let mut scratch = vec![Token::default(); tokens];
    let mut points = arc_lp::split_points_with(input, scratch.as_mut_slice(), dialect);
    let mut outcomes = Vec::new();
    while let Some(point) = points.next_point() {
        outcomes.push(point.map(|point| owned_split(&point)));
    }
    outcomes
}

fn owned_split(point: &SplitPoint<'_, '_>) -> Record {
    let text = |text: Text<'_>| text.to_string();
    let tags = point.tags().map(|(key, value)| (text(key), text(value)));
    let fields = point.fields().rev().map(|(key, value)| (text(key), value.into()));
    let mut fields: Vec<_> = fields.collect();
    fields.reverse();
    assert_eq!(point.fields().len(), fields.len());
    Record {
        line: point.line(),
        series_key: point.series_key().to_vec(),
        measurement: text(point.measurement()),
        tags: tags.collect(),
        fields,
        timestamp: point.timestamp(),
    }
}

/// The same with a scratch too small for most, which must make no other difference than to refuse
/// those.
pub(crate) fn assert_small_scratch(input: &[u8], dialect: Dialect, expected: &[Outcome]) {
    let found = split_with(input, dialect, 2);
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        match (found, expected) {
            (Err(error), Ok(record)) => {
                assert_eq!((error.kind(), error.line()), (ErrorKind::TooManyTokens, record.line));
                assert!(error.offset() < input.len());
                assert!(record.tags.len() + record.fields.len() > 2);
            }
            _ => assert_eq!(found, expected),
        }
    }
}

/// The good records through the pull face, but for where they stand and how they are spelled.
pub(crate) fn meanings(input: &[u8]) -> Vec<Record> {
    let strip = |record| Record { line: 0, series_key: Vec::new(), ..record };
    pulled(input).into_iter().flatten().map(strip).collect()
}

/// All records through the push face.
pub(crate) fn pushed(input: &[u8]) -> Vec<Outcome> {
    pushed_with(input, Dialect::new())
}

pub(crate) fn pushed_with(input: &[u8], dialect: Dialect) -> Vec<Outcome> {
    let mut all = All::default();
    let summary = arc_lp::parse_with(input, dialect, &mut all);
    let points = all.done.iter().filter(|outcome| outcome.is_ok()).count();
    assert_eq!(summary.points, points as u64);
    assert_eq!(summary.errors, (all.done.len() - points) as u64);
    assert_eq!(summary.lines, lines(input));
    all.done
}

fn lines(input: &[u8]) -> u64 {
    let feeds = input.iter().filter(|&&byte| byte == b'\n').count();
    let is_open = !input.is_empty() && input.last() != Some(&b'\n');
    feeds as u64 + u64::from(is_open)
}

#[derive(Default)]
pub(crate) struct All {
    current: Record,
    pub(crate) done: Vec<Outcome>,
}

impl<'a> Sink<'a> for All {
    fn series(&mut self, line: u64, series_key: &'a [u8]) -> Series {
        assert!(!series_key.is_empty());
        let series_key = series_key.to_vec();
        self.current = Record { line, series_key, ..Record::default() };
        Series::Unknown
    }

    fn measurement(&mut self, name: Text<'a>) {
        self.current.measurement = name.to_string();
    }

    fn tag(&mut self, key: Text<'a>, value: Text<'a>) {
        self.current.tags.push((key.to_string(), value.to_string()));
    }

    fn field(&mut self, key: Text<'a>, value: FieldValue<'a>) {
        self.current.fields.push((key.to_string(), value.into()));
    }

    fn point(&mut self, timestamp: Option<i64>) {
        self.current.timestamp = timestamp;
        self.done.push(Ok(std::mem::take(&mut self.current)));
    }

    fn error(&mut self, error: Error) {
        assert_eq!(error.line(), self.current.line);
        self.done.push(Err(error));
    }
}

/// The fields, timestamps and errors through a push face that knows each series it saw before.
pub(crate) fn pushed_with_cache(input: &[u8], dialect: Dialect) -> Vec<Outcome> {
    let mut cached = Cached::default();
    arc_lp::parse_with(input, dialect, &mut cached);
    cached.all.done
}

#[derive(Default)]
struct Cached {
    all: All,
    known: HashSet<Vec<u8>>,
    is_known: bool,
}

impl<'a> Sink<'a> for Cached {
    fn series(&mut self, line: u64, series_key: &'a [u8]) -> Series {
        self.all.series(line, series_key);
        self.is_known = self.known.contains(series_key);
        if self.is_known { Series::Known } else { Series::Unknown }
    }

    fn measurement(&mut self, _: Text<'a>) {
        assert!(!self.is_known);
    }

    fn tag(&mut self, _: Text<'a>, _: Text<'a>) {
        assert!(!self.is_known);
    }

    fn field(&mut self, key: Text<'a>, value: FieldValue<'a>) {
        self.known.insert(self.all.current.series_key.clone());
        self.all.field(key, value);
    }

    fn point(&mut self, timestamp: Option<i64>) {
        self.all.point(timestamp);
    }

    fn error(&mut self, error: Error) {
        self.all.error(error);
    }
}
