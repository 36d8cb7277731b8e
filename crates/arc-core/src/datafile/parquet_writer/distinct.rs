//! The distinct values of a column, up to a limit.

use arrow::{
    array::{Array, ArrayRef, AsArray},
    datatypes::{DataType, Float64Type, Int32Type, Int64Type, UInt64Type},
};
use hashbrown::HashSet;

use super::{DistinctValues, Value};
use crate::arrays::TextDictionary;

/// Collects the distinct values of one column of one file.
#[derive(Debug)]
pub(super) struct Distinct {
    max_values: usize,
    kind: DistinctKind,
    found: Option<DistinctSet>,
}

#[derive(Debug, Clone, Copy)]
enum DistinctKind {
    Text,
    Boolean,
    Integer,
    Unsigned,
    Float,
}

#[derive(Debug)]
enum DistinctSet {
    Texts(Box<TextDictionary>),
    /// Bits of numbers and booleans.
    Words(HashSet<u64, foldhash::fast::FixedState>),
}

impl Distinct {
    /// `data_type` is the type in which the column is encoded. Returns `None` for one whose values
    /// cannot be collected.
    pub(super) fn new(data_type: &DataType, max_values: usize) -> Option<Self> {
        let kind = match data_type {
            DataType::Utf8 => DistinctKind::Text,
            DataType::Dictionary(key, value) if (&**key, &**value) == (&DataType::Int32, &DataType::Utf8) => {
                DistinctKind::Text
            }
            DataType::Boolean => DistinctKind::Boolean,
            DataType::Int64 => DistinctKind::Integer,
            DataType::UInt64 => DistinctKind::Unsigned,
            DataType::Float64 => DistinctKind::Float,
            _ => return None,
        };
        let found = match kind {
            DistinctKind::Text => DistinctSet::Texts(Box::default()),
            _ => DistinctSet::Words(HashSet::default()),
        };
        Some(Self { max_values, kind, found: Some(found) })
    }

    /// Takes in more values.
    pub(super) fn update(&mut self, array: &ArrayRef) {
        let count = match &mut self.found {
            None => return,
            Some(DistinctSet::Texts(texts)) => {
                add_texts(array, texts);
                texts.len()
            }
            Some(DistinctSet::Words(words)) => {
                add_words(array, self.kind, words);
                words.len()
            }
        };
        if count > self.max_values {
            self.found = None;
        }
    }

    /// Returns what was found.
    pub(super) fn finish(self, column: &str) -> DistinctValues {
        let complete = self.found.is_some();
        let mut values: Vec<Value<'static>> = match self.found {
            None => Vec::new(),
            Some(DistinctSet::Texts(texts)) => {
                let text = |index| Value::from(String::from_utf8_lossy(texts.text(index)).into_owned());
                (0..).take(texts.len()).map(text).collect()
            }
            Some(DistinctSet::Words(words)) => words.into_iter().map(|word| self.kind.value(word)).collect(),
        };
        values.sort_by(order);
        DistinctValues { column: column.to_owned(), values, complete }
    }
}

impl DistinctKind {
    fn value(self, word: u64) -> Value<'static> {
        match self {
            Self::Boolean => Value::Boolean(word != 0),
            Self::Unsigned => Value::Unsigned(word),
            Self::Float => Value::Float(f64::from_bits(word)),
            Self::Integer | Self::Text => Value::Integer(word.cast_signed()),
        }
    }
}

/// Orders values of one kind.
fn order(a: &Value<'_>, b: &Value<'_>) -> std::cmp::Ordering {
    match (a, b) {
        (Value::Text(a), Value::Text(b)) => a.cmp(b),
        (Value::Integer(a), Value::Integer(b)) => a.cmp(b),
        (Value::Unsigned(a), Value::Unsigned(b)) => a.cmp(b),
        (Value::Float(a), Value::Float(b)) => a.total_cmp(b),
        (Value::Boolean(a), Value::Boolean(b)) => a.cmp(b),
        _ => std::cmp::Ordering::Equal,
    }
}

fn add_texts(array: &ArrayRef, texts: &mut TextDictionary) {
    let Some(tags) = array.as_dictionary_opt::<Int32Type>() else {
        // Neighbours are often equal.
        let mut last = None;
        for text in array.as_string::<i32>().iter().flatten() {
            if last != Some(text) {
                texts.index(text.as_bytes());
                last = Some(text);
            }
        }
        return;
    };
    let values = tags.values().as_string::<i32>();
    let mut last = None;
    for key in tags.keys_iter().flatten() {
        if last != Some(key) && values.is_valid(key) {
            texts.index(values.value(key).as_bytes());
        }
        last = Some(key);
    }
}

fn add_words(array: &ArrayRef, kind: DistinctKind, words: &mut HashSet<u64, foldhash::fast::FixedState>) {
    let mut last = None;
    let mut add = |word: Option<u64>| {
        if word.is_some() && word != last {
            words.extend(word);
            last = word;
        }
    };
    match kind {
        DistinctKind::Boolean => array.as_boolean().iter().for_each(|value| add(value.map(u64::from))),
        DistinctKind::Unsigned => array.as_primitive::<UInt64Type>().iter().for_each(add),
        DistinctKind::Float => {
            array.as_primitive::<Float64Type>().iter().for_each(|value| add(value.map(f64::to_bits)))
        }
        DistinctKind::Integer | DistinctKind::Text => {
            array.as_primitive::<Int64Type>().iter().for_each(|value| add(value.map(i64::cast_unsigned)));
        }
    }
}
