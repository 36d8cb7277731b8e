//! Whatever a live engine has accepted survives a kill and is replayed, equal bit by bit.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use proptest::{collection::vec, prelude::*};

use super::{
    contents::contents,
    quiet_in,
    requests::{Columns, Request, Value, make_wide_tables, request},
};
use crate::{
    ColumnTypes, Engine, OnConflict,
    engine::frame::FrameKind,
    model::{Column, ColumnKind, TableSchema},
    vfs::{CrashFs, cases},
};

#[derive(Debug, Clone)]
enum Step {
    Write(Request),
    Flush,
    Kill,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![6 => request().prop_map(Step::Write), 1 => Just(Step::Flush), 1 => Just(Step::Kill)];
    vec(step, 1..8)
}

struct Killed {
    fs: CrashFs,
    engine: Engine,
    widens: bool,
}

impl Killed {
    fn new(widens: bool) -> Self {
        let fs = CrashFs::new();
        let engine = open(&fs, widens);
        Self { fs, engine, widens }
    }

    /// Lets the process die, and opens what it leaves.
    fn kill(&mut self) {
        let before = contents(&self.engine);
        self.fs = CrashFs::from_image(&self.fs.current());
        self.engine = open(&self.fs, self.widens);
        let after = contents(&self.engine);
        let differ = before.iter().zip(&after).find(|(before, after)| before != after);
        assert!(differ.is_none() && before.len() == after.len(), "{} lines, {}: {differ:?}", before.len(), after.len());
    }
}

fn open(fs: &CrashFs, widens: bool) -> Engine {
    let on_conflict = if widens { OnConflict::Widen } else { OnConflict::Reject };
    quiet_in(fs).column_types(ColumnTypes::new().on_conflict(on_conflict)).open().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(24), ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_accepted_survives_a_kill(widens: bool, is_wide: bool, steps in steps()) {
        let mut killed = Killed::new(widens);
        if is_wide {
            make_wide_tables(&killed.engine);
        }
        for step in steps {
            match step {
                Step::Write(request) => drop(request.send(&killed.engine)),
                Step::Flush => drop(killed.engine.flush().unwrap()),
                Step::Kill => killed.kill(),
            }
        }
        killed.kill();
    }
}

#[test]
fn a_type_that_is_nested_is_refused_or_opens_again() {
    let mut accepted = Vec::new();
    for depth in [1, 5, 10, 15, 20, 25, 30, 40, 60, 62, 64, 66, 100] {
        let mut killed = Killed::new(false);
        let nested = |inner: DataType, _| DataType::List(Arc::new(Field::new("item", inner, true)));
        let data_type = (0..depth).fold(DataType::Int64, nested);
        let columns = vec![Column { name: "x".into(), kind: ColumnKind::Field, data_type }];
        let schema = TableSchema { database: "d".into(), table: "m".into(), has_primary_key: false, columns };
        match killed.engine.create_table(&schema) {
            Ok(()) => accepted.push(depth),
            Err(error) => assert!(error.to_string().contains("nested too deep"), "{error}"),
        }
        killed.kill();
    }
    assert!(accepted.contains(&10) && !accepted.contains(&100), "{accepted:?}");
}

/// Returns columns of booleans only, at these positions, of one row for each nanosecond.
fn booleans(table: &'static str, rows: usize, fields: impl Iterator<Item = usize>) -> Columns {
    let values = |field: usize| (0..rows).map(move |row| Value::Boolean((row ^ field).is_multiple_of(3))).collect();
    let times = (0..i64::try_from(rows).unwrap()).collect();
    Columns { table, times, tag: None, fields: fields.map(|field| (field, values(field))).collect() }
}

#[test]
fn few_columns_of_many_rows_in_a_wide_table_are_replayed() {
    let mut killed = Killed::new(false);
    make_wide_tables(&killed.engine);
    let cases = [
        // Signals that stand at the end, once and in several items.
        vec![booleans("wide", 34_000, (0..4).map(|n| 3_982 + 5 * n))],
        vec![booleans("list", 20_000, [3_997, 2].into_iter()), booleans("list", 20_000, [2, 3_997].into_iter())],
    ];
    for columns in cases {
        let rows: usize = columns.iter().map(|columns| columns.times.len()).sum();
        let request = Columns::request(&columns);
        assert_eq!(request.send(&killed.engine), rows as u64);
    }
    killed.kill();
}

/// Returns a record of a table `m` with one field twice, or once.
fn record(table: &str, field: &str, values: &[&[u8]]) -> Vec<u8> {
    let text = |text: &str| [&[0xa0 | u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    let fields = values.iter().flat_map(|value| [text(field), value.to_vec()].concat());
    let count = 0x80 | u8::try_from(values.len()).unwrap();
    let parts = [vec![0x83], text("m"), text(table), text("tags"), vec![0x80], text("fields"), vec![count]];
    parts.concat().into_iter().chain(fields).collect()
}

#[test]
fn a_field_that_comes_twice_has_one_of_its_values_or_is_refused() {
    let number = |mark: u8, value: u64| [&[mark][..], &value.to_be_bytes()].concat();
    let (nan, half) = (number(0xcb, f64::NAN.to_bits()), number(0xcb, 0.5_f64.to_bits()));
    let (one, least) = (number(0xd3, 1), number(0xd3, i64::MIN.cast_unsigned() + 1));
    let (most, text, yes) = (number(0xcf, u64::MAX), vec![0xa1, b'x'], vec![0xc3]);
    let values = [
        (nan, None),
        (half, Some("0.5")),
        (one, Some("1i")),
        (least, Some("-9223372036854775807i")),
        (most, Some("18446744073709551615u")),
        (text, Some("\"x\"")),
        (yes, Some("true")),
    ];
    for widens in [false, true] {
        let mut killed = Killed::new(widens);
        let send = |kind, body: Vec<u8>| Request::new(kind, "", body).send(&killed.engine);
        for home in values.iter().map(Some).chain([None]) {
            for (first, second) in values.iter().flat_map(|first| values.iter().map(move |second| (first, second))) {
                let name = |value: &(Vec<u8>, _)| values.iter().position(|other| other.0 == value.0).unwrap();
                let field = format!("c{}{}", name(first), name(second));
                let table = home.map_or("n".to_owned(), |home| format!("h{}", name(home)));
                if let Some(home) = home {
                    assert_eq!(send(FrameKind::MessagePack, record(&table, &field, &[&home.0])), 1);
                }
                send(FrameKind::MessagePack, record(&table, &field, &[&first.0, &second.0]));
                let ((_, Some(first)), (_, Some(second))) = (first, second) else { continue };
                if let Some((_, Some(home))) = home {
                    send(FrameKind::LineProtocol, format!("l{table} {field}={home} 1").into_bytes());
                }
                send(FrameKind::LineProtocol, format!("l{table} {field}={first},{field}={second} 2").into_bytes());
            }
        }
        killed.kill();
    }
}
