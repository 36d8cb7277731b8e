//! The serialised form of a table's schema, in the manifest and in the log's schema frames.
//!
//! Owns the bytes (docs/format.md, "Table schema"): MessagePack with named keys, types by short
//! name, and Arrow's own serialisation for types that have none.

use std::{borrow::Cow, fmt, panic::catch_unwind, sync::Arc};

use arrow::{
    datatypes::{DataType, Field, Schema},
    ipc::{
        convert::try_schema_from_flatbuffer_bytes,
        writer::{DictionaryTracker, IpcDataGenerator, IpcWriteOptions},
    },
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{Column, ColumnKind, TIME_COLUMN, TableSchema, tag_type};
/// Short name of the type of all tags; no field has it.
const TAG: &str = "tag";

/// Short names of field types. They are on disk: never change one, only add.
const SHORT_NAMES: [(&str, DataType); 5] = [
    ("float64", DataType::Float64),
    ("int64", DataType::Int64),
    ("uint64", DataType::UInt64),
    ("boolean", DataType::Boolean),
    ("utf8", DataType::Utf8),
];

/// Returns the serialised form of a schema.
#[expect(clippy::expect_used, reason = "writing derived structures to memory has no way to fail")]
pub(crate) fn encode_schema(schema: &TableSchema) -> Vec<u8> {
    rmp_serde::to_vec_named(&DefinitionRecord::of(schema)).expect("a schema is written to memory")
}

/// Reads what [`encode_schema`] wrote.
///
/// # Errors
///
/// What is wrong with the bytes.
pub(crate) fn decode_schema(bytes: &[u8]) -> Result<TableSchema, String> {
    let record: DefinitionRecord<'_> = rmp_serde::from_slice(bytes).map_err(|e| e.to_string())?;
    record.into_schema()
}

/// Returns whether a schema with a column of this type is read back as the same. Asked before a
/// column is accepted: Arrow writes types that are nested deeper than it reads.
pub(crate) fn comes_back(data_type: &DataType) -> bool {
    let has_short_name = *data_type == tag_type() || SHORT_NAMES.iter().any(|(_, known)| known == data_type);
    has_short_name || ArrowType::encode(data_type).decode().is_ok_and(|found| found == *data_type)
}

/// Serialises a field of type `Arc<TableSchema>`, for `#[serde(with)]`.
pub(super) mod required {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    use super::{Arc, DefinitionRecord, TableSchema};

    pub(in super::super) fn serialize<S: Serializer>(schema: &TableSchema, to: S) -> Result<S::Ok, S::Error> {
        DefinitionRecord::of(schema).serialize(to)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<TableSchema>, D::Error> {
        DefinitionRecord::deserialize(from)?.into_schema().map(Arc::new).map_err(de::Error::custom)
    }
}

/// Serialises a field of type `Option<Arc<TableSchema>>`, for `#[serde(with)]`.
pub(super) mod optional {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    use super::{Arc, DefinitionRecord, TableSchema};

    pub(in super::super) fn serialize<S: Serializer>(
        schema: &Option<Arc<TableSchema>>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        schema.as_deref().map(DefinitionRecord::of).serialize(to)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Arc<TableSchema>>, D::Error> {
        let record = Option::<DefinitionRecord<'_>>::deserialize(from)?;
        record.map(|record| record.into_schema().map(Arc::new)).transpose().map_err(de::Error::custom)
    }
}

#[derive(Serialize, Deserialize)]
struct DefinitionRecord<'a> {
    database: Cow<'a, str>,
    table: Cow<'a, str>,
    #[serde(rename = "keyed")]
    has_primary_key: bool,
    columns: Vec<ColumnRecord<'a>>,
}

/// One column: `type` for a type with a short name, `arrow` for any other.
#[derive(Serialize, Deserialize)]
struct ColumnRecord<'a> {
    name: Cow<'a, str>,
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    short_name: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    arrow: Option<ArrowType>,
}

impl<'a> DefinitionRecord<'a> {
    fn of(schema: &'a TableSchema) -> Self {
        DefinitionRecord {
            database: Cow::Borrowed(&schema.database),
            table: Cow::Borrowed(&schema.table),
            has_primary_key: schema.has_primary_key,
            columns: schema.columns.iter().map(ColumnRecord::of).collect(),
        }
    }

    fn into_schema(self) -> Result<TableSchema, String> {
        let mut columns: Vec<Column> = Vec::with_capacity(self.columns.len());
        let mut names = hashbrown::HashSet::with_capacity(self.columns.len());
        for record in self.columns {
            let column = record.into_column()?;
            if column.name.as_ref() == TIME_COLUMN || !names.insert(Arc::clone(&column.name)) {
                return Err(format!("table {:?} has two columns {:?}", self.table, column.name));
            }
            columns.push(column);
        }
        Ok(TableSchema {
            database: self.database.into(),
            table: self.table.into(),
            has_primary_key: self.has_primary_key,
            columns,
        })
    }
}

impl<'a> ColumnRecord<'a> {
    fn of(column: &'a Column) -> Self {
        let short_name = match column.kind {
            ColumnKind::Tag => Some(TAG),
            ColumnKind::Field => {
                SHORT_NAMES.iter().find(|(_, data_type)| *data_type == column.data_type).map(|(name, _)| *name)
            }
        };
        let arrow = match short_name {
            Some(_) => None,
            None => Some(ArrowType::encode(&column.data_type)),
        };
        Self { name: Cow::Borrowed(&column.name), short_name: short_name.map(Cow::Borrowed), arrow }
    }

    fn into_column(self) -> Result<Column, String> {
        let (kind, data_type) = match (self.short_name.as_deref(), &self.arrow) {
            (Some(TAG), None) => (ColumnKind::Tag, tag_type()),
            (Some(name), None) => {
                let known = SHORT_NAMES.into_iter().find(|(short_name, _)| *short_name == name);
                let (_, data_type) =
                    known.ok_or_else(|| format!("column {:?} has an unknown type {name:?}", self.name))?;
                (ColumnKind::Field, data_type)
            }
            (None, Some(arrow)) => {
                (ColumnKind::Field, arrow.decode().map_err(|e| format!("column {:?} has no type: {e}", self.name))?)
            }
            _ => return Err(format!("column {:?} does not have one type", self.name)),
        };
        Ok(Column { name: self.name.into(), kind, data_type })
    }
}

/// An Arrow type as the IPC schema message of one field, the only serialisation that Arrow
/// specifies.
struct ArrowType(Vec<u8>);

impl ArrowType {
    fn encode(data_type: &DataType) -> Self {
        let schema = Schema::new(vec![Field::new("", data_type.clone(), true)]);
        let mut dictionaries = DictionaryTracker::new(true);
        let options = IpcWriteOptions::default();
        let generator = IpcDataGenerator::default();
        let message = generator.schema_to_bytes_with_dictionary_tracker(&schema, &mut dictionaries, &options);
        Self(message.ipc_message)
    }

    fn decode(&self) -> Result<DataType, String> {
        // The library panics on messages that are well-formed and make no sense. A checksum stands
        // before every caller, so this is for files that were made, not damaged.
        let schema = catch_unwind(|| try_schema_from_flatbuffer_bytes(&self.0))
            .map_err(|_| "the Arrow schema makes no sense".to_owned())?
            .map_err(|e| e.to_string())?;
        match schema.fields().iter().as_slice() {
            [field] => Ok(field.data_type().clone()),
            fields => Err(format!("the Arrow schema has {} fields", fields.len())),
        }
    }
}

impl Serialize for ArrowType {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for ArrowType {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl de::Visitor<'_> for Bytes {
            type Value = ArrowType;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }

            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<ArrowType, E> {
                Ok(ArrowType(bytes.to_vec()))
            }
        }
        from.deserialize_bytes(Bytes)
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{Fields, TimeUnit};
    use proptest::prelude::*;

    use super::*;

    fn schema(columns: Vec<Column>) -> TableSchema {
        TableSchema { database: "db".into(), table: "a/b 🌡".into(), has_primary_key: true, columns }
    }

    fn field(name: &str, data_type: DataType) -> Column {
        Column { name: name.into(), kind: ColumnKind::Field, data_type }
    }

    fn tag(name: &str) -> Column {
        Column { name: name.into(), kind: ColumnKind::Tag, data_type: tag_type() }
    }

    fn all_types() -> TableSchema {
        let item =
            |data_type| Arc::new(Field::new("item", data_type, true).with_metadata([("k".into(), "v".into())].into()));
        let nested = DataType::Struct(Fields::from(vec![
            Field::new("a", DataType::List(item(tag_type())), false),
            Field::new("b", DataType::Decimal128(20, -3), true),
        ]));
        schema(vec![
            tag("host"),
            field("f", DataType::Float64),
            field("i", DataType::Int64),
            field("u", DataType::UInt64),
            field("b", DataType::Boolean),
            field("s", DataType::Utf8),
            tag("region"),
            field("tag-like", tag_type()),
            field("t", DataType::Timestamp(TimeUnit::Millisecond, Some("+01:00".into()))),
            field("n", nested),
            field("null", DataType::Null),
        ])
    }

    #[test]
    fn schemas_come_back() {
        for schema in [schema(vec![]), all_types()] {
            let bytes = encode_schema(&schema);
            assert_eq!(decode_schema(&bytes).unwrap(), schema);
        }
    }

    #[test]
    fn plain_types_are_named() {
        let bytes = encode_schema(&schema(vec![tag("host"), field("x", DataType::Float64)]));
        let expected = [
            b"\x84\xa8database\xa2db\xa5table\xa8a/b \xf0\x9f\x8c\xa1\xa5keyed\xc3\xa7columns\x92".as_slice(),
            b"\x82\xa4name\xa4host\xa4type\xa3tag\x82\xa4name\xa1x\xa4type\xa7float64",
        ];
        assert_eq!(bytes, expected.concat());
    }

    #[test]
    fn what_is_no_schema_is_refused() {
        let bytes = encode_schema(&all_types());
        for len in 0..bytes.len() {
            assert!(decode_schema(&bytes[..len]).is_err(), "{len} bytes");
        }
        let encoded = |columns| encode_schema(&schema(columns));
        let renamed = |from: &[u8; 5], to: &[u8; 5]| {
            let mut bytes = encoded(vec![tag("aaaaa"), field("bbbbb", DataType::Float64)]);
            let at = bytes.windows(5).position(|window| window == from).unwrap();
            bytes[at..at + 5].copy_from_slice(to);
            decode_schema(&bytes)
        };
        assert!(renamed(b"aaaaa", b"ccccc").is_ok());
        assert!(renamed(b"aaaaa", b"bbbbb").unwrap_err().contains("two columns \"bbbbb\""));
        assert!(renamed(b"float", b"fload").unwrap_err().contains("unknown type \"fload64\""));
        assert!(decode_schema(&encoded(vec![tag(TIME_COLUMN)])).unwrap_err().contains("two columns"));
    }

    proptest! {
        #[test]
        fn damaged_bytes_never_panic(flips in prop::collection::vec((any::<prop::sample::Index>(), 1..=255_u8), 1..4)) {
            let mut bytes = encode_schema(&all_types());
            for (index, mask) in flips {
                let index = index.index(bytes.len());
                bytes[index] ^= mask;
            }
            let _ = decode_schema(&bytes);
        }

        #[test]
        fn any_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode_schema(&bytes);
            let _ = ArrowType(bytes).decode();
        }
    }
}
