//! The tag columns of a record batch: which series each row belongs to.
//!
//! Dictionaries stay dictionaries: rows that have the same keys are of the same series, which is
//! looked up once. Text is compared with the row before, for rows mostly come in runs.

use arrow::{
    array::{Array, ArrayRef, AsArray, StringArray},
    compute::cast,
    datatypes::DataType,
};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::{
    Error, Result,
    buffer::{SeriesId, SeriesIndex},
};

/// One tag column.
#[derive(Debug)]
pub(super) struct TagColumn<'a> {
    name: &'a str,
    values: StringArray,
    /// Which value each row has, of a dictionary; the number of values stands for none.
    keys: Option<Vec<usize>>,
}

impl<'a> TagColumn<'a> {
    /// Takes a column of text in any of its forms, also one of nulls only; `None` for any other
    /// type.
    pub(super) fn new(name: &'a str, array: &ArrayRef) -> Result<Option<Self>> {
        let plain = |array: &ArrayRef| match array.data_type() {
            DataType::Utf8 => Ok(Some(array.as_string::<i32>().clone())),
            DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => {
                Ok::<_, Error>(Some(cast(array, &DataType::Utf8)?.as_string::<i32>().clone()))
            }
            _ => Ok(None),
        };
        let Some(dictionary) = array.as_any_dictionary_opt() else {
            return Ok(plain(array)?.map(|values| Self { name, values, keys: None }));
        };
        let Some(values) = plain(dictionary.values())? else { return Ok(None) };
        let none = values.len();
        // With no values there is nothing that a key could mean.
        #[expect(clippy::disallowed_methods, reason = "there are values")]
        let mut keys = if none == 0 { vec![none; array.len()] } else { dictionary.normalized_keys() };
        for (row, key) in keys.iter_mut().enumerate() {
            if dictionary.keys().is_null(row) {
                *key = none;
            }
        }
        Ok(Some(Self { name, values, keys: Some(keys) }))
    }

    /// Returns the tag that a row has. A null or empty one is an absent one, as in line protocol.
    fn of(&self, row: usize) -> Option<(&str, &str)> {
        let at = self.keys.as_ref().map_or(Some(row), |keys| keys.get(row).copied())?;
        let present = at < self.values.len() && self.values.is_valid(at) && !self.values.value(at).is_empty();
        present.then(|| (self.name, self.values.value(at)))
    }
}

/// Returns the series of each row.
pub(super) fn resolve(index: &mut SeriesIndex, tags: &[TagColumn<'_>], rows: usize) -> Result<Vec<SeriesId>> {
    match combined_keys(tags, rows) {
        Some(keys) => {
            let mut known: HashMap<usize, SeriesId, FixedState> = HashMap::default();
            let mut found = Vec::with_capacity(rows);
            for (row, key) in keys.into_iter().enumerate() {
                found.push(match known.get(&key) {
                    Some(series) => *series,
                    None => *known.entry(key).or_insert(resolve_row(index, tags, row)?),
                });
            }
            Ok(found)
        }
        None => {
            let mut found: Vec<SeriesId> = Vec::with_capacity(rows);
            for row in 0..rows {
                let same = row.checked_sub(1).filter(|before| tags.iter().all(|tag| tag.of(*before) == tag.of(row)));
                found.push(match same.and(found.last()) {
                    Some(series) => *series,
                    None => resolve_row(index, tags, row)?,
                });
            }
            Ok(found)
        }
    }
}

fn resolve_row(index: &mut SeriesIndex, tags: &[TagColumn<'_>], row: usize) -> Result<SeriesId> {
    index.resolve(tags.iter().filter_map(|tag| tag.of(row)))
}

/// Makes one number of the keys of each row, if all tags are dictionaries and not too large for
/// that.
fn combined_keys(tags: &[TagColumn<'_>], rows: usize) -> Option<Vec<usize>> {
    let mut combined = vec![0; rows];
    let mut distinct = 1_usize;
    for tag in tags {
        // One more for rows without the tag.
        let choices = tag.values.len().checked_add(1)?;
        distinct = distinct.checked_mul(choices)?;
        for (combined, key) in combined.iter_mut().zip(tag.keys.as_ref()?) {
            *combined = *combined * choices + key;
        }
    }
    Some(combined)
}
