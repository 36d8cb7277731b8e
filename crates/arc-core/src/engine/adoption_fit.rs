//! Whether a table of another directory fits into the one of the same name: pure functions.

use crate::{
    Error, Result,
    model::{Column, ColumnKind, TableSchema, may_become},
};

/// Returns the schema that a table has once it has the columns of `coming`, too. Those that are new
/// are at the end; none that is there changes.
///
/// # Errors
///
/// [`Error::SchemaConflict`] naming the column.
pub(super) fn fit(known: Option<&TableSchema>, coming: &TableSchema) -> Result<TableSchema> {
    let Some(known) = known else { return Ok(coming.clone()) };
    if known.has_primary_key != coming.has_primary_key {
        let kind = |schema: &TableSchema| if schema.has_primary_key { "a primary-key table" } else { "append-only" };
        return conflict(coming, "time", kind(known).into(), kind(coming).into());
    }
    let mut grown = known.clone();
    for column in &coming.columns {
        match known.columns.iter().find(|there| there.name == column.name) {
            None => grown.columns.push(column.clone()),
            Some(there) if may_hold(there, column) => {}
            Some(there) => return conflict(coming, &column.name, describe(there), describe(column)),
        }
    }
    Ok(grown)
}

/// Returns whether values of a column may be in another one.
fn may_hold(there: &Column, column: &Column) -> bool {
    there.kind == column.kind
        && (there.data_type == column.data_type || may_become(&column.data_type, &there.data_type))
}

fn describe(column: &Column) -> String {
    match column.kind {
        ColumnKind::Tag => "a tag".into(),
        ColumnKind::Field => column.data_type.to_string(),
    }
}

fn conflict<T>(schema: &TableSchema, column: &str, existing: String, got: String) -> Result<T> {
    Err(Error::SchemaConflict { table: schema.table.to_string(), column: column.to_owned(), existing, got })
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::DataType;

    use super::*;
    use crate::model::tag_type;

    fn schema(has_primary_key: bool, columns: &[(&str, ColumnKind, DataType)]) -> TableSchema {
        let column = |(name, kind, data_type): &(&str, ColumnKind, DataType)| Column {
            name: (*name).into(),
            kind: *kind,
            data_type: data_type.clone(),
        };
        let columns = columns.iter().map(column).collect();
        TableSchema { database: "d".into(), table: "t".into(), has_primary_key, columns }
    }

    #[test]
    fn columns_are_added_and_conflicts_are_named() {
        use ColumnKind::{Field, Tag};
        let known = schema(true, &[("a", Tag, tag_type()), ("x", Field, DataType::Float64)]);
        let fits = |columns: &[(&str, ColumnKind, DataType)]| fit(Some(&known), &schema(true, columns));
        let grown = fits(&[("y", Field, DataType::Int64), ("x", Field, DataType::Int64)]).unwrap();
        assert_eq!(grown.columns.iter().map(|column| &*column.name).collect::<Vec<_>>(), ["a", "x", "y"]);
        assert_eq!(grown.columns[1].data_type, DataType::Float64);
        for (columns, named) in [
            ([("a", Field, DataType::Utf8)], "\"a\""),
            ([("x", Field, DataType::Utf8)], "\"x\""),
            ([("x", Tag, tag_type())], "\"x\""),
        ] {
            assert!(fits(&columns).unwrap_err().to_string().contains(named));
        }
        assert!(fit(Some(&known), &schema(false, &[])).is_err());
        assert_eq!(fit(None, &known).unwrap(), known);
    }
}
