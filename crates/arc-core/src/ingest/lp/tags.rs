//! The tags of a line whose series is not in the cache: checked, and made a series.

use std::sync::Arc;

use arrow::datatypes::DataType;
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::{LineFault, LpDecoder};
use crate::{
    buffer::{Scalar, SeriesId},
    ingest::{
        row_rules::RowRules,
        staged::{Staged, short},
    },
    model::{ColumnKind, tag_type},
};

/// Slot of the table and number of the series, by the key of its lines.
pub(super) type NewSeries<'a> = HashMap<&'a [u8], (usize, SeriesId), FixedState>;

/// Puts the series that were new into the cache, if their tables and all tags are registered by
/// now.
///
/// If not, the next request does: this one may still be refused, and a line whose series is known
/// proposes no tags.
pub(super) fn remember(staged: &Staged, new_series: &NewSeries<'_>) {
    let registered = |at: &usize| {
        let table = staged.tables.get(*at).filter(|table| table.has_primary_key())?;
        if table.added.iter().any(|column| column.kind == ColumnKind::Tag) {
            return None;
        }
        let known = staged.database.table(table.name())?;
        Arc::ptr_eq(&known, &table.table).then_some(known)
    };
    // In order of arrival, which the cache takes for the order in which they come again.
    let mut new_series: Vec<_> = new_series.iter().collect();
    new_series.sort_unstable_by_key(|(key, _)| key.as_ptr());
    let mut cache = None;
    for (key, (at, series)) in new_series {
        if let Some(table) = registered(at) {
            cache.get_or_insert_with(|| staged.database.series_cache.write()).insert(key, &table, *series);
        }
    }
}

impl LpDecoder<'_, '_> {
    /// In a primary-key table the tags make a series; in an append-only one they are text fields like
    /// any other.
    #[inline(never)]
    pub(super) fn resolve_tags(&mut self) -> Result<Option<SeriesId>, LineFault> {
        self.check_tags()?;
        let Some(table) = self.staged.tables.get_mut(self.line.table) else { return Err("no table".to_owned().into()) };
        let has_primary_key = table.has_primary_key();
        let new = self.line.tags.iter().filter(|(key, _)| table.position(key).is_none()).count();
        table.check_column_count(new)?;
        for (key, value) in &self.line.tags {
            let column = match table.position(key) {
                Some(column) => column,
                None if has_primary_key => table.add(key, ColumnKind::Tag, tag_type()),
                None => table.add(key, ColumnKind::Field, DataType::Utf8),
            };
            if !has_primary_key {
                self.line.touched.push(column);
                table.set(column, Scalar::Text(value)).map_err(|e| e.to_string())?;
            }
        }
        if !has_primary_key {
            return Ok(None);
        }
        let tags = || self.line.tags.iter().map(|(key, value)| (key.as_ref(), value.as_ref()));
        // Where the cache has forgotten it no thread waits for another.
        let known = table.table.series.read().find(tags(), &mut self.tag_codes);
        let series = match known {
            Some(series) => series,
            None => table.table.series.write().resolve(tags()).map_err(|e| e.to_string())?,
        };
        self.new_series.insert(self.line.key, (self.line.table, series));
        Ok(Some(series))
    }

    fn check_tags(&self) -> Result<(), String> {
        let Some(table) = self.staged.tables.get(self.line.table) else { return Err("no table".into()) };
        let rules = RowRules { measurement: table.name(), table: Some(table) };
        for (at, (key, _)) in self.line.tags.iter().enumerate() {
            rules.check_tag(key, None)?;
            if self.line.tags.iter().take(at).any(|(other, _)| other == key) {
                return Err(format!("tag {:?} comes twice", short(key)));
            }
        }
        Ok(())
    }
}
