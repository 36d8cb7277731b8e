//! One input of a merge: where it stands, and what comes next.
//!
//! Rows of one series stand together in a sorted file, so the tags are looked at once for each run
//! of rows that share them: finding where a run ends compares dictionary keys, and only its first
//! row is compared by its text. That an input is sorted is checked as it passes by; a merge of one
//! that is not would be no merge.

use std::{cmp::Ordering, mem};

use arrow::{
    array::{Array, AsArray, DictionaryArray, RecordBatch, StringArray},
    buffer::ScalarBuffer,
    datatypes::{Int32Type, TimestampNanosecondType},
};

use super::live_rows::LiveRows;
use crate::{Error, Result};

/// An input that has at least one row left.
pub(super) struct Cursor {
    rows: LiveRows,
    /// Slot among the inputs: rows of a higher one overwrite.
    rank: usize,
    /// Whether no two rows may have one primary key.
    unique: bool,
    /// For each tag of the merge, its column here.
    tags: Vec<Option<usize>>,
    batch: RecordBatch,
    times: ScalarBuffer<i64>,
    /// Where each run of rows of one series ends in the batch, ascending.
    ends: Vec<usize>,
    run: usize,
    at: usize,
    /// The tags of the run, as bytes that are ordered as the tags are.
    series: Vec<u8>,
    /// Where the merge keeps the batch, once it needs rows of it.
    pub(super) slot: Option<usize>,
}

impl Cursor {
    /// Stands at the first row of an input, or returns `None` if it has none.
    pub(super) fn open(rows: LiveRows, rank: usize, tags: &[&str], unique: bool) -> Result<Option<Self>> {
        let schema = rows.schema();
        let mut cursor = Self {
            tags: tags.iter().map(|tag| schema.index_of(tag).ok()).collect(),
            batch: RecordBatch::new_empty(schema.clone()),
            times: ScalarBuffer::default(),
            ends: Vec::new(),
            run: 0,
            at: 0,
            series: Vec::new(),
            slot: None,
            rank,
            unique,
            rows,
        };
        Ok(if cursor.load()? { Some(cursor) } else { None })
    }

    /// Returns the batch that the next row is in.
    pub(super) fn batch(&self) -> &RecordBatch {
        &self.batch
    }

    /// Returns the place of the next row in its batch.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Returns whether the next rows of both have one primary key.
    pub(super) fn has_primary_key_of(&self, other: &Self) -> bool {
        self.time() == other.time() && self.compare_series(other).is_eq()
    }

    /// Returns how many rows come before the next row of `other`, which does not come before the
    /// next row here. At least one, and no more than the run has left. With `ties`, rows of one
    /// primary key go by rank; without, they stop.
    pub(super) fn rows_before(&self, other: Option<&Self>, ties: bool) -> usize {
        let rest = self.run_end().saturating_sub(self.at);
        let Some(other) = other.filter(|other| self.compare_series(other).is_eq()) else { return rest };
        let limit = other.time();
        let times = self.times.get(self.at..self.at + rest).unwrap_or_default();
        let goes_first = ties && self.rank < other.rank;
        leading(times, |time| time < limit || (time == limit && goes_first)).max(1)
    }

    /// Compares the series; tables without tags have but one.
    #[inline]
    fn compare_series(&self, other: &Self) -> Ordering {
        if self.series.is_empty() && other.series.is_empty() { Ordering::Equal } else { self.series.cmp(&other.series) }
    }

    /// Goes on by `rows` rows, which the run must have left; returns whether there is another.
    pub(super) fn advance(&mut self, rows: usize) -> Result<bool> {
        self.at += rows;
        if self.at < self.run_end() {
            return Ok(true);
        }
        self.run += 1;
        if self.run < self.ends.len() {
            self.enter_run(self.times.get(self.at.wrapping_sub(1)).copied())?;
            return Ok(true);
        }
        self.load()
    }

    fn time(&self) -> i64 {
        self.times.get(self.at).copied().unwrap_or(i64::MAX)
    }

    fn run_end(&self) -> usize {
        self.ends.get(self.run).copied().unwrap_or(self.at)
    }

    /// Takes the next batch; returns whether there is one.
    fn load(&mut self) -> Result<bool> {
        let Some(batch) = self.rows.next().transpose()? else { return Ok(false) };
        let previous = self.times.last().copied();
        let times = batch.column(0).as_primitive_opt::<TimestampNanosecondType>();
        self.times = times.ok_or_else(|| self.unfit("its first column is no time"))?.values().clone();
        self.batch = batch;
        self.slot = None;
        self.find_runs()?;
        (self.run, self.at) = (0, 0);
        self.enter_run(previous)?;
        Ok(true)
    }

    fn find_runs(&mut self) -> Result<()> {
        let mut is_last = vec![false; self.batch.num_rows()];
        for column in self.tags.iter().flatten() {
            mark_changes(self.tag(*column)?, &mut is_last);
        }
        if let Some(last) = is_last.last_mut() {
            *last = true;
        }
        self.ends.clear();
        self.ends.extend(is_last.iter().enumerate().filter(|(_, is_last)| **is_last).map(|(row, _)| row + 1));
        Ok(())
    }

    /// Looks at the run that begins with the next row; `previous` is the time of the row before it,
    /// if there is one.
    fn enter_run(&mut self, previous: Option<i64>) -> Result<()> {
        let mut series = mem::take(&mut self.series);
        let last_series = previous.map(|_| series.clone());
        series.clear();
        for column in &self.tags {
            let tag = column.map(|column| self.tag(column)).transpose()?;
            encode(tag.and_then(|tag| value(tag, self.at)), &mut series);
        }
        let in_order = match series.as_slice().cmp(last_series.as_deref().unwrap_or_default()) {
            Ordering::Less => false,
            Ordering::Equal => previous.is_none_or(|previous| self.may_follow(previous, self.time())),
            Ordering::Greater => true,
        };
        let times = self.times.get(self.at..self.run_end()).unwrap_or_default();
        if !in_order || !times.is_sorted_by(|a, b| self.may_follow(*a, *b)) {
            return Err(self.unfit("its rows are not in the order that the manifest says, or one is there twice"));
        }
        self.series = series;
        Ok(())
    }

    fn may_follow(&self, time: i64, next: i64) -> bool {
        time < next || (time == next && !self.unique)
    }

    fn tag(&self, column: usize) -> Result<&DictionaryArray<Int32Type>> {
        let array = self.batch.columns().get(column).and_then(|array| array.as_dictionary_opt::<Int32Type>());
        array
            .filter(|array| array.values().as_string_opt::<i32>().is_some())
            .ok_or_else(|| self.unfit("it has a tag that is no text"))
    }

    fn unfit(&self, reason: &str) -> Error {
        Error::corrupt(self.rows.path(), 0, reason)
    }
}

/// Order of the next rows: by tags and time, and by rank where they have one primary key.
impl Ord for Cursor {
    fn cmp(&self, other: &Self) -> Ordering {
        self.compare_series(other).then_with(|| self.time().cmp(&other.time())).then_with(|| self.rank.cmp(&other.rank))
    }
}

impl PartialOrd for Cursor {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Cursor {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Cursor {}

/// Returns how many of the first times fulfil `is_before`, which none does after the first that
/// does not. Quick where they are few, as where the rows of two inputs alternate.
#[inline]
fn leading(times: &[i64], is_before: impl Fn(i64) -> bool) -> usize {
    let mut end = 1;
    while times.get(end - 1).is_some_and(|time| is_before(*time)) {
        end *= 2;
    }
    let start = end / 2;
    let range = times.get(start..(end - 1).min(times.len())).unwrap_or_default();
    start + range.partition_point(|time| is_before(*time))
}

/// Returns the text of a row, or `None` where it has none.
pub(super) fn value(tag: &DictionaryArray<Int32Type>, row: usize) -> Option<&str> {
    let values: &StringArray = tag.values().as_string();
    let key = tag.key(row)?;
    (values.is_valid(key)).then(|| values.value(key))
}

/// Marks the rows whose successor has another key. Different keys may mean one text; that only
/// makes runs shorter.
fn mark_changes(tag: &DictionaryArray<Int32Type>, is_last: &mut [bool]) {
    let keys = tag.keys().values();
    for (mark, pair) in is_last.iter_mut().zip(keys.windows(2)) {
        *mark |= matches!(pair, [a, b] if a != b);
    }
    if let Some(nulls) = tag.keys().nulls().filter(|nulls| nulls.null_count() > 0) {
        for (row, mark) in is_last.iter_mut().enumerate().take(nulls.len().saturating_sub(1)) {
            *mark |= nulls.is_valid(row) != nulls.is_valid(row + 1);
        }
    }
}

/// Appends a text so that encoded lists of texts compare byte by byte as the lists do: nulls first,
/// and a text before those that begin with it.
fn encode(text: Option<&str>, series: &mut Vec<u8>) {
    let Some(text) = text else { return series.push(0) };
    series.push(1);
    for (index, part) in text.as_bytes().split(|byte| *byte == 0).enumerate() {
        if index > 0 {
            // A zero within the text, told from its end by what follows.
            series.extend_from_slice(&[0, 0xff]);
        }
        series.extend_from_slice(part);
    }
    series.extend_from_slice(&[0, 0]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_first_times_are_counted_wherever_they_end() {
        for length in 0..40 {
            let times: Vec<i64> = (0..length).collect();
            for limit in 0..=length {
                assert_eq!(leading(&times, |time| time < limit), usize::try_from(limit).unwrap(), "{length}");
            }
        }
    }

    proptest! {
        #[test]
        fn encoded_tags_are_ordered_as_the_tags_are(
            one in prop::collection::vec(prop::option::of("[\0a\u{ff}b]{0,3}"), 2),
            two in prop::collection::vec(prop::option::of("[\0a\u{ff}b]{0,3}"), 2),
        ) {
            let encoded = |tags: &[Option<String>]| {
                let mut series = Vec::new();
                tags.iter().for_each(|tag| encode(tag.as_deref(), &mut series));
                series
            };
            prop_assert_eq!(encoded(&one).cmp(&encoded(&two)), one.cmp(&two));
        }
    }
}
