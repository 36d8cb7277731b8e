//! How strict a decode is about types: which columns are text by their name, and which change their
//! type.
//!
//! Looked up where a value does not fit, or a column is new; what fits never asks. A type that
//! changes is only proposed here: whether all values that the table has allow it is for `engine` to
//! find out.

use arrow::datatypes::DataType;

use super::{
    staged::{Context, StagedTable},
    times::TimeRules,
};
use crate::{
    ColumnTypes, Result,
    buffer::{ColumnValues, Scalar},
    model::{Column, ColumnKind, may_become},
    registry::Table,
};

/// Who says how strict a decode is about types.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TypePolicy<'a> {
    /// The table, else its database, else these.
    Settings(&'a ColumnTypes),
    /// The log: whatever was not rejected when it came in first fits, and the columns are of the
    /// types that made it so.
    Logged,
}

impl TypePolicy<'_> {
    /// No field ever takes a value of another type.
    pub(crate) const STRICT: Self =
        Self::Settings(&ColumnTypes { string_columns: None, on_conflict: None, time_unit: None, finer_times: None });
}

impl Context<'_> {
    /// Returns whether limits count: the log has what was within those of its time.
    pub(crate) fn is_checked(&self) -> bool {
        matches!(self.types, TypePolicy::Settings(_))
    }

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

    /// Returns the unit of times, which new columns of times have as well, and what becomes of finer
    /// ones.
    pub(crate) fn times(&self) -> TimeRules {
        TimeRules::new(&self.types)
    }

    /// Returns whether fields may change their type.
    pub(crate) fn widens(&self) -> bool {
        self.types.widens()
    }

    /// Returns whether a field that is text takes other values as texts.
    pub(crate) fn makes_text(&self, name: &str) -> bool {
        self.is_logged || self.types.widens() || self.types.is_string(name)
    }

    /// Returns whether a value that a column cannot have is of no account: in the log, one of a
    /// field that comes twice, when the column was still one of integers. The last value counts,
    /// and all that counted became floats.
    pub(crate) fn is_replaced(&self, value: Scalar<'_>, data_type: &DataType) -> bool {
        let is_integer = matches!(value, Scalar::Integer(_) | Scalar::Unsigned(_));
        self.is_logged && *data_type == DataType::Float64 && is_integer && value.exact_float().is_none()
    }

    /// Returns what to add to a conflict between the types of a value and of a field: the way out,
    /// if there is one.
    pub(crate) fn way_out(&self, own: &DataType, existing: &DataType) -> &'static str {
        if self.is_logged || self.types.widens() || !is_plain(own) || !is_plain(existing) { "" } else { WAY_OUT }
    }

    /// Returns whether all values of a field become texts, which the table has as `existing` or not
    /// yet.
    pub(crate) fn are_texts(&self, name: &str, existing: Option<&DataType>) -> bool {
        match existing {
            None => self.types.is_string(name),
            Some(DataType::Utf8) => self.makes_text(name),
            Some(_) => false,
        }
    }
}

/// What a conflict says where another setting would have kept it from being one.
const WAY_OUT: &str = "; the setting on_conflict = \"widen\" would let it in";

fn is_plain(data_type: &DataType) -> bool {
    *data_type == DataType::Utf8 || may_become(data_type, &DataType::Utf8)
}

/// A column as it was before a line changed its type.
#[derive(Debug)]
pub(crate) struct Narrow {
    index: usize,
    /// What the request had made of it before.
    was: Option<Column>,
    data_type: DataType,
    values: Option<ColumnValues>,
}

impl StagedTable {
    /// Returns how strict the table is about types.
    pub(crate) fn rules(&self, context: &Context<'_>) -> &TypeRules {
        self.rules.get_or_init(|| context.type_rules(Some(&self.table)))
    }

    /// Returns whether a column was proposed by this request, of integers, and floats can hold all
    /// of them exactly.
    pub(crate) fn is_own_of_integers(&self, index: usize) -> bool {
        index >= self.base.schema.columns.len()
            && self.rows.values(index).is_some_and(|values| values.widened().is_some())
    }

    /// Returns the type that a field becomes of a value, or of values, of the type `own`, if its
    /// table lets it; that of floats only where the values `are_floats`, and as far as the request
    /// can tell for those that the column has.
    pub(crate) fn wider(
        &self,
        index: usize,
        own: &DataType,
        are_floats: bool,
        context: &Context<'_>,
    ) -> Option<DataType> {
        let column = self.column(index).filter(|column| column.kind == ColumnKind::Field)?;
        if !is_plain(own) || !may_become(&column.data_type, &DataType::Utf8) || !self.rules(context).types.widens() {
            return None;
        }
        let floats = DataType::Float64;
        let is_number = matches!(own, DataType::Int64 | DataType::UInt64 | DataType::Float64);
        let to_floats = is_number
            && are_floats
            && may_become(&column.data_type, &floats)
            && !self.table.is_beyond_floats(index)
            && self.rows.values(index).is_none_or(ColumnValues::are_floats);
        Some(if to_floats { floats } else { DataType::Utf8 })
    }

    /// Gives a column a type that [`wider`](Self::wider) has returned; returns what it was.
    pub(crate) fn widen(&mut self, index: usize, to: DataType) -> Result<Option<Narrow>> {
        let Some(column) = self.column(index).cloned() else { return Ok(None) };
        let wide = match (self.rows.values(index), &to) {
            (None, _) => None,
            (Some(values), DataType::Float64) => values.widened(),
            (Some(values), _) => Some(values.texts()?),
        };
        let data_type = column.data_type.clone();
        let was = self.widened.iter().find(|(known, _)| *known == index).map(|(_, column)| column.clone());
        self.set_column(index, Column { data_type: to, ..column });
        let values = wide.and_then(|wide| self.rows.replace_column(index, Some(wide)));
        Ok(Some(Narrow { index, was, data_type, values }))
    }

    /// Puts another column in the place of one.
    fn set_column(&mut self, index: usize, column: Column) {
        match index.checked_sub(self.base.schema.columns.len()) {
            None => {
                self.widened.retain(|(known, _)| *known != index);
                self.widened.push((index, column));
            }
            Some(added) => {
                if let Some(added) = self.added.get_mut(added) {
                    *added = column;
                }
            }
        }
    }

    /// Takes [`widen`](Self::widen) back.
    pub(crate) fn narrow(&mut self, before: Narrow) {
        let Narrow { index, was, data_type, values } = before;
        let added = index.checked_sub(self.base.schema.columns.len());
        match (added.and_then(|at| self.added.get_mut(at)), was) {
            (Some(added), _) => added.data_type = data_type,
            (None, was) => {
                self.widened.retain(|(known, _)| *known != index);
                self.widened.extend(was.map(|was| (index, was)));
            }
        }
        self.rows.replace_column(index, values);
    }
}
