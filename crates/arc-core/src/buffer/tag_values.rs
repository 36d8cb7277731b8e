//! The distinct values of one tag, and which of them each series has.
//!
//! Owns the texts, one after the other, and how they are found again. Never knows what else a
//! series has.

use std::{cmp::Ordering, hash::BuildHasher, sync::Arc};

use arrow::{
    array::{ArrayRef, DictionaryArray, Int32Array, StringArray, StringBuilder},
    buffer::{Buffer, OffsetBuffer, ScalarBuffer},
    datatypes::Int32Type,
};
use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashTable};

use super::series::SeriesId;
use crate::{Error, Result, sync::Mutex};

/// The code of a series that lacks the tag.
pub(super) const NULL: i32 = -1;

/// Runs whose values are fetched together.
const RUNS: usize = 512;

#[derive(Debug)]
pub(super) struct TagValues {
    name: Box<str>,
    codes: HashTable<i32>,
    hasher: FixedState,
    /// Texts by code, and where they begin and end.
    texts: String,
    offsets: Vec<i32>,
    /// By series; shorter than the number of series where the last ones lack the tag.
    by_series: Vec<i32>,
    /// The values as an array, for as long as none is added.
    array: Mutex<Option<ArrayRef>>,
}

impl TagValues {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            codes: HashTable::new(),
            hasher: FixedState::default(),
            texts: String::new(),
            offsets: vec![0],
            by_series: Vec::new(),
            array: Mutex::new(None),
        }
    }

    /// Returns about how many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        let numbers = self.codes.capacity() + self.offsets.capacity() + self.by_series.capacity();
        numbers * size_of::<i32>() + self.texts.capacity()
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the code of a value, which is added if it is new.
    pub(super) fn code(&mut self, value: &str) -> Result<i32> {
        let Self { codes, hasher, texts, offsets, .. } = self;
        let hash = hasher.hash_one(value);
        if let Some(code) = codes.find(hash, |code| text_of(texts, offsets, *code) == value) {
            return Ok(*code);
        }
        let code = i32::try_from(offsets.len() - 1).map_err(|_| Error::internal("more than 2^31 values of one tag"))?;
        let end = i32::try_from(texts.len() + value.len());
        let end = end.map_err(|_| too_long())?;
        texts.push_str(value);
        offsets.push(end);
        codes.insert_unique(hash, code, |code| hasher.hash_one(text_of(texts, offsets, *code)));
        *self.array.get_mut() = None;
        Ok(code)
    }

    /// Returns the code of a value, if it has one.
    pub(super) fn find(&self, value: &str) -> Option<i32> {
        let is_its = |code: &i32| text_of(&self.texts, &self.offsets, *code) == value;
        self.codes.find(self.hasher.hash_one(value), is_its).copied()
    }

    /// Gives a series, which is newer than all that have the tag, its value.
    pub(super) fn assign(&mut self, series: SeriesId, code: i32) {
        self.by_series.resize(series as usize, NULL);
        self.by_series.push(code);
    }

    pub(super) fn of(&self, series: SeriesId) -> i32 {
        self.by_series.get(series as usize).copied().unwrap_or(NULL)
    }

    /// Compares two codes by their texts, null first.
    pub(super) fn compare(&self, a: i32, b: i32) -> Ordering {
        match (a, b) {
            _ if a == b => Ordering::Equal,
            (NULL, _) => Ordering::Less,
            (_, NULL) => Ordering::Greater,
            _ => self.text(a).cmp(self.text(b)),
        }
    }

    /// Returns how many bytes all values begin with.
    pub(super) fn common_prefix(&self) -> usize {
        let first = self.text(0).as_bytes();
        let equal = |text: &str| first.iter().zip(text.as_bytes()).take_while(|(a, b)| a == b).count();
        let texts = self.offsets.array_windows().map(|[start, end]| slice(&self.texts, *start, *end));
        texts.map(equal).min().unwrap_or(0)
    }

    /// Returns the eight bytes of a value after so many, as a number that is less where they are; 0
    /// for null.
    pub(super) fn word(&self, code: i32, prefix: usize) -> u64 {
        let rest = self.text(code).as_bytes().get(prefix..).unwrap_or_default();
        let bytes = rest.first_chunk().copied().unwrap_or_else(|| {
            let mut bytes = [0; 8];
            bytes.iter_mut().zip(rest).for_each(|(byte, of_text)| *byte = *of_text);
            bytes
        });
        u64::from_be_bytes(bytes)
    }

    /// Returns the value that has a code.
    pub(super) fn value(&self, code: u32) -> &str {
        i32::try_from(code).map_or("", |code| self.text(code))
    }

    fn text(&self, code: i32) -> &str {
        text_of(&self.texts, &self.offsets, code)
    }

    /// Returns rows with these codes.
    pub(super) fn column(&self, mut codes: Vec<i32>) -> Result<ArrayRef> {
        let values = self.values_array(&mut codes)?;
        dictionary(codes, values)
    }

    /// Returns rows of series, of which so many follow each other.
    pub(super) fn column_of_runs(&self, runs: &[(SeriesId, u32)]) -> Result<ArrayRef> {
        let rows = runs.iter().map(|(_, rows)| *rows as usize).sum();
        let mut codes = Vec::with_capacity(rows);
        if self.has_array_for(rows) {
            runs.iter().for_each(|(series, rows)| codes.resize(codes.len() + *rows as usize, self.of(*series)));
            return self.column(codes);
        }
        // Each value as often as runs of it come: in the order of their tags, series of one value
        // mostly stand together.
        let (mut offsets, mut texts) = (vec![0], Vec::new());
        let (mut last, mut index) = (NULL, NULL);
        for runs in runs.chunks(RUNS) {
            for ((_, rows), code) in runs.iter().zip(self.fetch(runs)) {
                if code != last {
                    (last, index) = (code, NULL);
                    if code != NULL {
                        index = i32::try_from(offsets.len() - 1).unwrap_or(NULL);
                        texts.extend_from_slice(self.text(code).as_bytes());
                        offsets.push(i32::try_from(texts.len()).map_err(|_| too_long())?);
                    }
                }
                codes.resize(codes.len() + *rows as usize, index);
            }
        }
        dictionary(codes, string_array(offsets, Buffer::from_vec(texts))?)
    }

    /// Returns the codes of some runs. What is going to be read of them is near by then: each step
    /// is done for all of them before the next one, so that the processor need not wait for one
    /// after the other.
    fn fetch(&self, runs: &[(SeriesId, u32)]) -> Vec<i32> {
        let codes: Vec<i32> = runs.iter().map(|(series, _)| self.of(*series)).collect();
        let starts: Vec<i32> = codes
            .iter()
            .map(|code| usize::try_from(*code).ok().and_then(|code| self.offsets.get(code)).copied().unwrap_or(0))
            .collect();
        let byte = |start: &i32| {
            usize::try_from(*start).ok().and_then(|start| self.texts.as_bytes().get(start)).copied().unwrap_or(0)
        };
        std::hint::black_box(starts.iter().fold(0, |all, start| all | byte(start)));
        codes
    }

    /// Returns the values that `codes` stand for, and makes the codes indices among them.
    ///
    /// These are all values of the tag, as one array for all callers, unless that had to be made
    /// for a few rows.
    fn values_array(&self, codes: &mut [i32]) -> Result<ArrayRef> {
        if !self.has_array_for(codes.len()) {
            return Ok(self.values_of(codes));
        }
        let mut array = self.array.lock();
        if let Some(array) = &*array {
            return Ok(Arc::clone(array));
        }
        let all = string_array(self.offsets.clone(), Buffer::from_slice_ref(&self.texts))?;
        Ok(Arc::clone(array.insert(all)))
    }

    /// Returns whether there is an array of all values, or would be too little work for so many
    /// rows to go without.
    fn has_array_for(&self, rows: usize) -> bool {
        (self.offsets.len() - 1) / 4 <= rows || self.array.lock().is_some()
    }

    fn values_of(&self, codes: &mut [i32]) -> ArrayRef {
        let mut indices: HashMap<i32, i32, FixedState> = HashMap::default();
        let mut values = StringBuilder::new();
        for code in codes.iter_mut().filter(|code| **code != NULL) {
            let next = i32::try_from(indices.len()).unwrap_or(NULL);
            *code = *indices.entry(*code).or_insert_with_key(|code| {
                values.append_value(self.text(*code));
                next
            });
        }
        Arc::new(values.finish())
    }
}

fn text_of<'t>(texts: &'t str, offsets: &[i32], code: i32) -> &'t str {
    let code = usize::try_from(code).unwrap_or(usize::MAX - 1);
    match (offsets.get(code), offsets.get(code + 1)) {
        (Some(start), Some(end)) => slice(texts, *start, *end),
        _ => "",
    }
}

fn slice(texts: &str, start: i32, end: i32) -> &str {
    let index = |offset: i32| usize::try_from(offset).unwrap_or(usize::MAX);
    texts.get(index(start)..index(end)).unwrap_or_default()
}

fn too_long() -> Error {
    Error::internal("the values of one tag take more than 2 GiB")
}

fn string_array(offsets: Vec<i32>, texts: Buffer) -> Result<ArrayRef> {
    Ok(Arc::new(StringArray::try_new(OffsetBuffer::new(ScalarBuffer::from(offsets)), texts, None)?))
}

/// Returns rows with these indices among values, or without any.
fn dictionary(mut indices: Vec<i32>, values: ArrayRef) -> Result<ArrayRef> {
    let nulls = indices.contains(&NULL).then(|| indices.iter().map(|index| *index != NULL).collect());
    if nulls.is_some() {
        indices.iter_mut().for_each(|index| *index = (*index).max(0));
    }
    let keys = Int32Array::try_new(ScalarBuffer::from(indices), nulls)?;
    Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(keys, values)?))
}
