//! The slow path of a field: new columns, values that need converting, and everything that is
//! refused.

use arc_lp::{FieldValue, Text};
use arrow::datatypes::DataType;

use super::{LineFault, LpDecoder};
use crate::{
    Precision,
    buffer::{Scalar, StagedRow},
    ingest::{
        row_rules::{RowRules, comes_twice, named_as_a_tag},
        staged::{MAX_COLUMNS, check_column_name, inexact, type_conflict},
    },
    model::ColumnKind,
};

impl<'a> LpDecoder<'a, '_> {
    /// Stores a value wherever it belongs, or says why it belongs nowhere.
    #[inline(never)]
    pub(super) fn store_or_refuse(&mut self, key: Text<'a>, value: FieldValue<'a>) {
        if let Err(reason) = self.store(key, value) {
            let before = self.body.get(..self.offset(key.raw())).unwrap_or_default();
            let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            self.refuse(LineFault { column: (before.len() - line_start + 1) as u64, reason });
        }
    }

    fn store(&mut self, key: Text<'a>, value: FieldValue<'a>) -> Result<(), String> {
        let name = key.to_cow();
        let Some(table) = self.staged.tables.get_mut(self.line.table) else { return Err("no table".into()) };
        let text = match value {
            FieldValue::String(text) => text.to_cow(),
            _ => "".into(),
        };
        let value = scalar(&value, &text);
        let known = table.position(&name);
        if known.and_then(|column| table.column(column)).is_some_and(|column| column.kind == ColumnKind::Tag) {
            return Err(RowRules { measurement: table.name(), table: Some(table) }.is_a_tag(&name));
        }
        // A tag with the name of a field that a primary-key table has is found when the tags are
        // looked at.
        if (known.is_none() || !table.has_primary_key()) && self.line.tags.iter().any(|(tag, _)| *tag == name) {
            return Err(named_as_a_tag(&name, "line"));
        }
        let column = match known {
            Some(column) => column,
            None if self.line.touched.len() >= MAX_COLUMNS => {
                return Err(format!("the line has more than {MAX_COLUMNS} fields"));
            }
            None => {
                check_column_name("field", &name)?;
                table.check_column_count(1)?;
                let data_type = table.rules(self.context).type_of_new(&name, value.data_type());
                table.add(&name, ColumnKind::Field, data_type)
            }
        };
        let is_new = column >= table.base.columns.len() + self.line.added;
        match self.check_fit(column, &name, value, is_new) {
            // Undone if the line is refused for something else.
            Err(reason) if !is_new => match self.wider(column, value) {
                Some(data_type) => self.widen(column, data_type).map_err(|e| e.to_string())?,
                None if self.is_replaced(column, value) => return Ok(()),
                None => return Err(reason),
            },
            checked => checked?,
        }
        let Some(table) = self.staged.tables.get_mut(self.line.table) else { return Err("no table".into()) };
        table.set(column, value).map_err(|e| e.to_string())?;
        if key.is_escaped() {
            self.spelled.insert((self.line.table, key.raw()), column);
        }
        self.line.touched.push(column);
        self.went_to(column);
        Ok(())
    }

    /// Checks that a column of the line's table takes a value; `is_new` says that the line itself
    /// has brought the column.
    fn check_fit(&self, column: usize, name: &str, value: Scalar<'_>, is_new: bool) -> Result<(), String> {
        let Some(table) = self.staged.tables.get(self.line.table) else { return Err("no table".into()) };
        let Some(column) = table.column(column) else { return Err("no column".into()) };
        let (got, existing) = (value.data_type(), &column.data_type);
        let is_integer = matches!(value, Scalar::Integer(_) | Scalar::Unsigned(_));
        let is_text = *existing == DataType::Utf8;
        let rules = table.rules(self.context);
        let way_out = || rules.way_out(&got, existing);
        if got == *existing
            || (*existing == DataType::Float64 && value.exact_float().is_some())
            || (is_text && rules.makes_text(name))
        {
            Ok(())
        } else if is_integer && *existing == DataType::Float64 {
            Err(inexact(name) + way_out())
        } else if is_new {
            Err(comes_twice(name, existing, &got))
        } else {
            Err(type_conflict(table.name(), name, &got, existing) + way_out())
        }
    }

    /// Returns the type that a column of the line's table becomes of a value; its staged rows have
    /// a say, too.
    fn wider(&self, column: usize, value: Scalar<'_>) -> Option<DataType> {
        let table = self.staged.tables.get(self.line.table)?;
        let slot = self.cache.slot(&table.table);
        let of_table = |(of, _): &(usize, _)| Some(*of) == slot;
        let staged_rows = self.staged.rows.tables().zip(self.staged.rows.rows()).filter(of_table);
        let fits = |row: StagedRow<'_>| row.values().all(|(index, value)| index != column || value.is_small());
        let are_floats = value.exact_float().is_some() && staged_rows.into_iter().all(|(_, row)| fits(row));
        table.wider(column, &value.data_type(), are_floats, self.context)
    }

    fn is_replaced(&self, column: usize, value: Scalar<'_>) -> bool {
        let table = self.staged.tables.get(self.line.table);
        let column = table.and_then(|table| Some((table, table.column(column)?)));
        column.is_some_and(|(table, column)| table.rules(self.context).is_replaced(value, &column.data_type))
    }

    fn widen(&mut self, column: usize, data_type: DataType) -> Result<(), crate::Error> {
        let table = self.staged.tables.get_mut(self.line.table);
        let narrow = table.map_or(Ok(None), |table| table.widen(column, data_type))?;
        self.line.widened.extend(narrow);
        Ok(())
    }
}

fn scalar<'t>(value: &FieldValue<'_>, text: &'t str) -> Scalar<'t> {
    match value {
        FieldValue::Float(v) => Scalar::Float(*v),
        FieldValue::Integer(v) => Scalar::Integer(*v),
        FieldValue::Unsigned(v) => Scalar::Unsigned(*v),
        FieldValue::Boolean(v) => Scalar::Boolean(*v),
        _ => Scalar::Text(text),
    }
}

/// Converts a timestamp to nanoseconds, exactly or not at all.
#[inline]
pub(in crate::ingest) fn scale(written: i64, precision: Precision) -> Result<i64, String> {
    let unit = precision.nanoseconds();
    written
        .checked_mul(unit)
        .ok_or_else(|| format!("timestamp {written} in units of {unit} ns is outside the range of 64-bit nanoseconds"))
}
