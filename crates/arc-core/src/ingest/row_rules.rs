//! The rules of a row that line protocol and MessagePack share: which names its tags and fields may
//! have, and what is said where one may not.

use arrow::datatypes::DataType;

use super::staged::{Context, StagedTable, check_column_name, short, type_conflict, type_name};
use crate::model::{ColumnKind, TIME_COLUMN};

/// The table that a row is for, as far as there is one.
pub(super) struct RowRules<'t> {
    pub(super) measurement: &'t str,
    pub(super) table: Option<&'t StagedTable>,
}

impl RowRules<'_> {
    /// Checks that a row may have a tag. In an append-only table a tag is a field of text: `widen`
    /// says that one of another type may become that, if the table lets it.
    pub(super) fn check_tag(&self, tag: &str, widen: Option<&Context<'_>>) -> Result<(), String> {
        if tag == TIME_COLUMN {
            return Err("invalid tag name \"time\": it is the name of the time column".into());
        }
        let has_primary_key = self.table.is_none_or(StagedTable::has_primary_key);
        let found = self.table.and_then(|table| Some((table, table.position(tag)?)));
        let Some((table, index, column)) = found.and_then(|(table, index)| Some((table, index, table.column(index)?)))
        else {
            return check_column_name("tag", tag);
        };
        if has_primary_key && column.kind == ColumnKind::Field {
            return Err(format!(
                "tag {:?} on measurement {:?} is a field already",
                short(tag),
                short(self.measurement)
            ));
        }
        let becomes_text = |context: &Context<'_>| table.wider(index, &DataType::Utf8, false, context).is_some();
        if !has_primary_key && column.data_type != DataType::Utf8 && !widen.is_some_and(becomes_text) {
            return Err(type_conflict(self.measurement, tag, &DataType::Utf8, &column.data_type));
        }
        Ok(())
    }

    /// Says that a field has the name of a column of tags.
    pub(super) fn is_a_tag(&self, field: &str) -> String {
        format!("field {:?} on measurement {:?} is a tag already", short(field), short(self.measurement))
    }
}

/// Says that a field has the name of a tag of the same `record`, a line or a row.
pub(super) fn named_as_a_tag(field: &str, record: &str) -> String {
    format!("field {:?} has the name of a tag of the same {record}", short(field))
}

/// Says that a new field has two values of different types in one record.
pub(super) fn comes_twice(field: &str, first: &DataType, second: &DataType) -> String {
    let (first, second) = (type_name(first), type_name(second));
    format!("field {:?} comes twice, as {first} and as {second}", short(field))
}
