//! From the bytes of a frame to decoded rows.
//!
//! Columns may have come to be of a wider type since, as their values would have. Whatever else is
//! not as it was written is damage, which is named. How many rows and columns there may be was
//! decided when they were accepted: there is no limit here that a live write did not know, and
//! nothing is made for a cell that the bytes do not have.

use arrow::datatypes::DataType;

use super::{Type, index_bytes, integers, reader::LoggedRowsReader};
use crate::{
    Error, Result,
    buffer::{ColumnValues, Rows, SeriesId, converted},
    ingest::staged::{Context, Staged, StagedTable, TableIndex, check_column_name, short},
    model::{ColumnKind, may_become, tag_type},
};

/// Decodes what [`Encoders`](super::Encoders) wrote.
///
/// # Errors
///
/// [`Error::InvalidPayload`] with what is wrong with the bytes.
pub(crate) fn decode(body: &[u8], context: &Context<'_>) -> Result<Staged> {
    let staged = Staged::new(context.database);
    let mut decoder = LoggedRowsDecoder { reader: LoggedRowsReader::new(body), staged, index: TableIndex::default() };
    decoder.decode().map_err(|reason| Error::InvalidPayload { format: "rows", reason })?;
    Ok(decoder.staged)
}

struct LoggedRowsDecoder<'a> {
    reader: LoggedRowsReader<'a>,
    staged: Staged,
    index: TableIndex,
}

/// A column of a table in the frame.
struct FrameColumn<'a> {
    name: &'a str,
    /// In the table as it is now.
    index: usize,
    kind: ColumnKind,
    data_type: DataType,
}

impl<'a> LoggedRowsDecoder<'a> {
    fn decode(&mut self) -> Result<(), String> {
        for _ in 0..self.reader.number("the number of tables")? {
            let name = self.reader.text("the name of a table")?;
            self.table(name).map_err(|reason| format!("table {:?}: {reason}", short(name)))?;
        }
        if self.reader.is_at_end() { Ok(()) } else { Err("something follows the last table".into()) }
    }

    fn table(&mut self, name: &str) -> Result<(), String> {
        let has_primary_key = flag(self.reader.byte("the flag of a keyed table")?)?;
        let at = self.index.by_name(&mut self.staged, name, has_primary_key)?;
        let Some(table) = self.staged.tables.get_mut(at) else { return Err("it is gone".into()) };
        if table.has_primary_key() != has_primary_key {
            return Err("it is of the other kind: keyed, or one that appends".into());
        }
        let reader = &mut self.reader;
        let columns = columns(reader, table)?;
        let series = if has_primary_key { series(reader, table, &columns)? } else { Vec::new() };
        for _ in 0..reader.number("the number of blocks")? {
            let rows = block(reader, &columns, has_primary_key.then_some(&series))?;
            if table.rows.is_empty() {
                table.rows = rows;
            } else {
                table.rows.append(&rows, None).map_err(|e| e.to_string())?;
            }
        }
        Ok(())
    }
}

fn columns<'a>(reader: &mut LoggedRowsReader<'a>, table: &mut StagedTable) -> Result<Vec<FrameColumn<'a>>, String> {
    let mut columns: Vec<FrameColumn<'a>> = Vec::new();
    for _ in 0..reader.number("the number of columns")? {
        let (kind, own) = match read_type(reader)? {
            None => (ColumnKind::Tag, tag_type()),
            Some(field) => (ColumnKind::Field, field),
        };
        let name = reader.text("the name of a column")?;
        let (index, data_type) =
            column_at(table, name, kind, own).map_err(|reason| format!("column {:?}: {reason}", short(name)))?;
        if columns.iter().any(|known| known.index == index) {
            return Err(format!("column {:?} comes twice", short(name)));
        }
        columns.push(FrameColumn { name, index, kind, data_type });
    }
    Ok(columns)
}

/// Returns the position and the type of a column that was of the type `own`.
fn column_at(
    table: &mut StagedTable,
    name: &str,
    kind: ColumnKind,
    own: DataType,
) -> Result<(usize, DataType), String> {
    if kind == ColumnKind::Tag && !table.has_primary_key() {
        return Err("it is a tag of a table that appends".into());
    }
    match table.position(name).and_then(|index| Some((index, table.column(index)?))) {
        None => {
            check_column_name("column", name)?;
            table.check_column_count(1)?;
            Ok((table.add(name, kind, own.clone()), own))
        }
        Some((_, column)) if column.kind != kind => Err("a tag is a field, or a field a tag".into()),
        Some((_, column)) if column.data_type != own && !may_become(&own, &column.data_type) => {
            Err(format!("it is {}, and was {own}", column.data_type))
        }
        Some((index, column)) => Ok((index, column.data_type.clone())),
    }
}

/// Returns the type of a field, or `None` for a tag.
fn read_type(reader: &mut LoggedRowsReader<'_>) -> Result<Option<DataType>, String> {
    let byte = reader.byte("the type of a column")?;
    Ok(Some(match Type::from_byte(byte).ok_or_else(|| format!("there is no type {byte}"))? {
        Type::Tag => return Ok(None),
        Type::Float => DataType::Float64,
        Type::Integer => DataType::Int64,
        Type::Unsigned => DataType::UInt64,
        Type::Boolean => DataType::Boolean,
        Type::Text => DataType::Utf8,
    }))
}

/// Returns the series by their positions.
fn series(
    reader: &mut LoggedRowsReader<'_>,
    table: &StagedTable,
    columns: &[FrameColumn<'_>],
) -> Result<Vec<SeriesId>, String> {
    let count = reader.number("the number of series")?;
    let mut tags = Vec::new();
    for FrameColumn { name, .. } in columns.iter().filter(|column| column.kind == ColumnKind::Tag) {
        let mut values = Vec::new();
        for _ in 0..reader.number("the number of values of a tag")? {
            values.push(reader.text("the value of a tag")?);
        }
        tags.push((*name, positions(reader, count, values.len() + 1, "a value of a tag")?, values));
    }
    if tags.is_empty() && count != 1 {
        return Err(format!("there are {count} series without tags"));
    }
    let mut index = table.table.series.write();
    let tags_of = |series: usize| {
        tags.iter().filter_map(move |(name, positions, values)| {
            let value = (*positions.get(series)? as usize).checked_sub(1)?;
            Some((*name, *values.get(value)?))
        })
    };
    (0..count).map(|series| index.resolve(tags_of(series)).map_err(|e| e.to_string())).collect()
}

/// Returns as many numbers below `limit`.
fn positions(reader: &mut LoggedRowsReader<'_>, count: usize, limit: usize, what: &str) -> Result<Vec<u32>, String> {
    let width = index_bytes(limit);
    let bytes = reader.take_all(count, width, what)?;
    // Four bytes at most.
    let positions = integers::read(bytes, width, |position| u32::try_from(position).unwrap_or(u32::MAX));
    match positions.iter().find(|position| **position as usize >= limit) {
        Some(position) => Err(format!("{what} is number {position}, and there are {limit}")),
        None => Ok(positions),
    }
}

/// Reads rows, with their series in a primary-key table.
fn block(
    reader: &mut LoggedRowsReader<'_>,
    columns: &[FrameColumn<'_>],
    series: Option<&Vec<SeriesId>>,
) -> Result<Rows, String> {
    let count = reader.number("the number of rows")?;
    if count == 0 {
        return Err("there is a block without rows".into());
    }
    let mut rows = Rows::default();
    rows.time = numbers(reader, count, u64::cast_signed, "a time")?;
    if let Some(series) = series {
        let positions = positions(reader, count, series.len(), "the series of a row")?;
        rows.series = positions.iter().filter_map(|position| series.get(*position as usize)).copied().collect();
    }
    for _ in 0..reader.number("the number of columns with values")? {
        let position = reader.number("the place of a column")?;
        let column = columns.get(position).filter(|column| column.kind == ColumnKind::Field);
        let column = column.ok_or_else(|| format!("there is no field {position}"))?;
        if rows.values(column.index).is_some() {
            return Err(format!("column {:?} has values twice", short(column.name)));
        }
        let values = values(reader, count, &column.data_type);
        let values = values.map_err(|reason| format!("column {:?}: {reason}", short(column.name)))?;
        rows.put_column(column.index, values);
    }
    Ok(rows)
}

/// Reads the values of a column, up to `rows` of them, as ones of the type that the column has now.
fn values(reader: &mut LoggedRowsReader<'_>, rows: usize, data_type: &DataType) -> Result<ColumnValues, String> {
    let own = read_type(reader)?.ok_or("values of a tag")?;
    let count = reader.number("the number of values")?;
    if count == 0 || count > rows {
        return Err(format!("there are {count} values for {rows} rows"));
    }
    let has_nulls = flag(reader.byte("the flag of nulls")?)?;
    let present = if has_nulls { Some(bits(reader, count)?) } else { None };
    let values = match own {
        DataType::Float64 => {
            let bytes = reader.take_all(count, 8, "the values")?;
            ColumnValues::from_floats(integers::read(bytes, 8, f64::from_bits))
        }
        DataType::Int64 => ColumnValues::from_integers(numbers(reader, count, u64::cast_signed, "the values")?),
        DataType::UInt64 => ColumnValues::from_unsigned(numbers(reader, count, |value| value, "the values")?),
        DataType::Boolean => ColumnValues::from_booleans(bits(reader, count)?, count),
        _ => texts(reader, count)?,
    };
    let values = if let Some(present) = present { values.with_present(present) } else { values };
    if own == *data_type { Ok(values) } else { widened(values, &own, data_type) }
}

/// Returns values as ones of a type that their column has come to have.
fn widened(values: ColumnValues, own: &DataType, data_type: &DataType) -> Result<ColumnValues, String> {
    if !may_become(own, data_type) {
        return Err(format!("it is {data_type}, and has values of {own}"));
    }
    let mut wide = ColumnValues::new(data_type);
    let array = values.into_array().and_then(|array| converted(&array, data_type));
    array.and_then(|array| wide.append_array(&array)).map_err(|e| e.to_string())?;
    Ok(wide)
}

fn numbers<T>(
    reader: &mut LoggedRowsReader<'_>,
    count: usize,
    make: impl Fn(u64) -> T,
    what: &str,
) -> Result<Vec<T>, String> {
    let width = usize::from(reader.byte("the width of numbers")?);
    if !(1..=8).contains(&width) {
        return Err(format!("numbers have a width of {width} bytes"));
    }
    let least = reader.word("the least of numbers")?;
    let bytes = reader.take_all(count, width, what)?;
    Ok(integers::read(bytes, width, |difference| make(least.wrapping_add(difference))))
}

fn bits(reader: &mut LoggedRowsReader<'_>, count: usize) -> Result<Vec<u64>, String> {
    let bytes = reader.take(count.div_ceil(8), "the bits of a column")?;
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    Ok(bytes.chunks(8).map(word).collect())
}

fn texts(reader: &mut LoggedRowsReader<'_>, count: usize) -> Result<ColumnValues, String> {
    let width = usize::from(reader.byte("the width of lengths")?);
    if ![1, 2, 4].contains(&width) {
        return Err(format!("lengths have a width of {width} bytes"));
    }
    let lengths = integers::read(reader.take_all(count, width, "the lengths of texts")?, width, |length| length);
    let total = lengths.iter().sum::<u64>();
    if i32::try_from(total).is_err() {
        return Err(format!("there are {total} bytes of text"));
    }
    let bytes = reader.take(usize::try_from(total).unwrap_or(usize::MAX), "the texts")?;
    let text = std::str::from_utf8(bytes).map_err(|_| "a text is not UTF-8")?;
    let mut end = 0;
    let ends = lengths.iter().map(|length| {
        end += usize::try_from(*length).unwrap_or_default();
        // Within the total, which was checked.
        text.is_char_boundary(end).then(|| i32::try_from(end).unwrap_or(i32::MAX))
    });
    let ends = ends.collect::<Option<Vec<i32>>>().ok_or("a text ends within a character")?;
    Ok(ColumnValues::from_text(ends, text.to_owned()))
}

fn flag(byte: u8) -> Result<bool, String> {
    match byte {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(format!("a flag is {byte}")),
    }
}
