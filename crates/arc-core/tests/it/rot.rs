//! Bits that rot: of a data file in which one has flipped a query answers what was stored, or an
//! error that names the file.

use std::{fs, path::Path, time::Duration};

use arc_core::{Engine, ErrorKind, Options};
use arrow::{array::RecordBatch, util::pretty::pretty_format_batches};

use crate::support::{query, quiet, write};

/// Reads all columns, some of the rows by time or by a column, and the newest ones: each has a way
/// of its own to the file.
const QUESTIONS: [&str; 5] = [
    "SELECT * FROM m ORDER BY time",
    "SELECT sum(f), max(i), count(s), count(b), min(s), count(host) FROM m",
    "SELECT f, i FROM m WHERE time > '1970-01-01T00:00:00.000000003Z' AND host = 'h1' ORDER BY time",
    "SELECT i, s FROM m WHERE i = 7 ORDER BY time",
    "SELECT host, max(time), last_value(f ORDER BY time) FROM m GROUP BY host ORDER BY host",
];

/// Rows that make a file which is read in parts.
const LARGE_ROWS: u64 = 9_000;

fn open(path: &Path) -> Engine {
    let mut options = Options::default();
    options.wal_segment_bytes = 64 << 10;
    (options.pack_tables, options.pack_bytes) = (3, 4 << 10);
    quiet(path).options(options).compaction(false).flush_after(Duration::from_secs(1 << 30)).open().unwrap()
}

fn rows(count: u64) -> String {
    let row = |n: u64| {
        let mixed = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let float = (mixed >> 12) as f64 / 1024.0;
        format!(
            "m,host=h{} f={float},i={}i,s=\"text {}\",b={} {n}\n",
            n % 3,
            mixed >> 40,
            mixed % 977,
            n.is_multiple_of(2)
        )
    };
    (0..count).map(row).collect()
}

fn text(batches: &[RecordBatch]) -> String {
    pretty_format_batches(batches).unwrap().to_string()
}

/// The right answers, and the file that they are read from.
struct Stored {
    dir: tempfile::TempDir,
    /// The file on disk, and as errors name it.
    path: std::path::PathBuf,
    name: String,
    expected: Vec<String>,
}

impl Stored {
    /// Stores so many rows, beside other tables or alone: then in a file that is read whole only if
    /// they are few.
    fn new(count: u64, others: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("data");
        let engine = open(&root);
        write(&engine, "d", &rows(count));
        (0..others).for_each(|table| write(&engine, "d", &format!("other{table} v=1 1\n")));
        let files = engine.flush().unwrap().files;
        let name = files.into_iter().find(|file| others > 0 || file.contains("/m/")).unwrap();
        let on_disk = name.split_once(".pack/").map_or(name.clone(), |(pack, _)| format!("{pack}.pack"));
        let ask = |sql: &&str| text(&query(&engine, "d", sql).unwrap());
        let expected = QUESTIONS.iter().map(ask).collect();
        engine.close().unwrap();
        let stored = Self { path: root.join(&on_disk), name: on_disk, dir, expected };
        assert_eq!(stored.bytes() > 64 << 10, count == LARGE_ROWS, "{} bytes", stored.bytes());
        stored
    }

    /// Asks all questions, and returns how many were refused.
    fn check(&self, engine: &Engine, at: usize) -> usize {
        let mut refused = 0;
        for (sql, expected) in QUESTIONS.iter().zip(&self.expected) {
            match query(engine, "d", sql) {
                Ok(batches) => assert_eq!(text(&batches), *expected, "byte {at}: {sql}"),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corrupt, "byte {at}: {sql}: {error}");
                    assert!(error.to_string().contains(&self.name), "byte {at}: {sql}: {error}");
                    refused += 1;
                }
            }
        }
        refused
    }

    /// Flips a bit in each of these bytes in turn, before the directory is opened or while it is.
    fn flip(&self, bytes: impl Iterator<Item = usize>, while_open: bool) -> usize {
        let whole = fs::read(&self.path).unwrap();
        let root = self.dir.path().join("data");
        let mut refused = 0;
        for at in bytes.take_while(|at| *at < whole.len()) {
            let engine = while_open.then(|| open(&root));
            if let Some(engine) = &engine {
                assert_eq!(self.check(engine, at), 0);
            }
            let mut rotten = whole.clone();
            rotten[at] ^= 1 << (at % 8);
            fs::write(&self.path, rotten).unwrap();
            let engine = engine.unwrap_or_else(|| open(&root));
            refused += usize::from(self.check(&engine, at) > 0);
            engine.close().unwrap();
            fs::write(&self.path, &whole).unwrap();
        }
        let engine = open(&root);
        assert_eq!(self.check(&engine, 0), 0, "whole again");
        refused
    }

    fn bytes(&self) -> usize {
        usize::try_from(fs::metadata(&self.path).unwrap().len()).unwrap()
    }
}

#[test]
fn a_flipped_bit_in_a_small_file_is_an_error_that_names_it() {
    let stored = Stored::new(40, 0);
    assert!(stored.name.ends_with(".parquet"));
    let step = stored.bytes() / 50 + 1;
    assert_eq!(stored.flip((0..).step_by(step), false), stored.bytes().div_ceil(step));
}

#[test]
fn a_flipped_bit_in_a_packed_file_is_an_error_that_names_the_pack() {
    let stored = Stored::new(20, 4);
    assert!(stored.name.ends_with(".pack"));
    let step = stored.bytes() / 50 + 1;
    // Some are of other tables, and of what says whose they are.
    assert!(stored.flip((0..).step_by(step), false) > 5);
}

#[test]
fn a_flipped_bit_in_a_large_file_is_an_error_to_all_who_read_it() {
    let stored = Stored::new(LARGE_ROWS, 0);
    let step = stored.bytes() / 24 + 1;
    assert_eq!(stored.flip((0..).step_by(step), false), stored.bytes().div_ceil(step));
    // The checksums of blocks, the page indexes and the footer.
    let end = stored.bytes() - 4_000;
    assert_eq!(stored.flip((end..).step_by(331), false), 4_000_usize.div_ceil(331));
}

#[test]
fn a_bit_that_flips_after_the_file_was_read_is_found_by_the_next_read() {
    let stored = Stored::new(LARGE_ROWS, 0);
    // Footer and checksums are remembered: what they said when they were whole counts.
    let data = stored.bytes() - 6_000;
    let step = data / 10 + 1;
    assert_eq!(stored.flip((0..data).step_by(step), true), data.div_ceil(step));
    stored.flip((data..).step_by(997), true);
    let small = Stored::new(40, 0);
    small.flip((0..).step_by(307), true);
}
