//! Shapes: columns as staged rows need them, shared by the tables that have the same.
//!
//! Ten thousand tables often have the same few columns. Where the lines of a request are of a
//! thousand tables, the columns of a thousand tables would have to come from memory; a table's
//! shape is a number, and its columns are at hand since the last line. A shape never changes: a
//! table that gets another column gets another shape.

use std::{
    hash::{BuildHasher as _, Hash as _, Hasher as _},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use arc_swap::ArcSwap;
use foldhash::fast::FixedState;
use hashbrown::HashTable;

use super::ColumnIndex;
use crate::{
    buffer::Scalar,
    model::{Column, ColumnKind, TableSchema},
    sync::Mutex,
};

/// Most columns of a shape, and of all shapes of a database: they stay for as long as it is open.
/// Tables that have no shape have no staged rows.
const MAX_COLUMNS: usize = 64;
const MAX_ALL_COLUMNS: usize = 64 << 10;

/// The columns of some tables.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) index: ColumnIndex,
    columns: Vec<Column>,
}

impl Shape {
    /// Returns whether a column is a field whose type is the value's own.
    #[inline(always)]
    pub(crate) fn takes(&self, column: usize, value: &Scalar<'_>) -> bool {
        let column = self.columns.get(column);
        column.is_some_and(|column| column.kind == ColumnKind::Field && value.is_of(&column.data_type))
    }
}

/// All shapes of a database.
#[derive(Debug, Default)]
pub(crate) struct Shapes {
    by_number: ArcSwap<Vec<Arc<Shape>>>,
    known: Mutex<KnownShapes>,
}

/// How shapes are found.
#[derive(Debug, Default)]
struct KnownShapes {
    numbers: HashTable<usize>,
    columns: usize,
}

impl Shapes {
    /// Returns those that there are by now, by their numbers.
    pub(crate) fn load(&self) -> Arc<Vec<Arc<Shape>>> {
        self.by_number.load_full()
    }

    /// Returns the number of a table's shape, made if it is new.
    fn find(&self, schema: &TableSchema, index: &ColumnIndex) -> Option<usize> {
        let width = schema.columns.len();
        if !schema.has_primary_key || width > MAX_COLUMNS {
            return None;
        }
        let mut known = self.known.lock();
        let KnownShapes { numbers, columns } = &mut *known;
        let all = self.load();
        let is_its = |number: &usize| all.get(*number).is_some_and(|shape| shape.columns == schema.columns);
        let hash = hash(&schema.columns);
        if let Some(number) = numbers.find(hash, is_its) {
            return Some(*number);
        }
        if *columns + width > MAX_ALL_COLUMNS {
            return None;
        }
        *columns += width;
        let number = all.len();
        numbers.insert_unique(hash, number, |number| all.get(*number).map_or(0, |shape| self::hash(&shape.columns)));
        let shape = Arc::new(Shape { index: index.clone(), columns: schema.columns.clone() });
        self.by_number.store(Arc::new(all.iter().cloned().chain([shape]).collect()));
        Some(number)
    }
}

fn hash(columns: &[Column]) -> u64 {
    let mut hasher = FixedState::default().build_hasher();
    columns.iter().for_each(|column| (&column.name, &column.data_type).hash(&mut hasher));
    hasher.finish()
}

/// The number of a table's shape, if it has any.
#[derive(Debug, Default)]
pub(crate) struct TableShape(AtomicU32);

impl TableShape {
    /// Returns the number. The table may have got further columns since.
    #[inline(always)]
    pub(crate) fn get(&self) -> Option<usize> {
        (self.0.load(Ordering::Acquire) as usize).checked_sub(1)
    }

    /// Looks for the shape of what the table is now.
    pub(super) fn set(&self, shapes: &Shapes, schema: &TableSchema, index: &ColumnIndex) {
        let number = shapes.find(schema, index).and_then(|number| u32::try_from(number + 1).ok());
        self.0.store(number.unwrap_or(0), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Layout;
    use arrow::datatypes::DataType;

    fn number(shapes: &Shapes, has_primary_key: bool, columns: &[(&str, DataType)]) -> Option<usize> {
        let column = |(name, data_type): &(&str, DataType)| Column {
            name: (*name).into(),
            kind: ColumnKind::Field,
            data_type: data_type.clone(),
        };
        let columns = columns.iter().map(column).collect();
        let layout =
            Layout::new(Arc::new(TableSchema { database: "d".into(), table: "t".into(), has_primary_key, columns }));
        let shape = TableShape::default();
        shape.set(shapes, &layout.schema, &layout.columns);
        shape.get()
    }

    #[test]
    fn tables_with_the_same_columns_have_one_shape() {
        use DataType::{Float64, Int64};
        let shapes = Shapes::default();
        let cases: [(&[(&str, DataType)], usize); 6] = [
            (&[("a", Float64)], 0),
            (&[("a", Int64)], 1),
            (&[("a", Float64), ("b", Int64)], 2),
            (&[("b", Int64), ("a", Float64)], 3),
            (&[("a", Float64)], 0),
            (&[("b", Int64), ("a", Float64)], 3),
        ];
        for (columns, expected) in cases {
            assert_eq!(number(&shapes, true, columns), Some(expected), "{columns:?}");
        }
        assert_eq!(number(&shapes, false, &[("a", Int64)]), None, "a table that appends has no staged rows");
        let all = shapes.load();
        assert_eq!(all.len(), 4);
        assert_eq!(all[3].index.find(b"a"), Some(1));
        assert!(all[3].takes(1, &Scalar::Float(1.0)) && !all[3].takes(1, &Scalar::Integer(1)));
    }

    #[test]
    fn shapes_are_bounded() {
        let shapes = Shapes::default();
        let names: Vec<String> = (0..=MAX_ALL_COLUMNS).map(|name| name.to_string()).collect();
        let of = |names: &[String]| {
            let columns: Vec<_> = names.iter().map(|name| (name.as_str(), DataType::Float64)).collect();
            number(&shapes, true, &columns)
        };
        assert_eq!(of(&names[..=MAX_COLUMNS]), None);
        for (expected, names) in names.chunks(MAX_COLUMNS).enumerate() {
            assert_eq!(of(names), (expected < MAX_ALL_COLUMNS / MAX_COLUMNS).then_some(expected));
        }
        assert_eq!(of(&names[..MAX_COLUMNS]), Some(0), "those that are there stay");
    }
}
