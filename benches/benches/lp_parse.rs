//! How fast is line protocol read, and how much faster than by the published crate `influxdb-line-protocol`?
//!
//! One core, 8 MB of each corpus of `arc_benches::corpus` in memory, parsed in one call, warm. For each corpus:
//!
//! - `tokens`: the push face, every name and value delivered, numbers left unread;
//! - `values`: the push face with typed values, what `influxdb-line-protocol` gives as well;
//! - `points`: the pull face with typed values;
//! - `influxdb-line-protocol`: its `parse_lines`, every tag and field looked at.
//!
//! Not measured: series that are known (a store answers `Series::Known` and spares most tags), columns, any I/O.
//! `influxdb-line-protocol` wants text that is checked already: its UTF-8 check is not in its time, ours is.

use std::{hint::black_box, time::Duration};

use arc_benches::corpus::Corpus;
use arc_lp::{Error, ErrorKind, FieldValue, RawValue, Series, Sink, Text};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const BYTES: usize = 8_000_000;
const SEED: u64 = 42;

/// Takes everything and keeps a sum, so that nothing can be left out.
#[derive(Default)]
struct Sum {
    sum: usize,
    read_numbers: bool,
}

impl<'a> Sink<'a> for Sum {
    #[inline(always)]
    fn series(&mut self, _line: u64, series_key: &'a [u8]) -> Series {
        self.sum += series_key.len();
        Series::Unknown
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

fn push(text: &[u8], read_numbers: bool) -> usize {
    let mut sink = Sum { sum: 0, read_numbers };
    arc_lp::parse(text, &mut sink);
    sink.sum
}

fn pull(text: &[u8]) -> usize {
    let mut sum = 0;
    for point in arc_lp::points(text).flatten() {
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

fn published(text: &str) -> usize {
    let mut sum = 0;
    for line in influxdb_line_protocol::parse_lines(text).flatten() {
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

fn lp_parse(criterion: &mut Criterion) {
    for corpus in Corpus::ALL {
        let text = String::from_utf8(corpus.generate(SEED, BYTES)).unwrap_or_default();
        let mut group = criterion.benchmark_group(format!("lp_parse/{}", corpus.name()));
        group.throughput(Throughput::BytesDecimal(text.len() as u64));
        group.sample_size(10).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(2));
        group.bench_function(BenchmarkId::from_parameter("tokens"), |b| b.iter(|| push(text.as_bytes(), false)));
        group.bench_function(BenchmarkId::from_parameter("values"), |b| b.iter(|| push(text.as_bytes(), true)));
        group.bench_function(BenchmarkId::from_parameter("points"), |b| b.iter(|| pull(text.as_bytes())));
        group.bench_function(BenchmarkId::from_parameter("influxdb-line-protocol"), |b| b.iter(|| published(&text)));
        group.finish();
    }
}

criterion_group!(benches, lp_parse);
criterion_main!(benches);
