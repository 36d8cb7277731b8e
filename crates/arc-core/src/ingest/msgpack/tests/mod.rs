//! Tests of the decoder as a whole: what goes in as MessagePack, and what is staged.

mod bad;
mod columns;
mod properties;
mod rows;

use std::sync::Arc;

use arrow::{
    array::{Array, AsArray},
    datatypes::{DataType, Float64Type, Int64Type, TimestampNanosecondType, UInt64Type},
};

use super::decode;
use crate::{
    Precision, Result,
    buffer::ChunkReader,
    ingest::{Context, Staged, StagedTable},
    model::{Column, ColumnKind, TableSchema, tag_type},
    registry::{Database, Table},
};

/// A MessagePack value to send.
#[derive(Debug, Clone)]
enum V {
    Nil,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    Float32(f32),
    Text(&'static str),
    Owned(String),
    Raw(Vec<u8>),
    Bin,
    Ext(i8, Vec<u8>),
    Array(Vec<V>),
    Map(Vec<(&'static str, V)>),
}

use V::{Array as A, Bool as B, Float as F, Int as I, Map as M, Nil as N, Text as T};

impl V {
    fn pack(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.pack_into(&mut out);
        out
    }

    fn pack_into(&self, out: &mut Vec<u8>) {
        match self {
            N => rmp::encode::write_nil(out).unwrap(),
            B(v) => rmp::encode::write_bool(out, *v).unwrap(),
            I(v) => {
                rmp::encode::write_sint(out, *v).unwrap();
            }
            Self::Uint(v) => {
                rmp::encode::write_uint(out, *v).unwrap();
            }
            F(v) => rmp::encode::write_f64(out, *v).unwrap(),
            Self::Float32(v) => rmp::encode::write_f32(out, *v).unwrap(),
            T(v) => rmp::encode::write_str(out, v).unwrap(),
            Self::Owned(v) => rmp::encode::write_str(out, v).unwrap(),
            Self::Raw(v) => out.extend_from_slice(v),
            Self::Bin => rmp::encode::write_bin(out, b"bin").unwrap(),
            Self::Ext(kind, bytes) => {
                rmp::encode::write_ext_meta(out, u32::try_from(bytes.len()).unwrap(), *kind).unwrap();
                out.extend_from_slice(bytes);
            }
            A(values) => {
                rmp::encode::write_array_len(out, u32::try_from(values.len()).unwrap()).unwrap();
                values.iter().for_each(|value| value.pack_into(out));
            }
            M(pairs) => {
                rmp::encode::write_map_len(out, u32::try_from(pairs.len()).unwrap()).unwrap();
                for (key, value) in pairs {
                    rmp::encode::write_str(out, key).unwrap();
                    value.pack_into(out);
                }
            }
        }
    }
}

/// A columnar map.
fn columnar(table: &'static str, columns: Vec<(&'static str, V)>) -> V {
    M(vec![("m", T(table)), ("columns", M(columns))])
}

/// What the tests' requests are decoded against.
struct Given {
    database: Arc<Database>,
    precision: Option<Precision>,
    tags: Vec<String>,
    skip: Vec<u64>,
}

const RECEIVED: i64 = 1_000;

impl Given {
    fn nothing() -> Self {
        let database = Arc::new(Database::new("db", 0, false));
        Self { database, precision: None, tags: Vec::new(), skip: Vec::new() }
    }

    /// A table with the columns `tag: host`, `f`, `i`, `u`, `s`, `b` (the tag only if it is with a
    /// primary key).
    fn table(name: &str, has_primary_key: bool) -> Self {
        let given = Self::nothing();
        let fields = [
            ("f", DataType::Float64),
            ("i", DataType::Int64),
            ("u", DataType::UInt64),
            ("s", DataType::Utf8),
            ("b", DataType::Boolean),
        ];
        let tag = has_primary_key.then(|| Column { name: "host".into(), kind: ColumnKind::Tag, data_type: tag_type() });
        let fields = fields.map(|(name, data_type)| Column { name: name.into(), kind: ColumnKind::Field, data_type });
        let columns = tag.into_iter().chain(fields).collect();
        let schema = TableSchema { database: "db".into(), table: name.into(), has_primary_key, columns };
        given.database.add(Arc::new(Table::new(schema)));
        given
    }

    fn tags(mut self, tags: &[&str]) -> Self {
        self.tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        self
    }

    fn precision(mut self, precision: Precision) -> Self {
        self.precision = Some(precision);
        self
    }

    fn decode_bytes(&self, body: &[u8]) -> Result<Staged> {
        let context = Context {
            database: &self.database,
            receive_ns: RECEIVED,
            precision: self.precision,
            tags: &self.tags,
            skip: &self.skip,
            ..Context::plain(&self.database)
        };
        decode(body, &context)
    }

    fn decode(&self, value: &V) -> Staged {
        self.decode_bytes(&value.pack()).unwrap()
    }

    /// Decodes a payload of which every item is good; returns its rows as text.
    fn rows(&self, value: &V) -> Vec<String> {
        let staged = self.decode(value);
        assert_eq!(staged.rejections.first, [], "{value:?}");
        rows(staged)
    }

    /// Decodes a payload of one item, which is bad; returns the reason.
    fn reason(&self, value: &V) -> String {
        let staged = self.decode(value);
        assert_eq!(staged.rejections.numbers, [1], "{value:?}");
        assert_eq!(staged.rejections.first[0].line, 1);
        assert_nothing(&staged);
        staged.rejections.first[0].reason.clone()
    }

    /// Registers what was staged, as the engine does before it logs a write.
    fn register(&self, staged: &Staged) {
        for table in staged.tables.iter().filter(|table| !table.rows.is_empty()) {
            let mut schema = TableSchema::clone(&table.base.schema);
            schema.columns.extend_from_slice(&table.added);
            table.table.set_schema(Arc::new(schema));
            self.database.add(Arc::clone(&table.table));
        }
    }
}

fn assert_nothing(staged: &Staged) {
    assert_eq!(staged.points(), 0);
    assert!(staged.tables.iter().all(|table| table.added.is_empty()), "{:?}", staged.tables);
}

/// Writes each staged row as `table time column=value …`; text is quoted, tags are in brackets,
/// floats have a point.
fn rows(staged: Staged) -> Vec<String> {
    staged.tables.into_iter().flat_map(table_rows).collect()
}

fn table_rows(table: StagedTable) -> Vec<String> {
    let name = table.name().to_owned();
    let mut schema = TableSchema::clone(&table.base.schema);
    schema.columns.extend_from_slice(&table.added);
    let reader = ChunkReader::new(Arc::new(schema), Arc::clone(&table.table.series));
    let batch = reader.rows(&Arc::new(table.rows.into_chunk().unwrap())).all().unwrap();
    let line = |row: usize| {
        let time = batch.column(0).as_primitive::<TimestampNanosecondType>().value(row);
        let schema = batch.schema();
        let values = schema.fields().iter().zip(batch.columns()).skip(1).filter(|(_, array)| array.is_valid(row));
        let values = values.map(|(field, array)| format!(" {}={}", field.name(), cell(array.as_ref(), row)));
        format!("{name} {time}{}", values.collect::<String>())
    };
    (0..batch.num_rows()).map(line).collect()
}

fn cell(array: &dyn Array, row: usize) -> String {
    match array.data_type() {
        DataType::Float64 => format!("{:?}", array.as_primitive::<Float64Type>().value(row)),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::UInt64 => format!("{}u", array.as_primitive::<UInt64Type>().value(row)),
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        DataType::Utf8 => format!("{:?}", array.as_string::<i32>().value(row)),
        _ => {
            let text = arrow::compute::cast(array, &DataType::Utf8).unwrap();
            format!("[{}]", text.as_string::<i32>().value(row))
        }
    }
}
