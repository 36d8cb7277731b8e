//! A short round of each target over changed inputs, the same every time. The inputs are what the
//! golden directories have.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{changed::Random, *};

/// Longest input.
const LENGTH: usize = 16 << 10;

/// Returns the contents of all files below a folder whose path ends so, in an order that does not
/// depend on the file system.
fn files(ending: &str) -> Vec<Vec<u8>> {
    fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() { collect(&entry.path(), found) } else { found.push(entry.path()) }
        }
    }
    let mut paths = Vec::new();
    collect(Path::new("tests/golden"), &mut paths);
    paths.retain(|path| path.to_str().unwrap().ends_with(ending) || path.parent().unwrap().ends_with(ending));
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Returns the bodies of all frames of a kind.
fn bodies(kind: u8) -> Vec<Vec<u8>> {
    let mut bodies = Vec::new();
    for mut segment in files(".wal") {
        let mut at = 0;
        while let Some(end) = with_right_checksums(&mut segment, at).filter(|end| *end > at + 40) {
            let body_len = u32::from_le_bytes(segment[at + 16..at + 20].try_into().unwrap()) as usize;
            if segment[at + 20] == kind {
                bodies.push(segment[end - body_len..end].to_vec());
            }
            at = end.next_multiple_of(8);
        }
    }
    bodies
}

fn check_changes(rounds: usize, inputs: &[Vec<u8>], check: fn(&[u8])) {
    assert!(inputs.len() > 1, "only {} inputs", inputs.len());
    inputs.iter().for_each(|input| check(input));
    let mut random = Random(42);
    (0..rounds).for_each(|_| check(&random.change(inputs, LENGTH)));
}

#[test]
fn any_segment_is_a_log_or_none() {
    check_changes(500, &files(".wal"), log_segment);
}

#[test]
fn any_object_is_a_manifest_or_none() {
    check_changes(3_000, &files("meta/0"), manifest_object);
}

#[test]
fn any_rows_in_the_log_are_rows_or_none() {
    check_changes(3_000, &bodies(19), logged_rows);
}

#[test]
fn any_message_pack_is_stored_as_it_is_decoded_or_refused() {
    check_changes(4_000, &bodies(17), message_pack);
}

#[test]
fn any_record_batches_are_stored_as_they_are_decoded_or_refused() {
    check_changes(2_000, &bodies(18), arrow_stream);
}

#[cfg(feature = "query")]
#[test]
fn any_statement_is_parsed_or_refused() {
    let statements = [
        "SELECT host, avg(x) FILTER (WHERE x > 1.5e3) FROM cpu WHERE time >= now() - INTERVAL '1 hour' GROUP BY 1 ORDER BY 2 LIMIT 5",
        "SELECT a.x, b.y FROM a ASOF JOIN b ON a.host = b.host AND a.time >= b.time WHERE a.s LIKE 'ü%' ESCAPE '!'",
        "WITH t AS (SELECT 1 UNION ALL SELECT $1), u AS (SELECT * FROM t) SELECT CASE WHEN 1 IN (1,2) THEN 'a' || 'b' END FROM u -- end",
        "SHOW COLUMNS FROM \"d\".\"cpu\"",
        "SHOW MEASUREMENTS",
        "SHOW SERIES FROM cpu",
        "EXPLAIN ANALYZE SELECT ((((1))))",
        "INSERT INTO m (time, host, x) VALUES (1, 'a', -0.0), ('2026-01-01', NULL, 'NaN')",
        "INSERT INTO m SELECT * FROM n WHERE x = ?",
        "DELETE FROM cpu WHERE host IN ('a', 'b') AND NOT (time < 5 OR x IS NULL)",
        "DROP TABLE IF EXISTS \"a\"\"b\"",
        "DROP DATABASE d",
        "CREATE TABLE m (time TIMESTAMP, host TAG, x DOUBLE, PRIMARY KEY (time, host)) WITH (on_conflict = 'widen', time_unit = 'us')",
        "CREATE DATABASE d",
        "SELECT /* /* nested */ */ x FROM m WHERE b = TRUE AND s <> E'\\n' AND t BETWEEN DATE '2026-01-01' AND TIMESTAMP '2026-01-02'",
    ];
    let statements = statements.map(|sql| sql.as_bytes().to_vec());
    // As deep as the thread on which statements are planned.
    let checks = std::thread::Builder::new().stack_size(64 << 20);
    checks.spawn(move || check_changes(4_000, &statements, statement)).unwrap().join().unwrap();
}
