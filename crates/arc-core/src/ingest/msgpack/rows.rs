//! A map that is one row into the table it names, by the rules of a line of line protocol.

use std::borrow::Cow;

use arrow::datatypes::DataType;
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::{ItemFault, MsgpackDecoder, refuse};
use crate::{
    buffer::{Scalar, SeriesId},
    ingest::{
        row_rules::{RowRules, comes_twice, named_as_a_tag},
        staged::{Context, StagedTable, check_column_name, type_conflict},
        times::TimeChecks,
    },
    model::{Column, ColumnKind, may_become, tag_type},
};

/// What decides the series of a row: the table's ordinal, and the bytes of `tags` and `h` as they
/// came.
type TagsKey<'a> = (usize, (&'a [u8], &'a [u8]));

/// What storing a row needs, used again for the next one.
#[derive(Debug, Default)]
pub(super) struct RowScratch<'a> {
    tags: Vec<(&'a str, Cow<'a, str>)>,
    /// Fields that the table has, by the index of their column.
    known: Vec<(usize, Scalar<'a>)>,
    new: Vec<(Cow<'a, str>, DataType, Scalar<'a>)>,
    /// Columns that this row gives another type.
    widened: Vec<(usize, DataType)>,
    /// By table: the column of each field of its last row, for the next row has most likely the
    /// same fields.
    predicted: Vec<Vec<usize>>,
    /// Series of the tags that came before in this payload, so that the same bytes are not read
    /// again.
    series: HashMap<TagsKey<'a>, SeriesId, FixedState>,
}

impl<'a> MsgpackDecoder<'a, '_> {
    /// Stores the item as a row of the table `name`.
    pub(super) fn store_row(&mut self, name: &str) -> Result<(), ItemFault> {
        self.item.check_fields()?;
        let unit = self.row_unit.unwrap_or_default();
        let time = self.item.time.map(|time| time.nanoseconds(unit)).transpose().map_err(ItemFault::item)?;
        let found = self.find(name);
        let table = found.and_then(|at| Some((at, self.staged.tables.get(at)?)));
        let tag_bytes = self.item.tag_bytes;
        let series = found.and_then(|at| self.rows.series.get(&(at, tag_bytes)).copied());
        if series.is_none() {
            self.item.read_tags(&mut self.rows.tags)?;
            self.rows.check_tags(name, table.map(|(_, table)| table), self.context)?;
        } else {
            self.rows.tags.clear();
        }
        self.rows.check_fields(name, table, &self.item.fields, self.context)?;

        let at = match found {
            Some(at) => at,
            None => self.index.by_name(&mut self.staged, name, true).map_err(ItemFault::item)?,
        };
        if let Some(table) = self.staged.tables.get(at) {
            let tags = self.rows.tags.iter().filter(|(name, _)| table.position(name).is_none()).count();
            table.check_size(tags + self.rows.new.len(), self.context).map_err(ItemFault::item)?;
        }
        let time = match time {
            Some(time) if self.context.times != TimeChecks::All => time,
            Some(time) => self.fit_time(at, time).map_err(ItemFault::item)?,
            None => self.receive_time(at),
        };
        let Some(table) = self.staged.tables.get_mut(at) else { return refuse("no table") };
        let series = match series {
            Some(series) => Some(series),
            None => self.rows.store_tags(table, (at, tag_bytes))?,
        };
        self.rows.store_fields(table)?;
        table.rows.end_row(time, series);
        Ok(())
    }
}

impl RowScratch<'_> {
    fn check_tags(&self, name: &str, table: Option<&StagedTable>, context: &Context<'_>) -> Result<(), ItemFault> {
        let rules = RowRules { measurement: name, table };
        self.tags.iter().try_for_each(|(tag, _)| rules.check_tag(tag, Some(context))).map_err(ItemFault::item)
    }
}

impl<'a> RowScratch<'a> {
    /// Parts the fields into those that the table has and new ones, and checks them.
    fn check_fields(
        &mut self,
        table_name: &str,
        table: Option<(usize, &StagedTable)>,
        fields: &[(Cow<'a, str>, Scalar<'a>)],
        context: &Context<'_>,
    ) -> Result<(), ItemFault> {
        self.known.clear();
        self.new.clear();
        self.widened.clear();
        for (ordinal, (name, value)) in fields.iter().enumerate() {
            // The tags of a series that came before are columns of the table, which is checked
            // below.
            if self.tags.iter().any(|(tag, _)| tag == name) {
                return refuse(named_as_a_tag(name, "row"));
            }
            match table.and_then(|(at, table)| self.column(at, table, ordinal, name)) {
                Some((_, column)) if column.kind == ColumnKind::Tag => {
                    let table = table.map(|(_, table)| table);
                    return refuse(RowRules { measurement: table_name, table }.is_a_tag(name));
                }
                // The column becomes one of floats for what the row had of it before.
                Some((index, _))
                    if self.becomes_float(index) && is_integer(*value) && value.exact_float().is_none() =>
                {
                    return refuse(comes_twice(name, &DataType::Float64, &value.data_type()));
                }
                Some((index, column)) => match fit(*value, &column.data_type) {
                    Some(value) => self.known.push((index, value)),
                    // Written as text when it is stored.
                    None if column.data_type == DataType::Utf8
                        && table.is_some_and(|(_, table)| table.rules(context).makes_text(name)) =>
                    {
                        self.known.push((index, *value));
                    }
                    // The column came with this request, as integers, and may still become one of
                    // floats.
                    None if is_float(*value)
                        && !self.has(index)
                        && table.is_some_and(|(_, table)| table.is_own_of_integers(index)) =>
                    {
                        self.known.push((index, *value));
                        self.widened.push((index, DataType::Float64));
                    }
                    None => {
                        // Of several values of one field only text is sure to be what all of them
                        // can be.
                        let (own, is_float) = (value.data_type(), value.exact_float().is_some() && !self.has(index));
                        let wider = table.and_then(|(_, table)| table.wider(index, &own, is_float, context));
                        if table.is_some_and(|(_, table)| table.rules(context).is_replaced(*value, &column.data_type)) {
                            continue;
                        }
                        let Some(wider) = wider else {
                            let way_out =
                                table.map_or("", |(_, table)| table.rules(context).way_out(&own, &column.data_type));
                            return refuse(type_conflict(table_name, name, &own, &column.data_type) + way_out);
                        };
                        self.known.push((index, *value));
                        self.widened.push((index, wider));
                    }
                },
                None => {
                    check_column_name("field", name).map_err(ItemFault::item)?;
                    let known = table.map(|(_, table)| table);
                    let data_type = context.ask_rules(known, |rules| rules.type_of_new(name, value.data_type()));
                    self.add_new(name.clone(), data_type, *value)?;
                }
            }
        }
        Ok(())
    }

    /// Returns whether the row has a value of a column that the table has.
    fn has(&self, index: usize) -> bool {
        self.known.iter().any(|(known, _)| *known == index)
    }

    fn becomes_float(&self, index: usize) -> bool {
        self.widened.iter().any(|(widened, data_type)| *widened == index && *data_type == DataType::Float64)
    }

    /// Finds the column of the field at `ordinal` in its row.
    fn column<'t>(
        &mut self,
        at: usize,
        table: &'t StagedTable,
        ordinal: usize,
        name: &str,
    ) -> Option<(usize, &'t Column)> {
        if self.predicted.len() <= at {
            self.predicted.resize_with(at + 1, Vec::new);
        }
        let predicted = self.predicted.get_mut(at)?;
        let column = |index: usize| table.column(index).map(|column| (index, column));
        let predicted_column = predicted.get(ordinal).and_then(|index| column(*index));
        if let Some(right) = predicted_column.filter(|(_, column)| column.name.as_ref() == name) {
            return Some(right);
        }
        let found = column(table.position(name)?)?;
        predicted.resize(predicted.len().max(ordinal + 1), usize::MAX);
        if let Some(slot) = predicted.get_mut(ordinal) {
            *slot = found.0;
        }
        Some(found)
    }

    /// The last one of a name counts, as for a column that the table has; both must have one type,
    /// or it would depend on whether the table has the column, and replay could not decide as the
    /// first time.
    fn add_new(&mut self, name: Cow<'a, str>, data_type: DataType, value: Scalar<'a>) -> Result<(), ItemFault> {
        match self.new.iter_mut().find(|(other, ..)| *other == name) {
            Some((_, first, other)) if *first == data_type => *other = value,
            Some((_, first, _)) => {
                return refuse(comes_twice(&name, first, &data_type));
            }
            None => self.new.push((name, data_type, value)),
        }
        Ok(())
    }

    /// Resolves the checked tags. In an append-only table they become text fields.
    fn store_tags(&mut self, table: &mut StagedTable, key: TagsKey<'a>) -> Result<Option<SeriesId>, ItemFault> {
        let has_primary_key = table.has_primary_key();
        for (name, value) in &self.tags {
            let index = match table.position(name) {
                Some(index) => index,
                None if has_primary_key => table.add(name, ColumnKind::Tag, tag_type()),
                None => table.add(name, ColumnKind::Field, DataType::Utf8),
            };
            if !has_primary_key {
                if table.column(index).is_some_and(|column| column.data_type != DataType::Utf8) {
                    table.widen(index, DataType::Utf8)?;
                }
                table.set(index, Scalar::Text(value))?;
            }
        }
        if !has_primary_key {
            return Ok(None);
        }
        let tags = self.tags.iter().map(|(name, value)| (*name, value.as_ref()));
        let series = table.table.series.write().resolve(tags)?;
        self.series.insert(key, series);
        Ok(Some(series))
    }

    fn store_fields(&mut self, table: &mut StagedTable) -> Result<(), ItemFault> {
        for (index, data_type) in self.widened.drain(..) {
            if table.column(index).is_some_and(|column| may_become(&column.data_type, &data_type)) {
                table.widen(index, data_type)?;
            }
        }
        for (name, data_type, value) in self.new.drain(..) {
            let index = table.add(&name, ColumnKind::Field, data_type);
            table.set(index, value)?;
        }
        self.known.drain(..).try_for_each(|(index, value)| Ok(table.set(index, value)?))
    }
}

fn is_float(value: Scalar<'_>) -> bool {
    matches!(value, Scalar::Float(_))
}

fn is_integer(value: Scalar<'_>) -> bool {
    matches!(value, Scalar::Integer(_) | Scalar::Unsigned(_))
}

/// Returns the value as a column of `data_type` takes it, if it does.
fn fit<'a>(value: Scalar<'a>, data_type: &DataType) -> Option<Scalar<'a>> {
    match (value, data_type) {
        (Scalar::Float(_) | Scalar::Integer(_) | Scalar::Unsigned(_), DataType::Float64) => {
            value.exact_float().map(Scalar::Float)
        }
        (Scalar::Integer(_), DataType::Int64)
        | (Scalar::Unsigned(_), DataType::UInt64)
        | (Scalar::Boolean(_), DataType::Boolean)
        | (Scalar::Text(_), DataType::Utf8) => Some(value),
        (Scalar::Integer(integer), DataType::UInt64) => u64::try_from(integer).ok().map(Scalar::Unsigned),
        _ => None,
    }
}
