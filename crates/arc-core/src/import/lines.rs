//! Line protocol in pieces: whole records, as many as fit.
//!
//! Finds where records end, which is not at every line feed, and which measurements and times they
//! have. What is wrong with a line is found by the caller that stores it.

use std::io::{BufRead, Read};

use arc_lp::{Chunks, ResumableSink, Series, Sink, Text};
use bytes::Bytes;

use super::{FileChunk, ImportBody, ImportOptions, ImportWrite, report::Extent, source::ImportSource};
use crate::{Error, Result, ingest::BYTE_ORDER_MARK};

/// Reads all of `source`, and hands over piece after piece until `emit` says to stop.
pub(super) fn read(
    source: &ImportSource,
    options: &ImportOptions,
    emit: &mut dyn FnMut(FileChunk) -> bool,
) -> Result<()> {
    let mut bytes = source.read()?;
    let failed = |error| Error::io("read", &source.name, error);
    if bytes.fill_buf().map_err(failed)?.starts_with(BYTE_ORDER_MARK) {
        bytes.consume(BYTE_ORDER_MARK.len());
    }
    let (mut buffer, mut offset, mut line) = (Vec::new(), 0_u64, 1_u64);
    let mut wanted = options.chunk_bytes;
    let longest = options.longest_record();
    loop {
        let is_end = fill(&mut *bytes, &mut buffer, wanted).map_err(failed)?;
        let mut seen = Seen::new(options);
        let (end, lines) = match whole_records(&buffer, &mut seen, is_end) {
            (0, _) if !is_end && buffer.len() < longest => {
                wanted = (buffer.len() * 2).min(longest);
                continue;
            }
            // A string that is never closed, or not for long: up to the last line feed it is one
            // bad record.
            (0, _) if !is_end => match buffer.iter().rposition(|byte| *byte == b'\n') {
                Some(at) => (at + 1, newlines(&buffer)),
                None => return Err(source.bad(format!("line {line} is longer than {} bytes", buffer.len()))),
            },
            whole => whole,
        };
        let extent = seen.extent;
        // As large as this piece: a buffer that grows while it is read into is copied, and takes
        // fresh pages, twice.
        let mut rest = Vec::with_capacity(if is_end { 0 } else { buffer.len() });
        rest.extend_from_slice(buffer.get(end..).unwrap_or_default());
        buffer.truncate(end);
        let piece = std::mem::replace(&mut buffer, rest);
        let length = piece.len() as u64;
        if length > 0 {
            let lines = Bytes::from(match options.table.as_deref() {
                Some(measurement) => only(&piece, measurement),
                None => piece,
            });
            let write = options.write(source.format, source.key(options, offset));
            let write =
                ImportWrite { database: options.database.clone(), body: ImportBody::Lines(lines), options: write };
            let chunk = FileChunk { first_row: line, position: source.position(), extent, ..FileChunk::of(write) };
            if !emit(chunk) {
                return Ok(());
            }
        }
        if is_end {
            return Ok(());
        }
        offset += length;
        line += lines;
        wanted = options.chunk_bytes;
    }
}

/// Reads until there are `wanted` bytes; returns whether there are no more.
fn fill(bytes: &mut dyn BufRead, buffer: &mut Vec<u8>, wanted: usize) -> std::io::Result<bool> {
    let missing = wanted.saturating_sub(buffer.len());
    let read = bytes.take(missing as u64).read_to_end(buffer)?;
    Ok(read < missing)
}

/// Returns how many bytes of `buffer` are whole records, and how many lines; at the end of the file
/// all are.
fn whole_records<'a>(buffer: &'a [u8], seen: &mut Seen<'a>, is_end: bool) -> (usize, u64) {
    let mut chunks = Chunks::new();
    let done = chunks.parse(buffer, seen);
    if !is_end {
        return (done, chunks.lines());
    }
    let summary = chunks.finish(buffer.get(done..).unwrap_or_default(), seen);
    (buffer.len(), summary.lines)
}

fn newlines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// Empties the lines of all points of other measurements. Lines keep their numbers, and bad ones
/// stay.
fn only(piece: &[u8], measurement: &str) -> Vec<u8> {
    let mut kept = Vec::with_capacity(piece.len());
    let mut copied = 0;
    for point in arc_lp::points(piece).flatten().filter(|point| point.measurement().to_cow() != measurement) {
        let range = point.byte_range();
        kept.extend_from_slice(piece.get(copied..range.start).unwrap_or_default());
        let record = piece.get(range.clone()).unwrap_or_default();
        kept.extend(record.iter().filter(|byte| **byte == b'\n'));
        copied = range.end;
    }
    kept.extend_from_slice(piece.get(copied..).unwrap_or_default());
    kept
}

/// What the records of a piece have.
struct Seen<'a> {
    extent: Extent,
    /// Nanoseconds of one unit of the times.
    unit: i64,
    only: Option<&'a str>,
    /// The measurement of the record that is under way, if it is taken.
    open: Option<Text<'a>>,
    last: Option<Text<'a>>,
}

impl<'a> Seen<'a> {
    fn new(options: &'a ImportOptions) -> Self {
        let unit = options.precision.unwrap_or_default().nanoseconds();
        Self { extent: Extent::default(), unit, only: options.table.as_deref(), open: None, last: None }
    }
}

impl<'a> Sink<'a> for Seen<'a> {
    fn series(&mut self, _line: u64, _series_key: &'a [u8]) -> Series {
        self.open = None;
        Series::Unknown
    }

    fn measurement(&mut self, name: Text<'a>) {
        self.open = Some(name).filter(|name| self.only.is_none_or(|only| name.to_cow() == only));
    }

    fn tag(&mut self, _key: Text<'a>, _value: Text<'a>) {}

    fn field(&mut self, _key: Text<'a>, _value: arc_lp::FieldValue<'a>) {}

    fn raw_field(&mut self, _key: Text<'a>, _value: arc_lp::RawValue<'a>) -> Result<(), arc_lp::ErrorKind> {
        Ok(())
    }

    fn point(&mut self, timestamp: Option<i64>) {
        let Some(name) = self.open else { return };
        if self.last.is_none_or(|last| last.raw() != name.raw()) {
            self.extent.tables.insert(name.to_cow().into_owned());
            self.last = Some(name);
        }
        if let Some(time) = timestamp.and_then(|time| time.checked_mul(self.unit)) {
            self.extent.add_time(time);
        }
    }

    fn error(&mut self, _error: arc_lp::Error) {}
}

impl<'a> ResumableSink<'a> for Seen<'a> {
    fn unfinished(&mut self) {}
}
