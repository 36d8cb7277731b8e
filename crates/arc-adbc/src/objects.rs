//! What there is: one catalog, a schema for each database, tables, columns and primary keys, as nested lists.

use std::sync::Arc;

use adbc_core::{
    error::Result,
    options::ObjectDepth,
    schemas::{COLUMN_SCHEMA, CONSTRAINT_SCHEMA, GET_OBJECTS_SCHEMA, OBJECTS_DB_SCHEMA_SCHEMA, TABLE_SCHEMA},
};
use arc_core::{Engine, ErrorKind, catalog::TableSchema};
use arrow::{
    array::{
        Array as _, ArrayRef, Int16Array, Int32Array, ListArray, RecordBatch, StringArray, StructArray, new_null_array,
    },
    buffer::OffsetBuffer,
    datatypes::{DataType, Field},
    error::ArrowError,
};

use crate::errors::{invalid, of_engine};

/// Name of the one catalog, whose schemas are the databases; as over Flight SQL.
pub(crate) const CATALOG: &str = "arc";
/// The one type of tables.
pub(crate) const TABLE: &str = "TABLE";
/// Name of the column that every table has.
const TIME: &str = "time";

/// Which objects are asked for; names are patterns of `LIKE`.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) depth: ObjectDepth,
    pub(crate) catalog: Option<&'a str>,
    pub(crate) database: Option<&'a str>,
    pub(crate) table: Option<&'a str>,
    pub(crate) column: Option<&'a str>,
    pub(crate) with_tables: bool,
}

/// Refuses a catalog that is not the one there is; an empty name means any.
pub(crate) fn check_catalog(catalog: Option<&str>) -> Result<()> {
    match catalog {
        None | Some("" | CATALOG) => Ok(()),
        Some(other) => Err(invalid(format!("there is no catalog {other:?}; the only one is {CATALOG:?}"))),
    }
}

/// Returns all that was asked for.
pub(crate) fn batch(engine: &Engine, asked: &Asked<'_>) -> Result<RecordBatch> {
    let catalogs: Vec<&str> = [CATALOG].into_iter().filter(|name| matches(name, asked.catalog)).collect();
    let databases = if catalogs.is_empty() || asked.depth == ObjectDepth::Catalogs {
        None
    } else {
        let names = engine.databases().into_iter().map(|database| database.name);
        Some(names.filter(|name| matches(name, asked.database)).collect::<Vec<_>>())
    };
    let lengths = catalogs.iter().map(|_| databases.as_ref().map_or(0, Vec::len));
    let schemas = match &databases {
        None => None,
        Some(names) => Some(databases_of(engine, names, asked)?),
    };
    let columns = vec![text(&catalogs), list(&OBJECTS_DB_SCHEMA_SCHEMA, lengths.collect(), schemas)?];
    Ok(RecordBatch::try_new(Arc::clone(&GET_OBJECTS_SCHEMA), columns)?)
}

fn databases_of(engine: &Engine, names: &[String], asked: &Asked<'_>) -> Result<Vec<ArrayRef>> {
    if asked.depth == ObjectDepth::Schemas {
        return Ok(vec![text(names), list(&TABLE_SCHEMA, vec![0; names.len()], None)?]);
    }
    let (mut tables, mut lengths) = (Vec::new(), Vec::new());
    for name in names {
        let before = tables.len();
        if asked.with_tables {
            tables.extend(tables_of(engine, name)?.into_iter().filter(|table| matches(&table.table, asked.table)));
        }
        lengths.push(tables.len() - before);
    }
    Ok(vec![text(names), list(&TABLE_SCHEMA, lengths, Some(table_columns(&tables, asked)?))?])
}

/// Returns the tables of a database, none if it is gone meanwhile.
fn tables_of(engine: &Engine, database: &str) -> Result<Vec<Arc<TableSchema>>> {
    match engine.tables(database) {
        Ok(tables) => Ok(tables.into_iter().map(|table| table.schema).collect()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(of_engine(&error)),
    }
}

fn table_columns(tables: &[Arc<TableSchema>], asked: &Asked<'_>) -> Result<Vec<ArrayRef>> {
    let names: Vec<&str> = tables.iter().map(|table| table.table.as_ref()).collect();
    let types = vec![TABLE; tables.len()];
    let (columns, constraints) = if asked.depth == ObjectDepth::Tables {
        let none = || vec![0; tables.len()];
        (list(&COLUMN_SCHEMA, none(), None)?, list(&CONSTRAINT_SCHEMA, none(), None)?)
    } else {
        (columns_of(tables, asked)?, constraints_of(tables)?)
    };
    Ok(vec![text(&names), text(&types), columns, constraints])
}

fn columns_of(tables: &[Arc<TableSchema>], asked: &Asked<'_>) -> Result<ArrayRef> {
    let (mut found, mut lengths) = (Vec::new(), Vec::new());
    for table in tables {
        let before = found.len();
        let fields = table.arrow();
        let numbered = (1..).zip(fields.fields()).filter(|(_, field)| matches(field.name(), asked.column));
        found.extend(numbered.map(|(position, field)| (position, Arc::clone(field))));
        lengths.push(found.len() - before);
    }
    let names: Vec<&str> = found.iter().map(|(_, field)| field.name().as_str()).collect();
    let types: Vec<String> = found.iter().map(|(_, field)| value_type(field)).collect();
    let is_nullable: Vec<&str> =
        found.iter().map(|(_, field)| if field.is_nullable() { "YES" } else { "NO" }).collect();
    let nullable = Int16Array::from_iter_values(found.iter().map(|(_, field)| i16::from(field.is_nullable())));
    let positions = Int32Array::from_iter_values(found.iter().map(|(position, _)| *position));
    let known: [(&str, ArrayRef); 5] = [
        ("column_name", text(&names)),
        ("ordinal_position", Arc::new(positions)),
        ("xdbc_type_name", text(&types)),
        ("xdbc_nullable", Arc::new(nullable)),
        ("xdbc_is_nullable", text(&is_nullable)),
    ];
    let column = |field: &Arc<Field>| {
        let of_field = known.iter().find(|(name, _)| name == field.name());
        of_field.map_or_else(|| new_null_array(field.data_type(), found.len()), |(_, array)| Arc::clone(array))
    };
    list(&COLUMN_SCHEMA, lengths, Some(fields_of(&COLUMN_SCHEMA).iter().map(column).collect()))
}

/// Returns the type of a column's values, by its name in Arrow.
fn value_type(field: &Field) -> String {
    match field.data_type() {
        DataType::Dictionary(_, values) => values.to_string(),
        other => other.to_string(),
    }
}

fn constraints_of(tables: &[Arc<TableSchema>]) -> Result<ArrayRef> {
    let (mut keys, mut key_lengths) = (Vec::new(), Vec::new());
    let lengths = tables.iter().map(|table| usize::from(table.has_primary_key)).collect();
    for table in tables.iter().filter(|table| table.has_primary_key) {
        let before = keys.len();
        keys.extend(table.tags().map(|tag| tag.name.to_string()).chain([TIME.to_owned()]));
        key_lengths.push(keys.len() - before);
    }
    let count = key_lengths.len();
    let [name, _, columns, usage] = fields_of(&CONSTRAINT_SCHEMA) else { return Err(of_schema("a constraint")) };
    let arrays = vec![
        new_null_array(name.data_type(), count),
        text(&vec!["PRIMARY KEY"; count]),
        list_of(columns.data_type(), key_lengths, text(&keys))?,
        new_null_array(usage.data_type(), count),
    ];
    list(&CONSTRAINT_SCHEMA, lengths, Some(arrays))
}

/// Returns whether a name is like a pattern; `None` is any.
fn matches(name: &str, pattern: Option<&str>) -> bool {
    pattern.is_none_or(|pattern| is_like(name, pattern))
}

/// As `LIKE`, without an escape: `%` is any text, `_` one character.
fn is_like(name: &str, pattern: &str) -> bool {
    let (name, pattern): (Vec<char>, Vec<char>) = (name.chars().collect(), pattern.chars().collect());
    let (mut n, mut p) = (0, 0);
    // Where to go on if what follows the last `%` turns out not to match.
    let mut back: Option<(usize, usize)> = None;
    while n < name.len() {
        match (pattern.get(p), back) {
            (Some('%'), _) => {
                back = Some((n, p + 1));
                p += 1;
            }
            (Some(wanted), _) if *wanted == '_' || name.get(n) == Some(wanted) => {
                n += 1;
                p += 1;
            }
            (_, Some((from, after))) => {
                back = Some((from + 1, after));
                (n, p) = (from + 1, after);
            }
            (_, None) => return false,
        }
    }
    pattern.iter().skip(p).all(|rest| *rest == '%')
}

fn text<T: AsRef<str>>(values: &[T]) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

fn fields_of(structure: &DataType) -> &[Arc<Field>] {
    match structure {
        DataType::Struct(fields) => fields,
        _ => &[],
    }
}

/// Returns lists of structures with so many items each, or of nulls where there are no items to tell.
fn list(item: &DataType, lengths: Vec<usize>, columns: Option<Vec<ArrayRef>>) -> Result<ArrayRef> {
    let item_field = Field::new_list_field(item.clone(), true);
    let lists = DataType::List(Arc::new(item_field));
    let Some(columns) = columns else { return Ok(new_null_array(&lists, lengths.len())) };
    let DataType::Struct(fields) = item else { return Err(of_schema("a list")) };
    let items = StructArray::try_new(fields.clone(), columns, None)?;
    list_of(&lists, lengths, Arc::new(items))
}

fn list_of(lists: &DataType, lengths: Vec<usize>, items: ArrayRef) -> Result<ArrayRef> {
    let DataType::List(item) = lists else { return Err(of_schema("a list")) };
    debug_assert_eq!(item.data_type(), items.data_type());
    Ok(Arc::new(ListArray::try_new(Arc::clone(item), OffsetBuffer::from_lengths(lengths), items, None)?))
}

fn of_schema(what: &str) -> adbc_core::error::Error {
    ArrowError::SchemaError(format!("{what} of the schema of ADBC is of another type than expected")).into()
}
