use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::{
    buffer::{Plain, Rows, Scalar},
    ingest::staged::{Context, Staged, TableIndex},
    model::{Column, ColumnKind, TableSchema, tag_type},
    registry::{Database, Table},
};

/// A value as it is, bit by bit.
#[derive(Debug, Clone, PartialEq)]
enum V {
    None,
    Float(u64),
    Integer(i64),
    Unsigned(u64),
    Boolean(bool),
    Text(String),
}

/// Rows of one table: tags, time, and the values of five columns, one of each type.
type Row = (Vec<Option<String>>, i64, Vec<V>);

const TYPES: [DataType; 5] = [DataType::Float64, DataType::Int64, DataType::UInt64, DataType::Boolean, DataType::Utf8];

fn database() -> Arc<Database> {
    Arc::new(Database::new("d", 0, true))
}

/// Stages rows of the table `m` the way decoders do.
fn staged(database: &Arc<Database>, has_primary_key: bool, rows: &[Row]) -> Staged {
    let (mut staged, mut index) = (Staged::new(database), TableIndex::default());
    let at = index.by_name(&mut staged, "m", has_primary_key).unwrap();
    let table = &mut staged.tables[at];
    for (tags, time, values) in rows {
        for (field, value) in values.iter().enumerate() {
            let value = match value {
                V::None => continue,
                V::Float(bits) => Scalar::Float(f64::from_bits(*bits)),
                V::Integer(value) => Scalar::Integer(*value),
                V::Unsigned(value) => Scalar::Unsigned(*value),
                V::Boolean(value) => Scalar::Boolean(*value),
                V::Text(value) => Scalar::Text(value),
            };
            let (name, data_type) = (format!("f{field}"), TYPES[field].clone());
            let column = table.position(&name).unwrap_or_else(|| table.add(&name, ColumnKind::Field, data_type));
            table.set(column, value).unwrap();
        }
        let tags: Vec<(String, &str)> =
            (0..).zip(tags).filter_map(|(n, tag)| Some((format!("t{n}"), tag.as_deref()?))).collect();
        for (name, _) in tags.iter().filter(|_| has_primary_key) {
            if table.position(name).is_none() {
                table.add(name, ColumnKind::Tag, tag_type());
            }
        }
        let tags = tags.iter().map(|(name, value)| (name.as_str(), *value));
        let series = has_primary_key.then(|| table.table.series.write().resolve(tags).unwrap());
        table.rows.end_row(*time, series);
    }
    staged
}

/// Returns the rows of what was decoded.
fn shown(staged: &Staged) -> Vec<Row> {
    let table = &staged.tables[0];
    let index = table.table.series.read();
    let value = |rows: &Rows, field: usize, row: usize| {
        let Some(values) = table.position(&format!("f{field}")).and_then(|column| rows.values(column)) else {
            return V::None;
        };
        let is_set = |words: &[u64]| words[row / 64] >> (row % 64) & 1 == 1;
        if row >= values.len() || !values.present().is_none_or(is_set) {
            return V::None;
        }
        match values.plain().unwrap() {
            Plain::Float(values) => V::Float(values[row].to_bits()),
            Plain::Integer(values) => V::Integer(values[row]),
            Plain::Unsigned(values) => V::Unsigned(values[row]),
            Plain::Boolean(words) => V::Boolean(is_set(words)),
            Plain::Text(ends, bytes) => {
                let start = row.checked_sub(1).map_or(0, |before| ends[before]);
                let bytes = &bytes[usize::try_from(start).unwrap()..usize::try_from(ends[row]).unwrap()];
                V::Text(String::from_utf8(bytes.to_vec()).unwrap())
            }
        }
    };
    let tag = |series: Option<&u32>, name: String| {
        let tag = index.tags().find(|tag| tag.name() == name)?;
        tag.number(*series?).map(|number| tag.value(number).to_owned())
    };
    let rows = &table.rows;
    let row = |row: usize| {
        let tags = (0..3).map(|n| tag(rows.series.get(row), format!("t{n}"))).collect();
        (tags, rows.time[row], (0..TYPES.len()).map(|field| value(rows, field, row)).collect())
    };
    (0..rows.len()).map(row).collect()
}

fn encode(staged: &Staged) -> Bytes {
    Encoders::default().encode(staged, usize::MAX).unwrap()
}

fn decode_new(body: &[u8]) -> Result<Staged, String> {
    decode(body, &Context::plain(&database())).map_err(|e| e.to_string())
}

fn any_row() -> impl Strategy<Value = Row> {
    let tags = prop::collection::vec(prop::option::of("[a-cü]{0,2}"), 3);
    let integer = prop_oneof![any::<i64>(), -3..3_i64, Just(i64::MIN), Just(i64::MAX)];
    let unsigned = prop_oneof![any::<u64>(), 0..300_u64, Just(u64::MAX)];
    let special = [f64::NAN, -f64::NAN, -0.0, f64::INFINITY, f64::MIN_POSITIVE / 2.0, 1.5];
    let float = prop_oneof![any::<u64>(), prop::sample::select(special.map(f64::to_bits).to_vec())];
    let text = prop_oneof![20 => ".{0,8}", 1 => Just("x".repeat(300)), 1 => Just("ü".repeat(40_000))];
    let time = prop_oneof![any::<i64>(), 0..1_000_i64];
    fn or_none<T: Clone + std::fmt::Debug>(of: impl Strategy<Value = T>, make: fn(T) -> V) -> impl Strategy<Value = V> {
        prop::option::weighted(0.8, of).prop_map(move |value| value.map_or(V::None, make))
    }
    let values = (
        or_none(float, V::Float),
        or_none(integer, V::Integer),
        or_none(unsigned, V::Unsigned),
        or_none(any::<bool>(), V::Boolean),
        or_none(text, V::Text),
    );
    (tags, time, values).prop_map(|(tags, time, (a, b, c, d, e))| (tags, time, vec![a, b, c, d, e]))
}

proptest! {
    #[test]
    fn rows_come_back_bit_by_bit(rows in prop::collection::vec(any_row(), 1..150), has_primary_key: bool) {
        let staged = staged(&database(), has_primary_key, &rows);
        let found = decode_new(&encode(&staged)).unwrap();
        prop_assert_eq!(shown(&found), shown(&staged));
        let names = |staged: &Staged| staged.tables[0].grown_schema().columns.clone();
        prop_assert_eq!(names(&found), names(&staged), "a repair makes the columns that the write made");
    }

    #[test]
    fn any_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode_new(&bytes);
    }
}

/// Bodies with all that there may be in one.
fn bodies() -> Vec<Bytes> {
    let row = |n: i64| {
        let tag = |every: i64| (n % every == 0).then(|| format!("v{}", n % 7));
        let value = |field: usize| match field {
            0 => V::Float(n.cast_unsigned() << 40),
            1 => V::Integer(n * 1_000),
            2 if n % 3 == 0 => V::None,
            2 => V::Unsigned(n.cast_unsigned()),
            3 => V::Boolean(n % 2 == 0),
            _ => V::Text("ü".repeat(usize::try_from(n % 4).unwrap())),
        };
        (vec![tag(1), tag(2), None], n * 1_000_000, (0..5).map(value).collect())
    };
    let rows: Vec<Row> = (0..20).map(row).collect();
    [true, false].map(|has_primary_key| encode(&staged(&database(), has_primary_key, &rows))).to_vec()
}

#[test]
fn a_body_that_is_cut_or_longer_is_refused() {
    for body in bodies() {
        assert_eq!(decode_new(&body).unwrap().points(), 20);
        for len in 0..body.len() {
            assert!(decode_new(&body[..len]).is_err(), "{len} bytes");
        }
        assert!(decode_new(&[&body[..], b"\0"].concat()).unwrap_err().contains("something follows"));
    }
}

#[test]
fn a_body_with_another_byte_anywhere_never_panics() {
    for body in bodies() {
        for at in 0..body.len() {
            for mask in [1, 2, 0x0f, 0x80, 0xff] {
                let mut body = body.to_vec();
                body[at] ^= mask;
                let Ok(staged) = decode_new(&body) else { continue };
                for table in staged.tables {
                    table.rows.into_chunk().unwrap();
                }
            }
        }
    }
}

/// A row of the table `m` with the tag `t` and the float `x`.
const SMALL: &[&[u8]] = &[
    b"\x01\x01m\x01",
    b"\x02\x00\x01t\x01\x01x",
    b"\x01\x01\x01v\x01",
    b"\x01\x01\x01\0\0\0\0\0\0\0\0\x05",
    b"\x00\x01\x01\x01\x01\x00\0\0\0\0\0\0\xf0\x3f",
];

#[test]
fn what_is_wrong_is_named() {
    let small = SMALL.concat();
    let found = decode_new(&small).unwrap();
    assert_eq!(found.tables[0].rows.time, [5]);
    assert_eq!(found.tables[0].rows.values(1).unwrap().plain(), Some(Plain::Float(&[1.0])));
    let cases: [(usize, usize, u8, &str); 17] = [
        (0, 0, 0xff, "the name of a table should have"),
        (0, 1, 0x70, "the name of a table should have 112 bytes"),
        (0, 2, 0x01, "invalid measurement name"),
        (0, 3, 0x02, "a flag is 2"),
        (0, 3, 0x00, "column \"t\": it is a tag of a table that appends"),
        (1, 1, 0x09, "there is no type 9"),
        (1, 3, b'x', "column \"x\": a tag is a field"),
        (1, 6, 0xff, "the name of a column is not UTF-8"),
        (2, 0, 0x00, "the series of a row is number 5, and there are 0"),
        (2, 4, 0x02, "a value of a tag is number 2, and there are 2"),
        (3, 1, 0x00, "there is a block without rows"),
        (3, 2, 0x09, "numbers have a width of 9 bytes"),
        (4, 0, 0x01, "the series of a row is number 1, and there are 1"),
        (4, 2, 0x00, "there is no field 0"),
        (4, 3, 0x04, "column \"x\": it is Float64, and has values of Boolean"),
        (4, 4, 0x02, "there are 2 values for 1 rows"),
        (4, 5, 0x02, "a flag is 2"),
    ];
    for (part, at, byte, expected) in cases {
        let mut parts: Vec<Vec<u8>> = SMALL.iter().map(|part| part.to_vec()).collect();
        parts[part][at] = byte;
        let reason = decode_new(&parts.concat()).unwrap_err();
        assert!(reason.contains(expected), "{part}, {at}: {reason}");
    }
}

#[test]
fn a_table_of_the_other_kind_and_a_narrower_column_are_refused() {
    for (has_primary_key, data_type, expected) in [
        (false, DataType::Float64, "it is of the other kind"),
        (true, DataType::Int64, "column \"x\": it is Int64, and was Float64"),
        (true, DataType::Utf8, ""),
    ] {
        let db = database();
        let columns = vec![Column { name: "x".into(), kind: ColumnKind::Field, data_type }];
        let schema = TableSchema { database: "d".into(), table: "m".into(), has_primary_key, columns };
        db.add(Arc::new(Table::new(schema)));
        let found = decode(&SMALL.concat(), &Context::plain(&db)).map_err(|e| e.to_string());
        match found {
            Ok(staged) => {
                let values = staged.tables[0].rows.values(0).unwrap();
                assert_eq!((values.plain(), expected), (Some(Plain::Text(&[1], b"1")), ""));
            }
            Err(reason) => assert!(!expected.is_empty() && reason.contains(expected), "{reason}"),
        }
    }
}
