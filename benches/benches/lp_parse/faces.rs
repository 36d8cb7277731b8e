//! The faces of arc-lp, and of the published parser that it is compared with.
//!
//! | face | what is read |
//! | --- | --- |
//! | `tokens` | callbacks: every name and value delivered, numbers left unread |
//! | `tokens-known` | the same where every series is known: tags are not looked at. Finding out is not in the time |
//! | `values` | callbacks with typed values, what `influxdb-line-protocol` gives as well |
//! | `values-known` | the same where every series is known |
//! | `points` | the iterator of `points` with typed values |
//! | `split-points` | the points of `split_points`, parts in a scratch of the caller's, with typed values |
//! | `influxdb-line-protocol` | its `parse_lines`, every tag and field looked at |
//!
//! A new face of arc-lp is a function on a piece and a line in [`faces`].

use std::hint::black_box;

use arc_lp::{Error, ErrorKind, FieldValue, RawValue, Series, Sink, Text, Token};

use super::Face;

/// Reads one piece and returns a number that depends on all of it.
type Read = fn(&str) -> usize;

/// Returns the faces on the pieces of a text.
pub(super) fn faces<'a>(pieces: &'a [&'a str]) -> Vec<Face<'a>> {
    let ours: [(&str, Read); 6] = [
        ("tokens", |piece| push(piece, Series::Unknown, false)),
        ("tokens-known", |piece| push(piece, Series::Known, false)),
        ("values", |piece| push(piece, Series::Unknown, true)),
        ("values-known", |piece| push(piece, Series::Known, true)),
        ("points", points),
        ("split-points", split_points),
    ];
    let face = move |name, allocates, read: Read| Face {
        name,
        allocates,
        pass: Box::new(move || pieces.iter().copied().map(read).sum()),
    };
    let mut faces: Vec<_> = ours.into_iter().map(|(name, read)| face(name, false, read)).collect();
    faces.push(face("influxdb-line-protocol", true, published));
    faces
}

/// Says how many records the published parser refuses: it is done with those sooner.
pub(super) fn report_unread(corpus: &str, pieces: &[&str], records: u64) {
    let read = |piece: &&str| influxdb_line_protocol::parse_lines(piece).flatten().count() as u64;
    let read: u64 = pieces.iter().map(read).sum();
    if read != records {
        println!("lp_parse/{corpus}: influxdb-line-protocol reads {read} of {records} records");
    }
}

/// Takes everything and keeps a sum, so that nothing can be left out.
struct Sum {
    sum: usize,
    answer: Series,
    read_numbers: bool,
}

impl<'a> Sink<'a> for Sum {
    #[inline(always)]
    fn series(&mut self, _line: u64, series_key: &'a [u8]) -> Series {
        self.sum += series_key.len();
        self.answer
    }

    #[inline(always)]
    fn measurement(&mut self, name: Text<'a>) {
        self.sum += name.raw().len();
    }

    #[inline(always)]
    fn tag(&mut self, key: Text<'a>, value: Text<'a>) {
        self.sum += key.raw().len() + value.raw().len();
    }

    #[inline(always)]
    fn field(&mut self, key: Text<'a>, value: FieldValue<'a>) {
        black_box(value);
        self.sum += key.raw().len();
    }

    #[inline(always)]
    fn raw_field(&mut self, key: Text<'a>, value: RawValue<'a>) -> Result<(), ErrorKind> {
        if self.read_numbers {
            self.field(key, value.parse()?);
        } else {
            self.sum += key.raw().len() + value.bytes().len();
        }
        Ok(())
    }

    #[inline(always)]
    fn point(&mut self, timestamp: Option<i64>) {
        black_box(timestamp);
    }

    fn error(&mut self, _error: Error) {}
}

/// [`Series::Known`] is sound here: every series of the corpora is good.
fn push(piece: &str, answer: Series, read_numbers: bool) -> usize {
    let mut sink = Sum { sum: 0, answer, read_numbers };
    arc_lp::parse(piece.as_bytes(), &mut sink);
    sink.sum
}

fn points(piece: &str) -> usize {
    let mut sum = 0;
    for point in arc_lp::points(piece.as_bytes()).flatten() {
        sum += point.measurement().raw().len();
        for (key, value) in point.tags() {
            sum += key.raw().len() + value.raw().len();
        }
        for (key, value) in point.fields() {
            black_box(value);
            sum += key.raw().len();
        }
        black_box(point.timestamp());
    }
    sum
}

fn split_points(piece: &str) -> usize {
    let mut sum = 0;
    let mut scratch = [Token::default(); 64];
    let mut points = arc_lp::split_points(piece.as_bytes(), &mut scratch);
    while let Some(point) = points.next_point() {
        let Ok(point) = point else { continue };
        sum += point.measurement().raw().len();
        for (key, value) in point.tags() {
            sum += key.raw().len() + value.raw().len();
        }
        for (key, value) in point.fields() {
            black_box(value);
            sum += key.raw().len();
        }
        black_box(point.timestamp());
    }
    sum
}

fn published(piece: &str) -> usize {
    let mut sum = 0;
    for line in influxdb_line_protocol::parse_lines(piece).flatten() {
        sum += line.series.measurement.as_str().len();
        for (key, value) in line.series.tag_set.iter().flatten() {
            sum += key.as_str().len() + value.as_str().len();
        }
        for (key, value) in &line.field_set {
            black_box(value);
            sum += key.as_str().len();
        }
        black_box(line.timestamp);
    }
    sum
}
