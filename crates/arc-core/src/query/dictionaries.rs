//! Dictionaries of answers, in which each text is once.
//!
//! Where rows of several files come together, in a sort above all, Arrow puts their dictionaries
//! one after the other, and a host is in as many places as there were files. Arrow allows that;
//! pandas, which calls dictionaries categories, refuses to make a frame of it. Never changes what a
//! row says.

use std::{collections::HashMap, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, AsArray, DictionaryArray, Int32Array, RecordBatch, UInt32Array},
    compute::take,
    datatypes::{DataType, Int32Type, SchemaRef},
};

use crate::{Error, Result};

/// Looks at the dictionaries of one answer.
#[derive(Debug)]
pub(super) struct Dictionaries {
    columns: Vec<DictionaryColumn>,
}

/// A column of texts in a dictionary, by its index.
#[derive(Debug)]
struct DictionaryColumn {
    index: usize,
    /// Mostly one batch after the other has the same dictionary.
    last: Option<KnownDictionary>,
}

/// A dictionary that was looked at.
#[derive(Debug, Clone)]
struct KnownDictionary {
    values: ArrayRef,
    /// The texts once, and the index among them of each of `values`; `None` if these are different
    /// already.
    distinct: Option<(ArrayRef, Arc<[i32]>)>,
}

impl Dictionaries {
    pub(super) fn of(schema: &SchemaRef) -> Self {
        let is_text = |data_type: &DataType| match data_type {
            DataType::Dictionary(key, value) => **key == DataType::Int32 && **value == DataType::Utf8,
            _ => false,
        };
        let fields = schema.fields().iter().enumerate().filter(|(_, field)| is_text(field.data_type()));
        Self { columns: fields.map(|(index, _)| DictionaryColumn { index, last: None }).collect() }
    }

    /// Returns the same rows.
    pub(super) fn distinct(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        let mut changed: Option<Vec<ArrayRef>> = None;
        for column in &mut self.columns {
            let texts = batch.columns().get(column.index).and_then(|texts| texts.as_dictionary_opt::<Int32Type>());
            let Some(texts) = texts else { continue };
            let Some(distinct) = column.distinct(texts)? else { continue };
            let columns = changed.get_or_insert_with(|| batch.columns().to_vec());
            if let Some(slot) = columns.get_mut(column.index) {
                *slot = Arc::new(distinct);
            }
        }
        match changed {
            Some(columns) => Ok(RecordBatch::try_new(batch.schema(), columns)?),
            None => Ok(batch),
        }
    }
}

impl DictionaryColumn {
    /// Returns the texts over another dictionary, if theirs has one of them twice.
    fn distinct(&mut self, texts: &DictionaryArray<Int32Type>) -> Result<Option<DictionaryArray<Int32Type>>> {
        let is_same =
            |known: &&KnownDictionary| std::ptr::addr_eq(Arc::as_ptr(&known.values), Arc::as_ptr(texts.values()));
        let known = match self.last.as_ref().filter(is_same) {
            Some(known) => known.clone(),
            None => KnownDictionary::look_at(texts.values())?,
        };
        let distinct = known.distinct.as_ref().map(|(values, indices)| {
            // What stands where a text is null may be no place at all.
            let index = |key: i32| usize::try_from(key).ok().and_then(|key| indices.get(key).copied()).unwrap_or(0);
            let keys: Int32Array = texts.keys().unary(index);
            DictionaryArray::try_new(keys, Arc::clone(values))
        });
        let distinct = distinct.transpose()?;
        self.last = Some(known);
        Ok(distinct)
    }
}

impl KnownDictionary {
    fn look_at(values: &ArrayRef) -> Result<Self> {
        let texts = values.as_string::<i32>();
        let mut firsts: Vec<u32> = Vec::new();
        let mut indices: Vec<i32> = Vec::with_capacity(texts.len());
        let mut seen: HashMap<Option<&str>, i32, foldhash::fast::RandomState> = HashMap::default();
        for (at, text) in texts.iter().enumerate() {
            let next = i32::try_from(firsts.len()).map_err(|_| Error::internal("a dictionary has too many texts"))?;
            let index = *seen.entry(text).or_insert(next);
            if index == next {
                firsts.push(u32::try_from(at).map_err(|_| Error::internal("a dictionary has too many texts"))?);
            }
            indices.push(index);
        }
        let distinct = match firsts.len() == texts.len() {
            true => None,
            false => Some((take(values, &UInt32Array::from(firsts), None)?, indices.into())),
        };
        Ok(Self { values: Arc::clone(values), distinct })
    }
}

#[cfg(test)]
mod tests {
    use arrow::{
        array::{Int64Array, StringArray},
        datatypes::Schema,
    };

    use super::*;

    fn batch(texts: Vec<&str>, keys: Vec<Option<i32>>) -> RecordBatch {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..keys.len() as i64));
        let texts = DictionaryArray::new(Int32Array::from(keys), Arc::new(StringArray::from(texts)));
        RecordBatch::try_from_iter([("n", numbers), ("host", Arc::new(texts) as ArrayRef)]).unwrap()
    }

    /// Returns the dictionary and the texts of the rows.
    fn shown(batch: &RecordBatch) -> (Vec<String>, Vec<Option<String>>) {
        let texts = batch.column(1).as_dictionary::<Int32Type>();
        let rows = texts.downcast_dict::<StringArray>().unwrap().into_iter().map(|text| text.map(str::to_owned));
        (texts.values().as_string::<i32>().iter().map(|text| text.unwrap().to_owned()).collect(), rows.collect())
    }

    #[test]
    fn each_text_is_once_and_rows_stay_what_they_are() {
        let keys = vec![Some(0), Some(3), None, Some(2), Some(4), Some(1)];
        let cases = [
            (vec!["a", "b", "c", "d", "e"], vec!["a", "b", "c", "d", "e"]),
            (vec!["a", "b", "a", "b", "c"], vec!["a", "b", "c"]),
            (vec!["", "", "", "", ""], vec![""]),
        ];
        for (texts, expected) in cases {
            let whole = batch(texts, keys.clone());
            let mut dictionaries = Dictionaries::of(&whole.schema());
            // Parts of one batch have one dictionary.
            for part in [whole.clone(), whole.slice(1, 3), whole.slice(3, 0), batch(vec!["x", "x"], vec![Some(1)])] {
                let found = dictionaries.distinct(part.clone()).unwrap();
                assert_eq!((shown(&found).1, found.column(0)), (shown(&part).1, part.column(0)));
                let dictionary = shown(&found).0;
                assert!(dictionary == expected || dictionary == ["x"], "{dictionary:?}");
            }
        }
    }

    #[test]
    fn other_columns_are_left_alone() {
        let empty = RecordBatch::new_empty(Arc::new(Schema::empty()));
        assert_eq!(Dictionaries::of(&empty.schema()).distinct(empty.clone()).unwrap(), empty);
        let whole = batch(vec!["a", "b"], vec![Some(0), None]);
        let found = Dictionaries::of(&whole.schema()).distinct(whole.clone()).unwrap();
        assert!(Arc::ptr_eq(found.column(1), whole.column(1)));
    }
}
