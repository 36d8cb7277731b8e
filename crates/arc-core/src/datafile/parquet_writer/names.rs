//! Columns by name.
//!
//! Rows mostly name the same columns in the same order: after a column the one that came there last
//! time is tried first.

use arrow::datatypes::Schema;
use hashbrown::HashMap;

/// Finds indices by names.
#[derive(Debug)]
pub(super) struct ColumnNames {
    names: Vec<String>,
    indices: HashMap<String, usize, foldhash::fast::FixedState>,
    /// By an index plus one, 0 for the beginning of a row: the index that came next last time.
    follows: Vec<usize>,
}

impl ColumnNames {
    pub(super) fn new(schema: &Schema) -> Self {
        let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
        Self { indices: names.iter().cloned().zip(0..).collect(), follows: (0..=names.len()).collect(), names }
    }

    /// Returns the place of a name that comes after the index `last`.
    #[inline]
    pub(super) fn find(&mut self, name: &str, last: Option<usize>) -> Option<usize> {
        let next = self.follows.get_mut(last.map_or(0, |last| last + 1))?;
        if self.names.get(*next).is_some_and(|expected| expected == name) {
            return Some(*next);
        }
        let index = *self.indices.get(name)?;
        *next = index;
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field};

    use super::*;

    #[test]
    fn names_are_found_in_any_order() {
        let fields = ["a", "b", "c"].map(|name| Field::new(name, DataType::Int64, true));
        let mut names = ColumnNames::new(&Schema::new(fields.to_vec()));
        for row in ["abc", "abc", "cab", "c", "cba", "bb", "axb", "", "acb"] {
            let mut last = None;
            for name in row.split("").filter(|name| !name.is_empty()) {
                let index = names.find(name, last);
                assert_eq!(index, "abc".find(name), "{name} in {row}");
                last = index;
            }
        }
    }
}
