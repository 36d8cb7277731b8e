//! Values of one column while they arrive: typed vectors that become Arrow buffers without a copy.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, BooleanArray, PrimitiveArray, UInt32Array, new_null_array},
    buffer::{Buffer, NullBuffer},
    datatypes::{ArrowNativeType, ArrowPrimitiveType, DataType, Float64Type, Int64Type, UInt64Type},
};

use super::{
    bits::Bits,
    dictionary_texts::is_dictionary,
    scalar::Scalar,
    texts::{TextColumn, too_much_text},
};
use crate::{
    Error, Result,
    arrays::numbers_as_text::{Floats, to_texts},
    model::{EXACT_FLOATS, may_become},
};

mod plain;

pub(crate) use plain::Plain;

#[derive(Debug)]
enum BufferedValues {
    Float(Vec<f64>),
    Integer(Vec<i64>),
    Unsigned(Vec<u64>),
    Boolean(Bits),
    Text(TextColumn),
    /// Any other Arrow type: whole arrays, one after the other.
    Arrow {
        data_type: DataType,
        pieces: Vec<ArrayRef>,
    },
}

/// A growing column. The validity bitmap exists only from the first null on.
#[derive(Debug)]
pub(crate) struct ColumnValues {
    values: BufferedValues,
    valid: Option<Bits>,
    len: usize,
}

impl ColumnValues {
    pub(crate) fn new(data_type: &DataType) -> Self {
        Self::with_capacity(data_type, 0)
    }

    /// Makes an empty column with room for `rows` values.
    pub(crate) fn with_capacity(data_type: &DataType, rows: usize) -> Self {
        let values = match data_type {
            DataType::Float64 => BufferedValues::Float(Vec::with_capacity(rows)),
            DataType::Int64 => BufferedValues::Integer(Vec::with_capacity(rows)),
            DataType::UInt64 => BufferedValues::Unsigned(Vec::with_capacity(rows)),
            DataType::Boolean => BufferedValues::Boolean(Bits::with_capacity(rows)),
            DataType::Utf8 => BufferedValues::Text(TextColumn::with_capacity(rows)),
            other => BufferedValues::Arrow { data_type: other.clone(), pieces: Vec::new() },
        };
        Self { values, valid: None, len: 0 }
    }

    pub(crate) fn from_floats(values: Vec<f64>) -> Self {
        Self { len: values.len(), values: BufferedValues::Float(values), valid: None }
    }

    pub(crate) fn from_integers(values: Vec<i64>) -> Self {
        Self { len: values.len(), values: BufferedValues::Integer(values), valid: None }
    }

    pub(crate) fn from_unsigned(values: Vec<u64>) -> Self {
        Self { len: values.len(), values: BufferedValues::Unsigned(values), valid: None }
    }

    /// Takes text whose values end at `ends`, each of which is the end of a character.
    pub(crate) fn from_text(ends: Vec<i32>, text: String) -> Self {
        Self::from_texts(TextColumn::plain(ends, text.into_bytes()))
    }

    pub(crate) fn from_texts(values: TextColumn) -> Self {
        Self { len: values.len(), values: BufferedValues::Text(values), valid: None }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the values are floats, or integers up to [`EXACT_FLOATS`].
    pub(crate) fn are_floats(&self) -> bool {
        match &self.values {
            BufferedValues::Float(_) => true,
            BufferedValues::Integer(v) => are_small(v),
            BufferedValues::Unsigned(v) => v.iter().all(|value| *value <= EXACT_FLOATS),
            _ => false,
        }
    }

    /// Returns the values as texts.
    pub(crate) fn texts(&self) -> Result<Self> {
        let mut texts = Self::new(&DataType::Utf8);
        texts.append_array(&converted(&self.to_array()?, &DataType::Utf8)?)?;
        Ok(texts)
    }

    /// Returns the values of a column of integers as floats, if floats can hold all of them
    /// exactly.
    pub(crate) fn widened(&self) -> Option<Self> {
        let floats: Option<Vec<f64>> = match &self.values {
            BufferedValues::Integer(v) => v.iter().map(|x| Scalar::Integer(*x).exact_float()).collect(),
            BufferedValues::Unsigned(v) => v.iter().map(|x| Scalar::Unsigned(*x).exact_float()).collect(),
            _ => None,
        };
        floats.map(|floats| Self { values: BufferedValues::Float(floats), valid: self.valid.clone(), len: self.len })
    }

    /// Returns whether the values are of another type than those of `other`.
    pub(super) fn differs(&self, other: &Self) -> bool {
        match (&self.values, &other.values) {
            (BufferedValues::Arrow { data_type, .. }, BufferedValues::Arrow { data_type: other, .. }) => {
                data_type != other
            }
            (one, other) => std::mem::discriminant(one) != std::mem::discriminant(other),
        }
    }

    /// Reads something of the end of the values.
    #[inline]
    pub(super) fn touch(&self) -> u64 {
        match &self.values {
            BufferedValues::Float(v) => v.last().map_or(0, |value| value.to_bits()),
            BufferedValues::Integer(v) => v.last().map_or(0, |value| value.cast_unsigned()),
            BufferedValues::Unsigned(v) => v.last().copied().unwrap_or(0),
            BufferedValues::Boolean(_) | BufferedValues::Text(_) | BufferedValues::Arrow { .. } => 0,
        }
    }

    pub(super) fn is_text(&self) -> bool {
        matches!(self.values, BufferedValues::Text(_))
    }

    /// Returns the type of a column that is none of the five plain ones.
    pub(super) fn arrow_type(&self) -> Option<&DataType> {
        match &self.values {
            BufferedValues::Arrow { data_type, .. } => Some(data_type),
            _ => None,
        }
    }

    pub(crate) fn data_type(&self) -> DataType {
        match &self.values {
            BufferedValues::Float(_) => DataType::Float64,
            BufferedValues::Integer(_) => DataType::Int64,
            BufferedValues::Unsigned(_) => DataType::UInt64,
            BufferedValues::Boolean(_) => DataType::Boolean,
            BufferedValues::Text(_) => DataType::Utf8,
            BufferedValues::Arrow { data_type, .. } => data_type.clone(),
        }
    }

    /// Appends one value. An integer for a float column is converted, and anything for a text
    /// column written as text; any other mismatch is a bug of the caller and becomes an error,
    /// never a wrong value.
    pub(crate) fn push(&mut self, value: Scalar<'_>) -> Result<()> {
        match (&mut self.values, value) {
            (BufferedValues::Float(v), number @ (Scalar::Float(_) | Scalar::Integer(_) | Scalar::Unsigned(_))) => {
                let inexact = || Error::internal(format!("{number:?} was not checked to fit a float"));
                v.push(number.exact_float().ok_or_else(inexact)?);
            }
            (BufferedValues::Integer(v), Scalar::Integer(x)) => v.push(x),
            (BufferedValues::Unsigned(v), Scalar::Unsigned(x)) => v.push(x),
            (BufferedValues::Boolean(v), Scalar::Boolean(x)) => v.push(x),
            (BufferedValues::Text(texts), Scalar::Text(x)) => push_text(texts, x.as_bytes())?,
            (BufferedValues::Text(texts), Scalar::Bytes(x)) => push_text(texts, x)?,
            (BufferedValues::Text(texts), value) => push_text(texts, &value.text())?,
            (_, value) => {
                return Err(Error::internal(format!("a {} column was given {value:?}", self.data_type())));
            }
        }
        if let Some(valid) = &mut self.valid {
            valid.push(true);
        }
        self.len += 1;
        Ok(())
    }

    /// Makes a value of the column's own type the one of row `row`, with nulls in front of it.
    /// `false`, and no more than those nulls, where the type is another or the row has a value
    /// already.
    #[inline(always)]
    pub(crate) fn put(&mut self, row: usize, value: Scalar<'_>) -> bool {
        if self.len < row {
            self.push_nulls(row - self.len);
        }
        if self.len != row {
            return false;
        }
        match (&mut self.values, value) {
            (BufferedValues::Float(v), Scalar::Float(x)) => v.push(x),
            (BufferedValues::Integer(v), Scalar::Integer(x)) => v.push(x),
            (BufferedValues::Unsigned(v), Scalar::Unsigned(x)) => v.push(x),
            (BufferedValues::Boolean(v), Scalar::Boolean(x)) => v.push(x),
            (BufferedValues::Text(texts), Scalar::Bytes(x)) => {
                if !texts.push(x) {
                    return false;
                }
            }
            _ => return false,
        }
        if let Some(valid) = &mut self.valid {
            valid.push(true);
        }
        self.len = row + 1;
        true
    }

    #[inline(never)]
    pub(crate) fn push_nulls(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        self.valid.get_or_insert_with(|| Bits::ones(self.len)).append_n(false, count);
        self.len += count;
        match &mut self.values {
            BufferedValues::Float(v) => v.resize(self.len, 0.0),
            BufferedValues::Integer(v) => v.resize(self.len, 0),
            BufferedValues::Unsigned(v) => v.resize(self.len, 0),
            BufferedValues::Boolean(v) => v.append_n(false, count),
            BufferedValues::Text(texts) => texts.push_nulls(count),
            BufferedValues::Arrow { data_type, pieces } => pieces.push(new_null_array(data_type, count)),
        }
    }

    /// Takes the last value back. Only columns of the five plain types are built value by value.
    pub(crate) fn pop(&mut self) {
        if self.len == 0 {
            return;
        }
        self.len -= 1;
        if let Some(valid) = &mut self.valid {
            valid.truncate(self.len);
        }
        match &mut self.values {
            BufferedValues::Float(v) => v.truncate(self.len),
            BufferedValues::Integer(v) => v.truncate(self.len),
            BufferedValues::Unsigned(v) => v.truncate(self.len),
            BufferedValues::Boolean(v) => v.truncate(self.len),
            BufferedValues::Text(texts) => texts.pop(),
            BufferedValues::Arrow { pieces, .. } => {
                if let Some(last) = pieces.pop().filter(|last| last.len() > 1) {
                    pieces.push(last.slice(0, last.len() - 1));
                }
            }
        }
    }

    /// Appends a whole array of the column's own type; texts may be encoded.
    pub(crate) fn append_array(&mut self, array: &ArrayRef) -> Result<()> {
        if *array.data_type() != self.data_type() && !(is_dictionary(array.data_type()) && self.is_text()) {
            return Err(Error::internal(format!("a {} column was given {}", self.data_type(), array.data_type())));
        }
        match &mut self.values {
            BufferedValues::Float(v) => v.extend_from_slice(primitive::<Float64Type>(array)?),
            BufferedValues::Integer(v) => v.extend_from_slice(primitive::<Int64Type>(array)?),
            BufferedValues::Unsigned(v) => v.extend_from_slice(primitive::<UInt64Type>(array)?),
            BufferedValues::Boolean(v) => {
                let array = downcast::<BooleanArray>(array)?;
                v.append_buffer(array.values());
            }
            BufferedValues::Text(texts) => texts.append_array(array)?,
            BufferedValues::Arrow { pieces, .. } => pieces.push(Arc::clone(array)),
        }
        self.append_validity(array.nulls(), array.len());
        Ok(())
    }

    fn append_validity(&mut self, nulls: Option<&NullBuffer>, count: usize) {
        match (nulls, &mut self.valid) {
            (None, None) => {}
            (None, Some(valid)) => valid.append_n(true, count),
            (Some(nulls), valid) => {
                valid.get_or_insert_with(|| Bits::ones(self.len)).append_buffer(nulls.inner());
            }
        }
        self.len += count;
    }

    /// Appends all values of `other`, which has the same type.
    pub(crate) fn append(&mut self, other: &Self) -> Result<()> {
        match (&mut self.values, &other.values) {
            (BufferedValues::Float(to), BufferedValues::Float(from)) => to.extend_from_slice(from),
            (BufferedValues::Integer(to), BufferedValues::Integer(from)) => to.extend_from_slice(from),
            (BufferedValues::Unsigned(to), BufferedValues::Unsigned(from)) => to.extend_from_slice(from),
            (BufferedValues::Boolean(to), BufferedValues::Boolean(from)) => to.append(from),
            (BufferedValues::Text(to), BufferedValues::Text(from)) => to.append(from)?,
            (BufferedValues::Arrow { pieces, .. }, BufferedValues::Arrow { pieces: more, .. }) => {
                pieces.extend_from_slice(more)
            }
            _ => return Err(Error::internal(format!("a {} column meets {}", self.data_type(), other.data_type()))),
        }
        match (&other.valid, &mut self.valid) {
            (None, None) => {}
            (None, Some(valid)) => valid.append_n(true, other.len),
            (Some(from), valid) => {
                valid.get_or_insert_with(|| Bits::ones(self.len)).append(from);
            }
        }
        self.len += other.len;
        Ok(())
    }

    /// Appends the values of `other` at `rows`, in that order; rows that it is too short for are
    /// null.
    pub(crate) fn append_rows(&mut self, other: &Self, rows: &[u32]) -> Result<()> {
        let within = |row: &u32| (*row as usize) < other.len;
        let rows = if rows.iter().all(within) {
            UInt32Array::from(rows.to_vec())
        } else {
            rows.iter().map(|row| Some(*row).filter(within)).collect()
        };
        let taken = arrow::compute::take(&other.to_array()?, &rows, None)?;
        self.append_array(&taken)
    }

    /// Returns the values so far as an array; costs a copy. Texts may be [encoded](is_dictionary).
    pub(crate) fn to_array(&self) -> Result<ArrayRef> {
        let nulls = self.valid.as_ref().map(|valid| NullBuffer::new(valid.clone().into_buffer()));
        Ok(match &self.values {
            BufferedValues::Float(v) => Arc::new(PrimitiveArray::<Float64Type>::new(v.clone().into(), nulls)),
            BufferedValues::Integer(v) => Arc::new(PrimitiveArray::<Int64Type>::new(v.clone().into(), nulls)),
            BufferedValues::Unsigned(v) => Arc::new(PrimitiveArray::<UInt64Type>::new(v.clone().into(), nulls)),
            BufferedValues::Boolean(v) => Arc::new(BooleanArray::new(v.clone().into_buffer(), nulls)),
            BufferedValues::Text(texts) => texts.to_array(nulls)?,
            BufferedValues::Arrow { data_type, pieces } => concat(data_type, pieces)?,
        })
    }

    /// Returns an empty column that has the memory of `array`, if that is of a type whose values
    /// can be so used and nothing else has it.
    pub(super) fn emptied(array: ArrayRef) -> Option<Self> {
        let values = match array.data_type() {
            DataType::Float64 => BufferedValues::Float(emptied::<Float64Type>(array)?),
            DataType::Int64 => BufferedValues::Integer(emptied::<Int64Type>(array)?),
            DataType::UInt64 => BufferedValues::Unsigned(emptied::<UInt64Type>(array)?),
            other if *other == DataType::Utf8 || is_dictionary(other) => {
                BufferedValues::Text(TextColumn::emptied(array)?)
            }
            _ => return None,
        };
        Some(Self { values, valid: None, len: 0 })
    }

    /// Turns the values into an array without copying them. Texts may be [encoded](is_dictionary).
    pub(crate) fn into_array(self) -> Result<ArrayRef> {
        let nulls = self.valid.map(|valid| NullBuffer::new(valid.into_buffer()));
        Ok(match self.values {
            BufferedValues::Float(v) => Arc::new(PrimitiveArray::<Float64Type>::new(v.into(), nulls)),
            BufferedValues::Integer(v) => Arc::new(PrimitiveArray::<Int64Type>::new(v.into(), nulls)),
            BufferedValues::Unsigned(v) => Arc::new(PrimitiveArray::<UInt64Type>::new(v.into(), nulls)),
            BufferedValues::Boolean(v) => Arc::new(BooleanArray::new(v.into_buffer(), nulls)),
            BufferedValues::Text(texts) => texts.into_array(nulls)?,
            BufferedValues::Arrow { data_type, pieces } => concat(&data_type, &pieces)?,
        })
    }

    /// Has texts become codes if they are seen to repeat.
    pub(super) fn reconsider(&mut self) {
        if let BufferedValues::Text(texts) = &mut self.values {
            texts.reconsider();
        }
    }

    /// Returns the bytes that the values take more where each text is written out.
    pub(super) fn spread_bytes(&self) -> usize {
        match &self.values {
            BufferedValues::Text(texts) => texts.plain_bytes().saturating_sub(texts.bytes()),
            _ => 0,
        }
    }

    /// Returns the bytes of the values held (vectors may have room for more).
    pub(crate) fn bytes(&self) -> usize {
        let values = match &self.values {
            BufferedValues::Float(_) | BufferedValues::Integer(_) | BufferedValues::Unsigned(_) => self.len * 8,
            BufferedValues::Boolean(_) => self.len / 8,
            BufferedValues::Text(texts) => texts.bytes(),
            BufferedValues::Arrow { pieces, .. } => pieces.iter().map(|piece| piece.get_array_memory_size()).sum(),
        };
        values + self.valid.as_ref().map_or(0, |_| self.len / 8)
    }
}

/// Returns whether an array is one of floats, or of integers up to [`EXACT_FLOATS`].
pub(crate) fn are_floats(array: &ArrayRef) -> bool {
    match array.data_type() {
        DataType::Int64 => primitive::<Int64Type>(array).is_ok_and(are_small),
        DataType::UInt64 => {
            primitive::<UInt64Type>(array).is_ok_and(|values| values.iter().all(|value| *value <= EXACT_FLOATS))
        }
        data_type => *data_type == DataType::Float64,
    }
}

fn are_small(values: &[i64]) -> bool {
    values.iter().all(|value| value.unsigned_abs() <= EXACT_FLOATS)
}

/// Returns an array as one of `data_type`, which its column has come to have.
pub(crate) fn converted(array: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    if array.data_type() == data_type {
        return Ok(Arc::clone(array));
    }
    if is_dictionary(array.data_type()) && *data_type == DataType::Utf8 {
        return Ok(arrow::compute::cast(array, data_type)?);
    }
    if !may_become(array.data_type(), data_type) {
        let (from, to) = (array.data_type(), data_type);
        return Err(Error::internal(format!("a column of {to} was found to have {from}")));
    }
    match data_type {
        DataType::Utf8 => to_texts(array, Floats::Plain),
        _ => Ok(arrow::compute::cast(array, data_type)?),
    }
}

fn push_text(texts: &mut TextColumn, text: &[u8]) -> Result<()> {
    if texts.push(text) { Ok(()) } else { Err(too_much_text()) }
}

fn concat(data_type: &DataType, pieces: &[ArrayRef]) -> Result<ArrayRef> {
    match pieces {
        [] => Ok(new_null_array(data_type, 0)),
        [one] => Ok(Arc::clone(one)),
        many => {
            let many: Vec<&dyn Array> = many.iter().map(AsRef::as_ref).collect();
            Ok(arrow::compute::concat(&many)?)
        }
    }
}

fn downcast<T: 'static>(array: &ArrayRef) -> Result<&T> {
    array.as_any().downcast_ref().ok_or_else(|| Error::internal(format!("unexpected array of {}", array.data_type())))
}

fn primitive<T: ArrowPrimitiveType>(array: &ArrayRef) -> Result<&[T::Native]> {
    Ok(downcast::<PrimitiveArray<T>>(array)?.values())
}

/// Returns the memory of an array's values, if nothing else has it.
fn emptied<T: ArrowPrimitiveType>(array: ArrayRef) -> Option<Vec<T::Native>> {
    let typed = downcast::<PrimitiveArray<T>>(&array).ok()?.clone();
    drop(array);
    let (_, values, _) = typed.into_parts();
    empty_vec(values.into_inner())
}

/// Returns the memory of a buffer as an empty vector, if nothing else has it and it was one.
pub(super) fn empty_vec<T: ArrowNativeType>(buffer: Buffer) -> Option<Vec<T>> {
    let mut values = buffer.into_vec().ok()?;
    values.clear();
    Some(values)
}

#[cfg(test)]
mod tests;
