//! Rows that are logged in columns come back as they were stored.

use std::cell::RefCell;

use bytes::Bytes;
use proptest::sample::Index;

use super::{parallel::decode_split, *};
use crate::ingest::{Encoders, decode_rows};

/// A write as the log has it: its rows in columns, and the schemas that stood in front of it.
struct Logged {
    seq: u64,
    frame: Option<Bytes>,
    schemas: Vec<TableSchema>,
}

fn schemas(db: &Buffered) -> Vec<TableSchema> {
    db.0.tables().iter().map(|table| TableSchema::clone(&table.schema())).collect()
}

/// Writes bodies cut at positions, as the engine does.
fn write_all(db: &Buffered, bodies: &[(String, Vec<usize>)], types: TypePolicy<'_>) -> Vec<Logged> {
    let encoders = Encoders::default();
    let mut log = Vec::new();
    for (seq, (body, cuts)) in (1..).zip(bodies) {
        let frame = RefCell::new(None);
        db.write_with(seq, body, types, &[], |body, context| {
            let staged = decode_split(body, cuts, 0, context);
            *frame.borrow_mut() = encoders.encode(&staged, usize::MAX);
            assert!(frame.borrow().is_some(), "all that line protocol has can be in columns");
            staged
        });
        log.push(Logged { seq, frame: frame.into_inner(), schemas: schemas(db) });
    }
    log
}

/// Replays a log; with the schemas that the tables have in the end where a flush has put them into
/// the manifest.
fn replay(log: &[Logged], is_flushed: bool) -> Buffered {
    let db = Buffered::new();
    let last = log.last().map(|logged| &logged.schemas);
    for Logged { seq, frame, schemas } in log {
        for schema in last.filter(|_| is_flushed).unwrap_or(schemas) {
            match db.0.table(&schema.table) {
                Some(table) => table.set_schema(Arc::new(schema.clone())),
                None => db.0.add(Arc::new(Table::new(schema.clone()))),
            }
        }
        let frame = frame.clone().unwrap_or_default();
        db.write_with(*seq, "", TypePolicy::Logged, &[], |_, context| {
            let staged = decode_rows(&frame, context).unwrap();
            assert!(!staged.tables.iter().any(StagedTable::changes_schema), "the schemas stand in front of it");
            staged
        });
    }
    db
}

proptest! {
    #[test]
    fn rows_in_columns_are_replayed_as_they_were_stored(
        requests in prop::collection::vec(
            (prop::collection::vec((any_line(), 0i64..30), 1..30), prop::collection::vec(any::<Index>(), 0..4)),
            1..6,
        ),
        widens: bool,
    ) {
        let types = ColumnTypes::new().on_conflict(OnConflict::Widen).string_columns(["long*1"]);
        let types = if widens { TypePolicy::Settings(&types) } else { TypePolicy::STRICT };
        let request = |(lines, cuts): &(Vec<(String, i64)>, Vec<Index>)| {
            let lines: Vec<String> = lines.iter().map(|(line, time)| format!("{line} {time}\n")).collect();
            let mut cuts: Vec<usize> =
                cuts.iter().map(|cut| lines.iter().take(cut.index(lines.len())).map(String::len).sum()).collect();
            cuts.sort_unstable();
            cuts.dedup();
            (lines.concat(), cuts)
        };
        let live = Buffered::new();
        let log = write_all(&live, &requests.iter().map(request).collect::<Vec<_>>(), types);
        let expected = live.rows();
        for is_flushed in [false, true] {
            let replayed = replay(&log, is_flushed);
            prop_assert_eq!(&replayed.rows(), &expected);
            prop_assert_eq!(schemas(&replayed), schemas(&live));
        }
    }
}
