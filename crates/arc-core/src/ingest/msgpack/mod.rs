//! MessagePack into columns, straight from the bytes.
//!
//! A payload is one map or an array of maps (bare, or as `{"batch": […]}`). A map with `columns`
//! carries whole columns, any other is one row; both are *items*. An item is read and checked as a
//! whole before any of it is stored, so a bad one leaves nothing behind. A body that is not
//! MessagePack refuses the whole payload, for nothing after the fault can be trusted.
//!
//! Never makes a value per value: columns go into typed vectors, rows into two lists that are used
//! again.

mod columns;
mod item;
mod reader;
mod rows;
mod text;
mod time;
mod values;

#[cfg(test)]
mod tests;

use item::Item;
use reader::{Malformed, MsgpackReader, MsgpackValue};
use rows::RowScratch;
use time::Time;

use super::{
    staged::{Context, MAX_COLUMNS, Staged, TableIndex},
    times::TimeRules,
};
use crate::{Error, Precision, Result};

/// Most columns, fields or tags that one map may have: checks among them must stay cheap.
const MAX_NAMES: usize = MAX_COLUMNS;

/// Decodes a MessagePack payload. Every bad item is recorded in [`Staged::rejections`]; the others
/// become rows.
///
/// # Errors
///
/// [`Error::InvalidPayload`] if the body is not MessagePack of one of the forms above, or is an
/// empty array.
pub(crate) fn decode(body: &[u8], context: &Context<'_>) -> Result<Staged> {
    if i32::try_from(body.len()).is_err() {
        let reason = format!("the body has {} bytes, expected less than 2 GiB", body.len());
        return Err(Error::InvalidPayload { format: "MessagePack", reason });
    }
    let mut decoder = MsgpackDecoder {
        reader: MsgpackReader::new(body),
        context,
        staged: Staged::new(context.database),
        index: TableIndex::default(),
        last: 0,
        item: Item::default(),
        rows: RowScratch::default(),
        row_unit: context.precision,
    };
    let items = items(&mut decoder.reader)?;
    for number in 1..=items as u64 {
        decoder.item(number)?;
    }
    if !decoder.reader.is_at_end() {
        let reason = "the payload ends, expected no more bytes";
        return Err(Malformed { at: decoder.reader.at(), reason }.into());
    }
    Ok(decoder.staged)
}

/// Why something is not stored. In a box, so that results of what goes well stay small.
#[derive(Debug)]
struct ItemFault(Box<FaultKind>);

#[derive(Debug)]
enum FaultKind {
    /// Nothing of the payload can be stored.
    Payload(Error),
    /// This item cannot.
    Item(String),
}

impl ItemFault {
    fn item(reason: String) -> Self {
        Self(Box::new(FaultKind::Item(reason)))
    }
}

impl From<Malformed> for Error {
    fn from(Malformed { at, reason }: Malformed) -> Self {
        Self::InvalidPayload { format: "MessagePack", reason: format!("at byte {at}: {reason}") }
    }
}

impl From<Malformed> for ItemFault {
    fn from(malformed: Malformed) -> Self {
        Error::from(malformed).into()
    }
}

impl From<Error> for ItemFault {
    fn from(error: Error) -> Self {
        Self(Box::new(FaultKind::Payload(error)))
    }
}

/// Goes to the first item; returns their number.
fn items(reader: &mut MsgpackReader<'_>) -> Result<usize> {
    let first = *reader;
    let expected_map = Malformed { at: first.at(), reason: "expected a map or an array of maps" };
    if reader.is_at_end() {
        return Err(Malformed { at: 0, reason: "the body is empty, expected a map or an array" }.into());
    }
    let items = match reader.next()? {
        MsgpackValue::Array(items) => items,
        MsgpackValue::Map(1) if reader.next()? == MsgpackValue::Text(b"batch") => match reader.next()? {
            MsgpackValue::Array(items) => items,
            _ => return Err(Malformed { at: first.at(), reason: "\"batch\" is not an array" }.into()),
        },
        MsgpackValue::Map(_) => {
            *reader = first;
            1
        }
        _ => return Err(expected_map.into()),
    };
    if items == 0 {
        return Err(Malformed { at: first.at(), reason: "the batch is empty, expected at least one map" }.into());
    }
    Ok(items)
}

struct MsgpackDecoder<'a, 'c> {
    reader: MsgpackReader<'a>,
    context: &'c Context<'c>,
    staged: Staged,
    index: TableIndex,
    /// Index of the table of the item before.
    last: usize,
    /// The item being read.
    item: Item<'a>,
    rows: RowScratch<'a>,
    /// Unit of the times of all rows: the declared one, or what the first row that has a number for
    /// its time implies.
    row_unit: Option<Precision>,
}

impl MsgpackDecoder<'_, '_> {
    fn item(&mut self, number: u64) -> Result<()> {
        let start = self.reader;
        if self.row_unit.is_none() {
            // Before anything can be wrong with the item, so that replay, which passes over it,
            // decides the same.
            self.row_unit = row_unit(start);
        }
        if self.context.skip.binary_search(&number).is_ok() {
            return Ok(self.reader.skip()?);
        }
        let Err(ItemFault(fault)) = self.store() else { return Ok(()) };
        match *fault {
            FaultKind::Payload(error) => Err(error),
            FaultKind::Item(reason) => {
                self.reader = start;
                self.reader.skip()?;
                self.staged.rejections.add(number, 0, reason);
                Ok(())
            }
        }
    }

    /// Reads the next item and stores it, or leaves nothing of it after.
    fn store(&mut self) -> Result<(), ItemFault> {
        self.item.read(&mut self.reader)?;
        let name =
            self.item.name.take().ok_or_else(|| ItemFault::item("\"m\" is missing, expected a measurement".into()))?;
        match self.item.columns.take() {
            Some(columns) => {
                let end = self.store_columns(&name, columns)?;
                if self.item.columns_are_next {
                    self.reader = end;
                }
                Ok(())
            }
            None => self.store_row(&name),
        }
    }

    /// Returns the place of the table `name`, if there is one: most likely the one before.
    fn find(&mut self, name: &str) -> Option<usize> {
        if self.staged.tables.get(self.last).is_none_or(|table| table.name() != name) {
            self.last = self.index.find(&mut self.staged, name)?;
        }
        Some(self.last)
    }

    /// Returns the time of the next point without one of table `at`, and counts it.
    fn receive_time(&mut self, at: usize) -> i64 {
        let unit = self.time_rules(at).unit;
        let time = self.staged.untimed.next(self.context.receive_ns, unit);
        self.staged.untimed.count(self.context.receive_ns, time, unit);
        self.staged.has_own_times |= !unit.is_nanosecond();
        time
    }

    /// Returns the time that a point of table `at` gets.
    fn fit_time(&mut self, at: usize, time: i64) -> Result<i64, String> {
        let fitted = self.time_rules(at).fit(time)?;
        self.staged.has_own_times |= fitted != time;
        Ok(fitted)
    }

    fn time_rules(&self, at: usize) -> TimeRules {
        self.staged.tables.get(at).map_or_else(TimeRules::default, |table| table.time_rules(self.context))
    }
}

/// Returns the unit that the time of a row implies.
fn row_unit(mut reader: MsgpackReader<'_>) -> Option<Precision> {
    let Ok(MsgpackValue::Map(pairs)) = reader.next() else { return None };
    for _ in 0..pairs {
        match reader.next().ok()? {
            MsgpackValue::Text(b"t") => return Time::of(&reader.next().ok()?).ok()?.unit(),
            MsgpackValue::Text(key) if key != b"columns" => reader.skip().ok()?,
            _ => return None,
        }
    }
    None
}

/// Refuses an item.
fn refuse<T>(reason: impl Into<String>) -> Result<T, ItemFault> {
    Err(ItemFault::item(reason.into()))
}

/// Returns a name that comes twice.
fn repeated<'n>(names: impl Iterator<Item = &'n str> + Clone) -> Option<&'n str> {
    let mut sorted: Vec<&str> = names.collect();
    sorted.sort_unstable();
    sorted.windows(2).find_map(|pair| match pair {
        [one, two] if one == two => Some(*one),
        _ => None,
    })
}
