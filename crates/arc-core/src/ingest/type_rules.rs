//! How strict a decode is about types: which columns are text by their name, and which change their type.
//!
//! Looked up where a value does not fit, or a column is new; what fits never asks. A type that changes is only proposed here:
//! whether all values that the table has allow it is for `engine` to find out.

use arrow::datatypes::DataType;

use super::staged::{Context, StagedTable};
use crate::{
    ColumnTypes,
    buffer::ColumnValues,
    catalog::{Column, ColumnKind},
    registry::Table,
};

/// Who says how strict a decode is about types.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TypePolicy<'a> {
    /// The table, else its database, else these.
    Settings(&'a ColumnTypes),
    /// The log: whatever was not rejected when it came in first fits, and the columns are of the types that made it so.
    Logged,
}

impl TypePolicy<'_> {
    /// No field ever takes a value of another type.
    pub(crate) const STRICT: Self = Self::Settings(&ColumnTypes { string_columns: None, on_conflict: None });
}

impl Context<'_> {
    /// Asks how strict a table is about types, which may not be known to the request yet.
    pub(crate) fn ask_rules<R>(&self, table: Option<&StagedTable>, ask: impl FnOnce(&TypeRules) -> R) -> R {
        match table {
            Some(table) => ask(table.rules(self)),
            None => ask(&self.type_rules(None)),
        }
    }

    fn type_rules(&self, table: Option<&Table>) -> TypeRules {
        match self.types {
            TypePolicy::Settings(defaults) => {
                let own = table.map(|table| ColumnTypes::clone(&table.column_types.load())).unwrap_or_default();
                TypeRules { types: own.or(&self.database.column_types.load()).or(defaults), is_logged: false }
            }
            TypePolicy::Logged => TypeRules { types: ColumnTypes::default(), is_logged: true },
        }
    }
}

/// How strict a table is about types.
#[derive(Debug)]
pub(crate) struct TypeRules {
    types: ColumnTypes,
    is_logged: bool,
}

impl TypeRules {
    /// Returns the type of a new field whose values have the type `own`.
    pub(crate) fn type_of_new(&self, name: &str, own: DataType) -> DataType {
        if self.types.is_string(name) { DataType::Utf8 } else { own }
    }

    /// Returns whether a field that is text takes other values as texts.
    pub(crate) fn makes_text(&self, name: &str) -> bool {
        self.is_logged || self.types.is_string(name)
    }

    /// Returns whether all values of a field become texts, which the table has as `existing` or not yet.
    pub(crate) fn are_texts(&self, name: &str, existing: Option<&DataType>) -> bool {
        match existing {
            None => self.types.is_string(name),
            Some(DataType::Utf8) => self.makes_text(name),
            Some(_) => false,
        }
    }
}

/// A column as it was before a line changed its type.
#[derive(Debug)]
pub(crate) struct Narrow {
    index: usize,
    /// Whether the table had it so.
    was_known: bool,
    data_type: DataType,
    values: Option<ColumnValues>,
}

impl StagedTable {
    /// Returns how strict the table is about types.
    pub(crate) fn rules(&self, context: &Context<'_>) -> &TypeRules {
        self.rules.get_or_init(|| context.type_rules(Some(&self.table)))
    }

    /// Returns whether a column was proposed by this request, of integers, and floats can hold all of them exactly.
    pub(crate) fn is_own_of_integers(&self, index: usize) -> bool {
        index >= self.base.schema.columns.len() && self.holds_floats(index)
    }

    /// Returns whether the table lets a column of integers become one of floats, as far as the request can tell.
    pub(crate) fn can_widen(&self, index: usize, context: &Context<'_>) -> bool {
        let is_of_integers = |column: &Column| {
            column.kind == ColumnKind::Field && matches!(column.data_type, DataType::Int64 | DataType::UInt64)
        };
        self.column(index).is_some_and(is_of_integers)
            && self.rules(context).types.widens()
            && !self.table.is_beyond_floats(index)
            && (self.rows.values(index).is_none() || self.holds_floats(index))
    }

    /// Returns whether the request has integers for a column, all of which are floats, too.
    fn holds_floats(&self, index: usize) -> bool {
        self.rows.values(index).is_some_and(|values| values.widened().is_some())
    }

    /// Makes a column of integers one of floats; returns what it was.
    pub(crate) fn widen(&mut self, index: usize) -> Option<Narrow> {
        let column = self.column(index)?.clone();
        let data_type = column.data_type.clone();
        let wide = Column { data_type: DataType::Float64, ..column };
        let was_known = index < self.base.schema.columns.len();
        match index.checked_sub(self.base.schema.columns.len()) {
            None => self.widened.push((index, wide)),
            Some(added) => *self.added.get_mut(added)? = wide,
        }
        let floats = self.rows.values(index).and_then(ColumnValues::widened);
        let values = floats.and_then(|floats| self.rows.replace_column(index, Some(floats)));
        Some(Narrow { index, was_known, data_type, values })
    }

    /// Takes [`widen`](Self::widen) back.
    pub(crate) fn narrow(&mut self, before: Narrow) {
        let Narrow { index, was_known, data_type, values } = before;
        if was_known {
            self.widened.retain(|(widened, _)| *widened != index);
        } else if let Some(column) =
            index.checked_sub(self.base.schema.columns.len()).and_then(|at| self.added.get_mut(at))
        {
            column.data_type = data_type;
        }
        self.rows.replace_column(index, values);
    }
}
