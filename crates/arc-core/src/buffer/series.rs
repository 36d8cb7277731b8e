//! The series of one table: tag sets, each with a number that rows carry instead of the tags.
//!
//! Knows tags by name, not by column, because a series may be seen before its columns are part of
//! the schema. Never forgets a series while the table is open, and never touches the disk: it is
//! rebuilt from the rows that arrive. A table may have a million of them: nothing here is allocated
//! for one series alone.

use std::{cmp::Ordering, hash::BuildHasher, ops::Range, sync::Arc};

use arrow::{
    array::{ArrayRef, DictionaryArray, Int32Array, StringArray},
    datatypes::Int32Type,
};
use foldhash::fast::FixedState;
use hashbrown::HashTable;

use super::tag_values::TagValues;
use crate::{Error, Result, sync::Mutex};

/// Number of a series within its table; the first is 0.
pub(crate) type SeriesId = u32;

/// One tag, and which series have which of its values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tag<'a>(&'a TagValues);

impl<'a> Tag<'a> {
    pub(crate) fn name(&self) -> &'a str {
        self.0.name()
    }

    /// Returns the number of the value that a series has, if it has the tag.
    #[inline]
    pub(crate) fn number(&self, series: SeriesId) -> Option<u32> {
        u32::try_from(self.0.of(series)).ok()
    }

    /// Returns the value of a number.
    pub(crate) fn value(&self, number: u32) -> &'a str {
        self.0.value(number)
    }
}

/// All series of one table.
#[derive(Debug, Default)]
pub(crate) struct SeriesIndex {
    tags: Vec<TagValues>,
    /// Series by their sorted (tag, code) pairs.
    known: HashTable<SeriesId>,
    /// The pairs of all series, one after the other, and where those of each end.
    pairs: Vec<(u32, i32)>,
    ends: Vec<u32>,
    hasher: FixedState,
    scratch: Vec<(u32, i32)>,
    order: Mutex<SeriesOrder>,
}

/// Series in the order of their tags. Sorting a million of them anew for each flush would take
/// longer than the rest of it.
#[derive(Debug, Default)]
struct SeriesOrder {
    /// What they are sorted by.
    tags: Vec<Box<str>>,
    series: Arc<Vec<SeriesId>>,
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

    /// Returns the series with exactly these tags if it is known; `pairs` is for the moment.
    pub(crate) fn find<'t>(
        &self,
        tags: impl Iterator<Item = (&'t str, &'t str)>,
        pairs: &mut Vec<(u32, i32)>,
    ) -> Option<SeriesId> {
        pairs.clear();
        for (key, value) in tags {
            let (tag, values) = (0..).zip(&self.tags).find(|(_, tag)| tag.name() == key)?;
            pairs.push((tag, values.find(value)?));
        }
        pairs.sort_unstable();
        let hash = self.hasher.hash_one(pairs.as_slice());
        self.known.find(hash, |id| pairs_of(&self.pairs, &self.ends, *id) == pairs).copied()
    }

    fn tag(&mut self, name: &str) -> u32 {
        let found = self.tags.iter().position(|tag| tag.name() == name).unwrap_or_else(|| {
            self.tags.push(TagValues::new(name));
            self.tags.len() - 1
        });
        // Column names are limited by the schema to far fewer than 2^32.
        u32::try_from(found).unwrap_or(u32::MAX)
    }

    fn resolve_pairs(&mut self, pairs: &[(u32, i32)]) -> Result<SeriesId> {
        let Self { known, pairs: all, ends, hasher, .. } = self;
        let hash = hasher.hash_one(pairs);
        if let Some(id) = known.find(hash, |id| pairs_of(all, ends, *id) == pairs) {
            return Ok(*id);
        }
        let id = u32::try_from(ends.len())
            .ok()
            .filter(|id| *id < u32::MAX)
            .ok_or_else(|| Error::internal("more than 2^32 series in one table"))?;
        let end = u32::try_from(all.len() + pairs.len())
            .map_err(|_| Error::internal("more than 2^32 tags of all series of one table"))?;
        all.extend_from_slice(pairs);
        ends.push(end);
        known.insert_unique(hash, id, |id| hasher.hash_one(pairs_of(all, ends, *id)));
        for (tag, code) in pairs {
            if let Some(values) = self.tags.get_mut(*tag as usize) {
                values.assign(id, *code);
            }
        }
        Ok(id)
    }

    /// Returns how many series there are, and about how many bytes they take.
    pub(crate) fn size(&self) -> (u64, u64) {
        let of = |capacity: usize, bytes: usize| capacity.saturating_mul(bytes);
        let ids = self.known.capacity() + self.ends.capacity() + self.order.lock().series.capacity();
        let own = of(ids, size_of::<SeriesId>()) + of(self.pairs.capacity(), size_of::<(u32, i32)>());
        let tags: usize = self.tags.iter().map(TagValues::bytes).sum();
        (self.ends.len() as u64, (own + tags) as u64)
    }

    /// Returns all tags that any series has.
    pub(crate) fn tags(&self) -> impl Iterator<Item = Tag<'_>> {
        self.tags.iter().map(Tag)
    }

    fn values(&self, name: &str) -> Option<&TagValues> {
        self.tags.iter().find(|tag| tag.name() == name)
    }

    /// Returns the tag column `name` for rows of these series.
    pub(crate) fn tag_column(&self, name: &str, series: &[SeriesId]) -> Result<ArrayRef> {
        let Some(tag) = self.values(name) else { return null_column(series.len()) };
        tag.column(series.iter().map(|id| tag.of(*id)).collect())
    }

    /// Returns whether each of these series has a value of the tag `name`.
    #[cfg(feature = "query")]
    pub(crate) fn all_have(&self, name: &str, series: &[SeriesId]) -> bool {
        self.values(name).is_some_and(|tag| series.iter().all(|id| tag.of(*id) != super::tag_values::NULL))
    }

    /// Returns the tag column `name` for rows that are given as series and how many of them follow
    /// each other.
    pub(crate) fn tag_runs(&self, name: &str, runs: &[(SeriesId, u32)]) -> Result<ArrayRef> {
        match self.values(name) {
            Some(tag) => tag.column_of_runs(runs),
            None => null_column(runs.iter().map(|(_, rows)| *rows as usize).sum()),
        }
    }

    /// Returns all series in the order of the tags `names` (nulls first), in which series of equal
    /// tags stand together.
    pub(crate) fn in_order<'t>(&self, names: impl Iterator<Item = &'t str>) -> Arc<Vec<SeriesId>> {
        let names: Vec<&str> = names.collect();
        let mut order = self.order.lock();
        if !order.tags.iter().map(AsRef::as_ref).eq(names.iter().copied()) {
            *order = SeriesOrder { tags: names.iter().copied().map(Box::from).collect(), series: Arc::default() };
        }
        let sorted = u32::try_from(order.series.len()).unwrap_or(u32::MAX);
        let all = u32::try_from(self.ends.len()).unwrap_or(u32::MAX);
        if sorted < all {
            let tags: Vec<&TagValues> = names.iter().filter_map(|name| self.values(name)).collect();
            let series = Arc::make_mut(&mut order.series);
            series.extend(sort_new(&tags, sorted..all));
            if sorted > 0 {
                // Two runs, which this sort merges.
                series.sort_by(|a, b| compare(&tags, *a, *b));
            }
        }
        Arc::clone(&order.series)
    }
}

fn pairs_of<'p>(pairs: &'p [(u32, i32)], ends: &[u32], series: SeriesId) -> &'p [(u32, i32)] {
    let end =
        |series: Option<SeriesId>| series.and_then(|series| ends.get(series as usize)).map_or(0, |end| *end as usize);
    pairs.get(end(series.checked_sub(1))..end(Some(series))).unwrap_or_default()
}

/// Sorts series by as much of the first tag as a word holds, where others would have to be fetched
/// from all over the memory.
fn sort_new(tags: &[&TagValues], new: Range<SeriesId>) -> impl Iterator<Item = SeriesId> {
    let first = tags.first().map(|tag| (tag, tag.common_prefix()));
    let word = |series| first.map_or(0, |(tag, prefix)| tag.word(tag.of(series), prefix));
    let mut sorted: Vec<(u64, SeriesId)> = new.map(|series| (word(series), series)).collect();
    sorted.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| compare(tags, a.1, b.1)));
    sorted.into_iter().map(|(_, series)| series)
}

fn compare(tags: &[&TagValues], a: SeriesId, b: SeriesId) -> Ordering {
    tags.iter().map(|tag| tag.compare(tag.of(a), tag.of(b))).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
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
        assert_eq!(index.ends.len(), 2);
        let find = |tags: &[(&str, &str)]| index.find(tags.iter().copied(), &mut Vec::new());
        assert_eq!(find(&[("zone", "x"), ("host", "a")]), Some(0));
        assert_eq!(find(&[("host", "a")]), Some(1));
        for unknown in [&[][..], &[("zone", "x")], &[("host", "x")], &[("rack", "a")]] {
            assert_eq!(find(unknown), None, "{unknown:?}");
        }
    }

    #[test]
    fn what_series_take_grows_with_them() {
        let mut index = SeriesIndex::default();
        assert_eq!(index.size(), (0, 0));
        for host in 0..10_000 {
            index.resolve([("host", format!("a host with number {host}").as_str())].into_iter()).unwrap();
        }
        let (series, bytes) = index.size();
        assert_eq!(series, 10_000);
        assert!((400_000..2_000_000).contains(&bytes), "{bytes}");
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
    fn series_are_in_the_order_of_their_texts_with_nulls_first() {
        let mut index = SeriesIndex::default();
        let order = |index: &SeriesIndex, tags: &[&str]| index.in_order(tags.iter().copied()).to_vec();
        assert!(order(&index, &["h", "z"]).is_empty());
        for tags in [vec![("h", "b")], vec![("h", "a"), ("z", "1")], vec![("z", "2")], vec![("h", "a")]] {
            index.resolve(tags.into_iter()).unwrap();
        }
        // (null, 2), (a, null), (a, 1), (b, null).
        assert_eq!(order(&index, &["h", "z"]), [2, 3, 1, 0]);
        // New ones take their places among those that were sorted before.
        for tags in [vec![("h", "aa")], vec![], vec![("z", "10"), ("h", "a")], vec![("h", "c")]] {
            index.resolve(tags.into_iter()).unwrap();
        }
        assert_eq!(order(&index, &["h", "z"]), [5, 2, 3, 1, 6, 4, 0, 7]);
        // Other tags, another order: (h, z, y), then (z, h).
        index.resolve([("h", "a"), ("y", "0")].into_iter()).unwrap();
        assert_eq!(order(&index, &["h", "z", "y"]), [5, 2, 3, 8, 1, 6, 4, 0, 7]);
        assert_eq!(order(&index, &["z", "h"]), [5, 3, 8, 4, 0, 7, 1, 6, 2]);
    }

    #[test]
    fn many_series_keep_their_numbers() {
        let mut index = SeriesIndex::default();
        let mut known = std::collections::BTreeMap::new();
        for n in 0..10_000 {
            let (host, rack) = (format!("host{}", n % 3_000), (n % 7).to_string());
            let tags = [("host", host.as_str()), ("rack", rack.as_str())];
            let tags = tags.get(n % 3..).unwrap_or_default();
            let next = u32::try_from(known.len()).unwrap();
            let expected = *known.entry(format!("{tags:?}")).or_insert(next);
            assert_eq!(index.resolve(tags.iter().copied()).unwrap(), expected, "{tags:?}");
        }
        assert_eq!(index.in_order(["host", "rack"].into_iter()).len(), known.len());
    }
}
