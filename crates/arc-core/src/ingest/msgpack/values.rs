//! The array of one column as typed values.
//!
//! The type follows from all of the values: integers beside floats widen, anything beside text
//! becomes text. It must be the type that the table has, but for integers in a column of floats.
//! Booleans beside numbers, and arrays, maps, binary and extensions as values are refused.
//!
//! Arrays of one kind without nil take a loop of their own; any other array is looked over once for
//! its kinds and read once more as the type they decide.

use arrow::datatypes::DataType;

use super::{
    ItemFault,
    item::scalar,
    reader::{MsgpackReader, MsgpackValue},
    refuse,
    text::text,
};
use crate::{
    buffer::{ColumnValues, Scalar},
    ingest::staged::{inexact, short, type_conflict},
};

/// A field column to be read.
pub(super) struct FieldColumn<'n> {
    pub(super) table: &'n str,
    pub(super) name: &'n str,
    /// Its type in the table, if the table has it.
    pub(super) existing: Option<DataType>,
    /// Whether it is text whatever its values are.
    pub(super) makes_text: bool,
    /// What the table lets it become of values of this type, of which floats can hold all or not.
    pub(super) wider: &'n dyn Fn(&DataType, bool) -> Option<DataType>,
    /// What a conflict between the types of values and of the column adds.
    pub(super) way_out: &'n dyn Fn(&DataType, &DataType) -> &'static str,
}

/// The kinds of value in an array, each with the first row that has it.
#[derive(Debug, Default)]
struct ArrayKinds {
    integer: Option<usize>,
    negative: Option<usize>,
    /// Above `i64::MAX`.
    above: Option<usize>,
    float: Option<usize>,
    boolean: Option<usize>,
    text: Option<usize>,
    /// Whether an integer is none that a float can hold.
    beyond_floats: bool,
}

impl ArrayKinds {
    fn note(&mut self, row: usize, value: &Scalar<'_>) {
        let kind = match value {
            Scalar::Integer(value) => {
                self.beyond_floats |= is_beyond_floats(*value);
                if *value < 0 {
                    self.negative.get_or_insert(row);
                }
                &mut self.integer
            }
            Scalar::Unsigned(_) => {
                self.beyond_floats |= value.exact_float().is_none();
                &mut self.above
            }
            Scalar::Float(_) => &mut self.float,
            Scalar::Boolean(_) => &mut self.boolean,
            Scalar::Text(_) | Scalar::Bytes(_) => &mut self.text,
        };
        kind.get_or_insert(row);
    }
}

/// Returns whether no float can be this integer.
fn is_beyond_floats(value: i64) -> bool {
    Scalar::Integer(value).exact_float().is_none()
}

impl FieldColumn<'_> {
    /// Reads `count` values; none if all of them are nil.
    pub(super) fn read(&self, reader: &mut MsgpackReader<'_>, count: usize) -> Result<Option<ColumnValues>, ItemFault> {
        match reader.peek() {
            Some(0xcb) if !self.makes_text => {
                if let Some(floats) = reader.floats(count) {
                    let data_type = self.fit(DataType::Float64, None, &|| true)?;
                    let floats = ColumnValues::from_floats(floats);
                    return Ok(Some(if data_type == DataType::Utf8 { floats.texts()? } else { floats }));
                }
            }
            Some(0x00..=0x7f | 0xcc..=0xd3 | 0xe0..=0xff) if !self.makes_text => {
                if let Some(integers) = reader.integers(count) {
                    return self.integers(integers).map(Some);
                }
            }
            Some(0xa0..=0xbf | 0xd9..=0xdb) => {
                if let Some(texts) = reader.texts(count) {
                    self.fit(DataType::Utf8, None, &|| false)?;
                    return Ok(Some(ColumnValues::from_texts(texts)));
                }
            }
            _ => {}
        }
        match self.own_type(*reader, count)? {
            None => {
                (0..count).try_for_each(|_| reader.skip())?;
                Ok(None)
            }
            Some(data_type) => self.mixed(reader, count, &data_type).map(Some),
        }
    }

    fn integers(&self, integers: Vec<i64>) -> Result<ColumnValues, ItemFault> {
        let negative = match self.existing {
            Some(DataType::UInt64) => integers.iter().position(|value| *value < 0),
            _ => None,
        };
        let are_floats = || !integers.iter().any(|value| is_beyond_floats(*value));
        Ok(match self.fit(DataType::Int64, negative, &are_floats)? {
            DataType::Utf8 => ColumnValues::from_integers(integers).texts()?,
            DataType::Float64 => {
                let widened = ColumnValues::from_integers(integers).widened();
                widened.ok_or_else(|| ItemFault::item(inexact(self.name)))?
            }
            DataType::UInt64 => {
                ColumnValues::from_unsigned(integers.into_iter().map(|value| value.cast_unsigned()).collect())
            }
            _ => ColumnValues::from_integers(integers),
        })
    }

    /// Looks over the values; returns the type that they and the table decide, none if all are nil.
    fn own_type(&self, mut reader: MsgpackReader<'_>, count: usize) -> Result<Option<DataType>, ItemFault> {
        let mut kinds = ArrayKinds::default();
        for row in 0..count {
            if let Some(value) = self.value(reader.next()?, row)? {
                kinds.note(row, &value);
            }
        }
        let number = kinds.integer.or(kinds.above).or(kinds.float);
        let some = number.or(kinds.boolean);
        let own = if kinds.text.is_some() || (self.makes_text && some.is_some()) {
            DataType::Utf8
        } else if let Some(row) = kinds.boolean {
            if let Some(other) = number {
                return self.refuse(row.max(other), "mixes booleans and numbers");
            }
            DataType::Boolean
        } else if kinds.float.is_some() {
            DataType::Float64
        } else if let Some(row) = kinds.above {
            if let (Some(negative), true) = (kinds.negative, self.existing != Some(DataType::Float64)) {
                return self.refuse(row.max(negative), "mixes negative integers and integers above 2^63-1");
            }
            DataType::UInt64
        } else if kinds.integer.is_some() {
            DataType::Int64
        } else {
            return Ok(None);
        };
        self.fit(own, kinds.negative, &|| !kinds.beyond_floats).map(Some)
    }

    /// Returns the type that values of type `own` are stored as.
    fn fit(
        &self,
        own: DataType,
        negative: Option<usize>,
        are_floats: &dyn Fn() -> bool,
    ) -> Result<DataType, ItemFault> {
        let wider = || (self.wider)(&own, are_floats());
        match (&self.existing, &own) {
            (None, _) => Ok(own),
            // What floats cannot hold is refused by its row.
            (Some(DataType::Float64), DataType::Int64 | DataType::UInt64 | DataType::Float64) => {
                Ok(if are_floats() { DataType::Float64 } else { wider().unwrap_or(DataType::Float64) })
            }
            (Some(DataType::UInt64), DataType::Int64) => match negative {
                None => Ok(DataType::UInt64),
                Some(row) => {
                    wider().map_or_else(|| self.refuse(row, "is unsigned in the table and has a negative integer"), Ok)
                }
            },
            (Some(existing), _) if *existing == own => Ok(own),
            (Some(existing), _) => match wider() {
                Some(wider) => Ok(wider),
                None => refuse(type_conflict(self.table, self.name, &own, existing) + (self.way_out)(&own, existing)),
            },
        }
    }

    /// Reads values of several kinds, or with nil among them, as `data_type`.
    fn mixed(
        &self,
        reader: &mut MsgpackReader<'_>,
        count: usize,
        data_type: &DataType,
    ) -> Result<ColumnValues, ItemFault> {
        let mut values = ColumnValues::new(data_type);
        let mut nulls = 0;
        for row in 0..count {
            let value = reader.next()?;
            let Some(scalar) = self.value(value, row)? else {
                nulls += 1;
                continue;
            };
            values.push_nulls(std::mem::take(&mut nulls));
            match (scalar, data_type) {
                (Scalar::Integer(value), DataType::UInt64) => values.push(Scalar::Unsigned(value.cast_unsigned()))?,
                (_, DataType::Utf8) => {
                    let text = text(&value).map_err(|found| self.found(row, &found))?;
                    values.push(Scalar::Text(&text))?;
                }
                (scalar, DataType::Float64) if scalar.exact_float().is_none() => {
                    return self.refuse(row, "is an integer that a float cannot hold exactly");
                }
                (scalar, _) => values.push(scalar)?,
            }
        }
        values.push_nulls(nulls);
        Ok(values)
    }

    fn value<'v>(&self, value: MsgpackValue<'v>, row: usize) -> Result<Option<Scalar<'v>>, ItemFault> {
        scalar(value).map_err(|found| self.found(row, &found))
    }

    fn found(&self, row: usize, found: &str) -> ItemFault {
        ItemFault::item(format!("column {:?}, row {}: the value is {found}", short(self.name), row + 1))
    }

    fn refuse<T>(&self, row: usize, reason: &str) -> Result<T, ItemFault> {
        refuse(format!("column {:?}, row {}: the column {reason}", short(self.name), row + 1))
    }
}
