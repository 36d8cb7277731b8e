//! The series of one table: tag sets, each with a number that rows carry instead of the tags.
//!
//! Knows tags by name, not by column, because a series may be seen before its columns are part of the schema. Never
//! forgets a series while the table is open, and never touches the disk: it is rebuilt from the rows that arrive.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, DictionaryArray, Int32Array, StringArray, StringBuilder},
    buffer::ScalarBuffer,
    datatypes::Int32Type,
};
use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashTable};
use parking_lot::Mutex;
use std::hash::BuildHasher;

use crate::{Error, Result};

/// Number of a series within its table; the first is 0.
pub(crate) type SeriesId = u32;

const NULL: i32 = -1;

/// The distinct values of one tag, and which of them each series has.
#[derive(Debug)]
struct TagValues {
    name: Arc<str>,
    codes: HashMap<Arc<str>, i32, FixedState>,
    values: Vec<Arc<str>>,
    /// By series; shorter than the number of series where the last ones lack the tag.
    by_series: Vec<i32>,
    /// `values` as an array, for as long as none is added.
    array: Mutex<Option<ArrayRef>>,
}

impl TagValues {
    fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            codes: HashMap::default(),
            values: Vec::new(),
            by_series: Vec::new(),
            array: Mutex::new(None),
        }
    }

    fn code(&mut self, value: &str) -> Result<i32> {
        if let Some(code) = self.codes.get(value) {
            return Ok(*code);
        }
        let code = i32::try_from(self.values.len()).map_err(|_| Error::internal("more than 2^31 values of one tag"))?;
        let value: Arc<str> = value.into();
        self.values.push(Arc::clone(&value));
        self.codes.insert(value, code);
        *self.array.get_mut() = None;
        Ok(code)
    }

    fn of(&self, series: SeriesId) -> i32 {
        self.by_series.get(series as usize).copied().unwrap_or(NULL)
    }

    /// Returns the values that `codes` stand for, and makes the codes places among them.
    ///
    /// These are all values of the tag, as one array for all callers, unless that had to be made for a few rows.
    fn values_array(&self, codes: &mut [i32]) -> ArrayRef {
        let mut array = self.array.lock();
        if array.is_none() && self.values.len() / 4 > codes.len() {
            return self.values_of(codes);
        }
        Arc::clone(array.get_or_insert_with(|| Arc::new(StringArray::from_iter_values(&self.values))))
    }

    /// Returns rows with these codes.
    fn column(&self, mut codes: Vec<i32>) -> Result<ArrayRef> {
        let values = self.values_array(&mut codes);
        let nulls = codes.contains(&NULL).then(|| codes.iter().map(|code| *code != NULL).collect());
        if nulls.is_some() {
            codes.iter_mut().for_each(|code| *code = (*code).max(0));
        }
        let keys = Int32Array::try_new(ScalarBuffer::from(codes), nulls)?;
        Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(keys, values)?))
    }

    fn values_of(&self, codes: &mut [i32]) -> ArrayRef {
        let mut places: HashMap<i32, i32, FixedState> = HashMap::default();
        let mut values = StringBuilder::new();
        for code in codes.iter_mut().filter(|code| **code != NULL) {
            let next = i32::try_from(places.len()).unwrap_or(NULL);
            *code = *places.entry(*code).or_insert_with_key(|code| {
                let value = usize::try_from(*code).ok().and_then(|code| self.values.get(code));
                values.append_value(value.map_or("", AsRef::as_ref));
                next
            });
        }
        Arc::new(values.finish())
    }

    /// Returns, by code, the place of each value in text order; 0 is left for null, which sorts first.
    fn ranks(&self) -> Vec<u32> {
        let mut order: Vec<usize> = (0..self.values.len()).collect();
        order.sort_unstable_by(|a, b| self.values.get(*a).cmp(&self.values.get(*b)));
        let mut ranks = vec![0; order.len()];
        for (rank, code) in (1..).zip(order) {
            if let Some(slot) = ranks.get_mut(code) {
                *slot = rank;
            }
        }
        ranks
    }
}

/// One tag, and which series have which of its values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tag<'a>(&'a TagValues);

impl<'a> Tag<'a> {
    pub(crate) fn name(&self) -> &'a str {
        &self.0.name
    }

    /// Returns the number of the value that a series has, if it has the tag.
    #[inline]
    pub(crate) fn number(&self, series: SeriesId) -> Option<u32> {
        u32::try_from(self.0.of(series)).ok()
    }

    /// Returns the value of a number.
    pub(crate) fn value(&self, number: u32) -> &'a str {
        self.0.values.get(number as usize).map_or("", AsRef::as_ref)
    }
}

/// All series of one table.
#[derive(Debug, Default)]
pub(crate) struct SeriesIndex {
    tags: Vec<TagValues>,
    /// Series by their sorted (tag, code) pairs.
    known: HashTable<SeriesId>,
    pairs: Vec<Box<[(u32, i32)]>>,
    hasher: FixedState,
    scratch: Vec<(u32, i32)>,
}

impl SeriesIndex {
    /// Returns the series with exactly these tags, whatever their order, made if it is new.
    ///
    /// No key may come twice; the caller has checked.
    pub(crate) fn resolve<'t>(&mut self, tags: impl Iterator<Item = (&'t str, &'t str)>) -> Result<SeriesId> {
        let mut pairs = std::mem::take(&mut self.scratch);
        pairs.clear();
        for (key, value) in tags {
            let tag = self.tag(key);
            if let Some(values) = self.tags.get_mut(tag as usize) {
                pairs.push((tag, values.code(value)?));
            }
        }
        pairs.sort_unstable();
        let series = self.resolve_pairs(&pairs);
        self.scratch = pairs;
        series
    }

    fn tag(&mut self, name: &str) -> u32 {
        let found = self.tags.iter().position(|tag| tag.name.as_ref() == name).unwrap_or_else(|| {
            self.tags.push(TagValues::new(name));
            self.tags.len() - 1
        });
        // Column names are limited by the schema to far fewer than 2^32.
        u32::try_from(found).unwrap_or(u32::MAX)
    }

    fn resolve_pairs(&mut self, pairs: &[(u32, i32)]) -> Result<SeriesId> {
        let hash = self.hasher.hash_one(pairs);
        let all = &self.pairs;
        let same = |id: &SeriesId| all.get(*id as usize).is_some_and(|known| known.as_ref() == pairs);
        if let Some(id) = self.known.find(hash, same) {
            return Ok(*id);
        }
        let id = u32::try_from(self.pairs.len())
            .ok()
            .filter(|id| *id < u32::MAX)
            .ok_or_else(|| Error::internal("more than 2^32 series in one table"))?;
        self.pairs.push(pairs.into());
        let (all, hasher) = (&self.pairs, &self.hasher);
        self.known
            .insert_unique(hash, id, |id| all.get(*id as usize).map_or(0, |known| hasher.hash_one(known.as_ref())));
        for (tag, code) in pairs {
            if let Some(values) = self.tags.get_mut(*tag as usize) {
                values.by_series.resize(id as usize, NULL);
                values.by_series.push(*code);
            }
        }
        Ok(id)
    }

    /// Returns all tags that any series has.
    pub(crate) fn tags(&self) -> impl Iterator<Item = Tag<'_>> {
        self.tags.iter().map(Tag)
    }

    /// Returns the tag column `name` for rows of these series.
    pub(crate) fn tag_column(&self, name: &str, series: &[SeriesId]) -> Result<ArrayRef> {
        let Some(tag) = self.tags.iter().find(|tag| tag.name.as_ref() == name) else {
            return null_column(series.len());
        };
        tag.column(series.iter().map(|id| tag.of(*id)).collect())
    }

    /// Returns the tag column `name` for rows that are given as series and how many of them follow each other.
    pub(crate) fn tag_runs(&self, name: &str, runs: &[(SeriesId, usize)]) -> Result<ArrayRef> {
        let rows = runs.iter().map(|(_, rows)| rows).sum();
        let Some(tag) = self.tags.iter().find(|tag| tag.name.as_ref() == name) else {
            return null_column(rows);
        };
        let mut codes = Vec::with_capacity(rows);
        for (series, rows) in runs {
            codes.resize(codes.len() + rows, tag.of(*series));
        }
        tag.column(codes)
    }

    /// Returns, by series, its place in the order of the tags `names` (nulls first); equal only for equal tags.
    pub(crate) fn ranks<'t>(&self, names: impl Iterator<Item = &'t str>) -> Vec<u32> {
        let tags: Vec<(&TagValues, Vec<u32>)> = names
            .filter_map(|name| self.tags.iter().find(|tag| tag.name.as_ref() == name))
            .map(|tag| (tag, tag.ranks()))
            .collect();
        let key = |id: SeriesId| {
            tags.iter().map(move |(tag, ranks)| {
                usize::try_from(tag.of(id)).ok().and_then(|code| ranks.get(code)).copied().unwrap_or(0)
            })
        };
        let mut order: Vec<SeriesId> = (0..self.pairs.len()).filter_map(|id| u32::try_from(id).ok()).collect();
        order.sort_unstable_by(|a, b| key(*a).cmp(key(*b)));
        let mut ranks = vec![0; order.len()];
        for (rank, id) in (0..).zip(order) {
            if let Some(slot) = ranks.get_mut(id as usize) {
                *slot = rank;
            }
        }
        ranks
    }
}

fn null_column(rows: usize) -> Result<ArrayRef> {
    let values: ArrayRef = Arc::new(StringArray::from(Vec::<&str>::new()));
    Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(Int32Array::new_null(rows), values)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Array, AsArray};

    fn text(column: &ArrayRef) -> Vec<Option<String>> {
        let column = arrow::compute::cast(column, &arrow::datatypes::DataType::Utf8).unwrap();
        column.as_string::<i32>().iter().map(|v| v.map(str::to_owned)).collect()
    }

    #[test]
    fn the_order_of_tags_does_not_make_another_series() {
        let mut index = SeriesIndex::default();
        let a = index.resolve([("host", "a"), ("zone", "x")].into_iter()).unwrap();
        let b = index.resolve([("zone", "x"), ("host", "a")].into_iter()).unwrap();
        let c = index.resolve([("host", "a")].into_iter()).unwrap();
        assert_eq!((a, b, c), (0, 0, 1));
        assert_eq!(index.pairs.len(), 2);
    }

    #[test]
    fn tag_columns_have_nulls_where_a_series_lacks_the_tag() {
        let mut index = SeriesIndex::default();
        index.resolve([("host", "a")].into_iter()).unwrap();
        index.resolve([("zone", "x")].into_iter()).unwrap();
        let host = index.tag_column("host", &[0, 1, 0]).unwrap();
        assert_eq!(text(&host), [Some("a".into()), None, Some("a".into())]);
        let zone = index.tag_column("zone", &[0, 1]).unwrap();
        assert_eq!(text(&zone), [None, Some("x".into())]);
        assert_eq!(index.tag_column("none", &[0, 1]).unwrap().null_count(), 2);
    }

    #[test]
    fn a_few_rows_of_many_series_get_the_values_that_they_have() {
        let mut index = SeriesIndex::default();
        for host in 0..100 {
            index.resolve([("host", host.to_string().as_str())].into_iter()).unwrap();
        }
        index.resolve(std::iter::empty()).unwrap();
        let rows = [7, 100, 3, 7];
        let expected = [Some("7".into()), None, Some("3".into()), Some("7".into())];
        let few = index.tag_column("host", &rows).unwrap();
        assert_eq!(few.as_dictionary::<Int32Type>().values().len(), 2);
        assert_eq!(text(&few), expected);
        // Once there is an array of all values, it serves everybody.
        index.tag_column("host", &(0..100).collect::<Vec<_>>()).unwrap();
        let again = index.tag_column("host", &rows).unwrap();
        assert_eq!(again.as_dictionary::<Int32Type>().values().len(), 100);
        assert_eq!(text(&again), expected);
    }

    #[test]
    fn ranks_follow_the_text_with_nulls_first() {
        let mut index = SeriesIndex::default();
        for tags in [vec![("h", "b")], vec![("h", "a"), ("z", "1")], vec![("z", "2")], vec![("h", "a")]] {
            index.resolve(tags.into_iter()).unwrap();
        }
        // Order by (h, z): (null, 2), (a, null), (a, 1), (b, null).
        assert_eq!(index.ranks(["h", "z"].into_iter()), [3, 2, 0, 1]);
    }
}
