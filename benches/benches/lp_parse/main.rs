//! How fast is line protocol read, and how much faster than by the published crate
//! `influxdb-line-protocol`?
//!
//! Processor time of one thread; 8 MB of each corpus of `arc_benches::corpus` in memory, in pieces
//! of 1 MiB cut at record ends, warm, again and again. `faces` says what is measured of the parser,
//! `columns` what of the engine's decoder (feature `engine`).
//!
//! Also prints, and writes to `$CRITERION_HOME/allocations.json` if that is set, how often each
//! face allocates for a record, on a pass after a first one; the parser's own faces must not
//! allocate at all.
//!
//! Not measured: any I/O. `influxdb-line-protocol` wants text that is checked already: its UTF-8
//! check is not in its time, ours is. Memory comes from mimalloc, as in the server.

mod columns;
mod faces;
mod thread_time;

use std::{collections::BTreeMap, time::Duration};

use arc_benches::{
    allocations::{Counting, allocations},
    corpus::Corpus,
    records::{cut, records},
};
use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use mimalloc::MiMalloc;

use thread_time::ThreadClock;

#[global_allocator]
static ALLOCATOR: Counting<MiMalloc> = Counting(MiMalloc);

const BYTES: usize = 8_000_000;
const PIECE_BYTES: usize = 1 << 20;
const SEED: u64 = 42;

/// What one face does with a whole text.
struct Face<'a> {
    name: &'static str,
    /// Whether it may allocate.
    allocates: bool,
    /// Reads the text once and returns a number that depends on all of it.
    pass: Box<dyn FnMut() -> usize + 'a>,
}

/// The pieces of a text.
fn pieces(text: &str) -> Vec<&str> {
    cut(text.as_bytes(), PIECE_BYTES).into_iter().filter_map(|piece| text.get(piece)).collect()
}

fn lp_parse(criterion: &mut Criterion<ThreadClock>) {
    let mut all = BTreeMap::new();
    for corpus in Corpus::ALL {
        let text = String::from_utf8(corpus.generate(SEED, BYTES)).unwrap_or_default();
        let (pieces, records) = (pieces(&text), records(text.as_bytes()).len() as u64);
        faces::report_unread(corpus.name(), &pieces, records);
        let shuffled = columns::shuffled(&text);
        let mut faces = faces::faces(&pieces);
        faces.extend(columns::faces(&pieces, &shuffled));
        for face in &mut faces {
            let a_record = allocations_a_record(face, records);
            println!("lp_parse/{}/{}: {a_record:.4} allocations a record", corpus.name(), face.name);
            all.insert(format!("lp_parse/{}/{}", corpus.name(), face.name), a_record);
        }
        measure(criterion, corpus.name(), &mut faces, records, text.len() as u64);
    }
    if let Some(folder) = std::env::var_os("CRITERION_HOME") {
        let written = serde_json::to_vec_pretty(&all)
            .map_err(std::io::Error::from)
            .and_then(|json| std::fs::write(std::path::Path::new(&folder).join("allocations.json"), json));
        assert!(written.is_ok(), "cannot write allocations.json: {written:?}");
    }
}

fn allocations_a_record(face: &mut Face<'_>, records: u64) -> f64 {
    (face.pass)();
    let count = allocations(|| {
        (face.pass)();
    });
    assert!(face.allocates || count == 0, "{} allocates", face.name);
    count as f64 / records as f64
}

fn measure(criterion: &mut Criterion<ThreadClock>, corpus: &str, faces: &mut [Face<'_>], records: u64, bytes: u64) {
    let mut group = criterion.benchmark_group(format!("lp_parse/{corpus}"));
    group.throughput(Throughput::ElementsAndBytes { elements: records, bytes });
    group.sample_size(50).warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(2));
    group.sampling_mode(SamplingMode::Flat);
    for face in faces {
        group.bench_function(BenchmarkId::from_parameter(face.name), |b| b.iter(&mut face.pass));
    }
    group.finish();
}

criterion_group!(name = benches; config = Criterion::default().with_measurement(ThreadClock); targets = lp_parse);
criterion_main!(benches);
