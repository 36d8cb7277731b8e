//! The types of an Arrow IPC schema: whether they are some that a table can have, before anything
//! is made of them.
//!
//! Arrow's own conversion takes a schema for a good one and panics otherwise. Never decides what a
//! column of the type becomes: that is the parent's part.

use arrow::ipc::{self, DateUnit, Endianness, IntervalUnit, Precision, TimeUnit, Type};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::super::staged::short;

/// What the batches of a stream need to have.
#[derive(Debug, Default)]
pub(super) struct SchemaShape {
    /// Columns, also inner ones, that have a variable number of buffers.
    pub(super) views: usize,
    /// Dictionaries by number, with whether their values have such a number.
    pub(super) dictionaries: HashMap<i64, bool, FixedState>,
}

/// Checks a schema; the error names the column.
pub(super) fn check_schema(schema: ipc::Schema<'_>) -> Result<SchemaShape, String> {
    if schema.endianness() != Endianness::Little {
        return Err("its numbers are big-endian, expected little-endian".to_owned());
    }
    let mut shape = SchemaShape::default();
    for field in schema.fields().ok_or("the schema has no columns")? {
        let name = short(field.name().unwrap_or_default());
        shape.add(field, false).map_err(|reason| format!("column {name:?} {reason}"))?;
    }
    Ok(shape)
}

/// Returns of each column of a schema that a file carries why Arrow cannot make a type of it, where it cannot.
#[cfg(feature = "import")]
pub(crate) fn odd_columns(schema: ipc::Schema<'_>) -> Vec<Option<String>> {
    schema.fields().into_iter().flatten().map(odd_type).collect()
}

#[cfg(feature = "import")]
fn odd_type(field: ipc::Field<'_>) -> Option<String> {
    if field.dictionary().is_some_and(|dictionary| !dictionary.indexType().is_none_or(is_integer)) {
        return Some(unknown(field));
    }
    let is_good = match field.type_type() {
        Type::Int | Type::FloatingPoint | Type::Decimal | Type::FixedSizeBinary => is_number(field),
        Type::Date | Type::Time | Type::Timestamp | Type::Interval | Type::Duration => is_time(field),
        Type::List | Type::LargeList | Type::ListView | Type::LargeListView | Type::Map => {
            field.children().is_some_and(|children| children.len() == 1)
        }
        Type::FixedSizeList => {
            field.type_as_fixed_size_list().is_some() && field.children().is_some_and(|children| children.len() == 1)
        }
        Type::Null | Type::Bool | Type::Struct_ | Type::Utf8 | Type::LargeUtf8 | Type::Utf8View => true,
        Type::Binary | Type::LargeBinary | Type::BinaryView => true,
        _ => false,
    };
    if is_good { field.children().into_iter().flatten().find_map(odd_type) } else { Some(unknown(field)) }
}

impl SchemaShape {
    fn add(&mut self, field: ipc::Field<'_>, inner: bool) -> Result<(), String> {
        let name = field.type_type();
        let has_view = matches!(name, Type::Utf8View | Type::BinaryView);
        if let Some(dictionary) = field.dictionary() {
            check_dictionary(field, dictionary)?;
            self.dictionaries.insert(dictionary.id(), has_view);
            return Ok(());
        }
        self.views += usize::from(has_view);
        let children = children(field)?;
        let ok = match name {
            // As many as one likes take no bytes at all.
            Type::Null => !inner,
            Type::Bool | Type::Utf8 | Type::LargeUtf8 | Type::Utf8View | Type::Binary | Type::LargeBinary => true,
            Type::BinaryView => true,
            Type::Int | Type::FloatingPoint | Type::Decimal | Type::FixedSizeBinary => is_number(field),
            Type::Date | Type::Time | Type::Timestamp | Type::Interval | Type::Duration => is_time(field),
            Type::List | Type::LargeList => children == 1,
            Type::FixedSizeList => {
                children == 1 && field.type_as_fixed_size_list().is_some_and(|list| list.listSize() > 0)
            }
            Type::Map => children == 1 && field.type_as_map().is_some(),
            Type::Struct_ => children > 0,
            _ => false,
        };
        if !ok {
            return Err(unknown(field));
        }
        field.children().into_iter().flatten().try_for_each(|child| self.add(child, true))
    }
}

/// Counts the inner columns. A map has one, which is a structure of two.
fn children(field: ipc::Field<'_>) -> Result<usize, String> {
    let children = field.children();
    if field.type_type() == Type::Map {
        let entries = children.filter(|children| children.len() == 1).map(|children| children.get(0));
        let pair =
            entries.filter(|entries| entries.type_type() == Type::Struct_).and_then(|entries| entries.children());
        pair.filter(|pair| pair.len() == 2).ok_or_else(|| unknown(field))?;
    }
    Ok(children.map_or(0, |children| children.len()))
}

fn unknown(field: ipc::Field<'_>) -> String {
    let name = field.type_type().variant_name().unwrap_or("unknown").trim_end_matches('_');
    format!("has the type {name} in a form that a table cannot hold")
}

fn check_dictionary(field: ipc::Field<'_>, dictionary: ipc::DictionaryEncoding<'_>) -> Result<(), String> {
    if !dictionary.indexType().is_some_and(is_integer) {
        return Err("is a dictionary whose keys are no integers".to_owned());
    }
    match field.type_type() {
        Type::Utf8 | Type::LargeUtf8 | Type::Utf8View | Type::Binary | Type::LargeBinary => Ok(()),
        other => {
            let name = other.variant_name().unwrap_or("unknown");
            Err(format!("is a dictionary of {name}, expected one of text or bytes"))
        }
    }
}

fn is_integer(int: ipc::Int<'_>) -> bool {
    matches!(int.bitWidth(), 8 | 16 | 32 | 64)
}

fn is_number(field: ipc::Field<'_>) -> bool {
    let float = |float: ipc::FloatingPoint<'_>| {
        matches!(float.precision(), Precision::HALF | Precision::SINGLE | Precision::DOUBLE)
    };
    let decimal = |decimal: ipc::Decimal<'_>| {
        let digits = match decimal.bitWidth() {
            32 => 9,
            64 => 18,
            128 => 38,
            256 => 76,
            _ => 0,
        };
        (1..=digits).contains(&decimal.precision()) && (-digits..=digits).contains(&decimal.scale())
    };
    match field.type_type() {
        Type::Int => field.type_as_int().is_some_and(is_integer),
        Type::FloatingPoint => field.type_as_floating_point().is_some_and(float),
        Type::Decimal => field.type_as_decimal().is_some_and(decimal),
        _ => field.type_as_fixed_size_binary().is_some_and(|bytes| bytes.byteWidth() > 0),
    }
}

fn is_time(field: ipc::Field<'_>) -> bool {
    let units = [TimeUnit::SECOND, TimeUnit::MILLISECOND, TimeUnit::MICROSECOND, TimeUnit::NANOSECOND];
    match field.type_type() {
        Type::Date => {
            field.type_as_date().is_some_and(|date| matches!(date.unit(), DateUnit::DAY | DateUnit::MILLISECOND))
        }
        Type::Time => field.type_as_time().is_some_and(|time| match time.bitWidth() {
            32 => matches!(time.unit(), TimeUnit::SECOND | TimeUnit::MILLISECOND),
            64 => matches!(time.unit(), TimeUnit::MICROSECOND | TimeUnit::NANOSECOND),
            _ => false,
        }),
        Type::Timestamp => field.type_as_timestamp().is_some_and(|time| units.contains(&time.unit())),
        Type::Duration => field.type_as_duration().is_some_and(|time| units.contains(&time.unit())),
        _ => field.type_as_interval().is_some_and(|interval| {
            matches!(interval.unit(), IntervalUnit::YEAR_MONTH | IntervalUnit::DAY_TIME | IntervalUnit::MONTH_DAY_NANO)
        }),
    }
}
