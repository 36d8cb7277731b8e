//! Line protocol into columns.
//!
//! Three guesses, and a lookup that costs little more where one is wrong. *Series*: a line whose
//! raw `measurement,tags` bytes are known is not split. *Field order*: after a column comes the one
//! that came there last time. *Table*: the line before was of the same. Values go straight into the
//! columns of the row that is being built; a line that turns out bad has them, and the columns it
//! brought, taken back, so that it leaves nothing behind.

mod checks;
mod line;
mod lookahead;
mod parallel;
mod row_format;
mod splits;
mod tags;

use arc_lp::{ErrorKind, FieldValue, RawValue, Series, Sink, Text};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::{
    staged::{Context, MAX_COLUMNS, Staged, StagedTable, TableIndex},
    times::{TimeChecks, TimeRules},
};
use crate::{
    Precision,
    buffer::Scalar,
    registry::{FoundSeries, SeriesCache},
};

pub(super) use checks::scale;
use line::{Line, LineFault, Mode};
use lookahead::Lookahead;
pub(crate) use parallel::decode as decode_parallel;
use row_format::RowFormat;

/// Decodes line protocol. Every bad line is recorded in [`Staged::rejections`]; the others become
/// rows of their tables.
pub(crate) fn decode(body: &[u8], context: &Context<'_>) -> Staged {
    decode_to(body, context, false)
}

/// Does as [`decode`], but leaves rows of tables that have few in row format.
pub(crate) fn decode_rows(body: &[u8], context: &Context<'_>) -> Staged {
    decode_to(body, context, context.times != TimeChecks::All)
}

fn decode_to(body: &[u8], context: &Context<'_>, as_rows: bool) -> Staged {
    let cache = context.database.fresh_series();
    let mut decoder = LpDecoder::new(body, context, &cache);
    if as_rows {
        decoder.open_rows();
    }
    arc_lp::parse(body, &mut decoder);
    let LpDecoder { staged, new_series, .. } = decoder;
    drop(cache);
    tags::remember(&staged, &new_series);
    staged
}

struct LpDecoder<'a, 'c> {
    /// What is being parsed: the body, or a split of it that ends where the body or a record ends.
    body: &'a [u8],
    context: &'c Context<'c>,
    precision: Precision,
    cache: &'c SeriesCache,
    /// Where in the cache the next series is looked for first.
    predicted: usize,
    lookahead: Lookahead,
    staged: Staged,
    index: TableIndex,
    /// By table and by [`Line::next_field`]: the column of the field that came there last.
    next_columns: Vec<Vec<usize>>,
    /// Columns by table and by names that have escapes, as sent.
    spelled: HashMap<(usize, &'a [u8]), usize, FixedState>,
    /// A string without its escapes, for the moment.
    unescaped: Vec<u8>,
    line: Line<'a>,
    /// Series that are not in the cache, with their tables, by the keys of good lines.
    new_series: tags::NewSeries<'a>,
    /// Tags of a line as the series of its table know them, for the moment.
    tag_codes: Vec<(u32, i32)>,
    skip: &'c [u64],
    row_format: RowFormat,
}

impl<'a, 'c> LpDecoder<'a, 'c> {
    fn new(body: &'a [u8], context: &'c Context<'c>, cache: &'c SeriesCache) -> Self {
        Self {
            body,
            context,
            precision: context.precision.unwrap_or_default(),
            cache,
            predicted: 0,
            lookahead: Lookahead::default(),
            // Not the count of now: a table that was dropped since is in the cache.
            staged: Staged { drops: cache.drops(), ..Staged::new(context.database) },
            index: TableIndex::default(),
            next_columns: Vec::new(),
            spelled: HashMap::default(),
            unescaped: Vec::new(),
            line: Line::default(),
            new_series: HashMap::default(),
            tag_codes: Vec::new(),
            skip: context.skip,
            row_format: RowFormat::default(),
        }
    }
}

/// All that a plain line goes through is inlined into the parser by force: with more than one
/// caller it would not be, which costs a fourteenth of the time.
impl<'a> Sink<'a> for LpDecoder<'a, '_> {
    #[inline(always)]
    fn series(&mut self, number: u64, key: &'a [u8]) -> Series {
        let line = &mut self.line;
        line.number = number;
        line.key = key;
        line.mode = Mode::Store;
        line.tags.clear();
        line.touched.clear();
        line.widened.clear();
        line.next_field = 0;
        line.fault = None;
        if !self.skip.is_empty() {
            self.pass_over(number);
        }
        let cache = self.cache;
        let Some(found) = cache.at(self.predicted, key).or_else(|| self.look_ahead(number, key)) else {
            return self.new_series(key);
        };
        self.predicted = found.next;
        self.line.series = Some(found.series);
        self.begin_known(&found);
        Series::Known
    }

    fn measurement(&mut self, name: Text<'a>) {
        self.close_rows();
        match self.index.by_name(&mut self.staged, &name.to_cow(), true) {
            Ok(at) => self.begin(at),
            Err(reason) => self.refuse(reason.into()),
        }
    }

    fn tag(&mut self, key: Text<'a>, value: Text<'a>) {
        if self.line.tags.len() >= MAX_COLUMNS {
            self.refuse(format!("the line has more than {MAX_COLUMNS} tags").into());
            return;
        }
        self.line.tags.push((key.to_cow(), value.to_cow()));
        // In a primary-key table a field with the name of a tag is found when the tags are looked
        // at.
        let has_primary_key = self.staged.tables.get(self.line.table).is_some_and(StagedTable::has_primary_key);
        if self.line.mode == Mode::Store && !has_primary_key {
            self.line.mode = Mode::Compare;
        }
    }

    #[inline(always)]
    fn field(&mut self, key: Text<'a>, value: FieldValue<'a>) {
        match self.line.mode {
            Mode::Store => {
                if !self.store_predicted(key, &value) {
                    self.store_as_found(key, value);
                }
            }
            Mode::Row => self.store_row(key, value),
            Mode::Compare => self.store_or_refuse(key, value),
            Mode::Check => {}
        }
    }

    #[inline(always)]
    fn raw_field(&mut self, key: Text<'a>, value: RawValue<'a>) -> Result<(), ErrorKind> {
        self.field(key, value.parse()?);
        Ok(())
    }

    #[inline(always)]
    fn point(&mut self, timestamp: Option<i64>) {
        let finished = match self.line.mode {
            Mode::Check => Err(self.line.fault.take()),
            Mode::Row => self.finish_row(timestamp).map_err(Some),
            Mode::Store | Mode::Compare => self.finish(timestamp).map_err(Some),
        };
        if let Err(fault) = finished {
            self.take_back();
            if let Some(LineFault { column, reason }) = fault {
                self.staged.rejections.add(self.line.number, column, reason);
            }
        }
    }

    fn error(&mut self, error: arc_lp::Error) {
        self.take_back();
        if self.context.skip.binary_search(&error.line()).is_err() {
            let column = error.column(self.body) as u64;
            self.staged.rejections.add(error.line(), column, error.kind().to_string());
        }
    }
}

impl<'a, 'c> LpDecoder<'a, 'c> {
    #[inline(always)]
    fn look_ahead(&mut self, number: u64, key: &[u8]) -> Option<FoundSeries<'c>> {
        let start = self.offset(key);
        self.lookahead.find(self.cache, self.body, start, (number, key))
    }

    /// Begins a line whose series is not in the cache; an earlier line of the request may have had
    /// it.
    #[inline(never)]
    fn new_series(&mut self, key: &[u8]) -> Series {
        let Some((at, series)) = self.new_series.get(key).copied() else {
            self.line.series = None;
            // Until the measurement is known.
            self.line.table = usize::MAX;
            return Series::Unknown;
        };
        self.line.series = Some(series);
        self.begin(at);
        Series::Known
    }

    /// Passes the line over if it was rejected when the request came in first.
    #[cold]
    fn pass_over(&mut self, number: u64) {
        while self.skip.first().is_some_and(|skip| *skip < number) {
            self.skip = self.skip.get(1..).unwrap_or(&[]);
        }
        if self.skip.first() == Some(&number) {
            self.line.mode = Mode::Check;
        }
    }

    /// Says which table the line is of.
    #[inline(always)]
    fn begin(&mut self, at: usize) {
        if self.next_columns.len() <= at {
            self.expect_rows(at);
        }
        self.line.table = at;
        self.line.added = self.staged.tables.get(at).map_or(0, |table| table.added.len());
    }

    /// Makes ready for a table that the request had no line of so far.
    #[cold]
    fn expect_rows(&mut self, at: usize) {
        let rest = self.body.len() - self.offset(self.line.key);
        let line = self.body.iter().skip(self.body.len() - rest).position(|byte| *byte == b'\n').unwrap_or(rest) + 1;
        self.next_columns.resize_with(at + 1, Vec::new);
        let in_row_format = self.staged.tables.get(at).map(|table| self.rows_size(&table.table));
        let (tables, next_columns) = (self.staged.tables.len().max(1), self.next_columns.get_mut(at));
        if let (Some(table), Some(next_columns)) = (self.staged.tables.get_mut(at), next_columns) {
            // As if the tables to come had as many lines as the ones that were met.
            table.rows.expect(rest / line / tables + 1);
            table.in_row_format = in_row_format.unwrap_or_default();
            // Columns are in the order of the line that brought them, until lines say otherwise.
            *next_columns = (0..=table.columns.len()).collect();
        }
    }

    /// The offset in the body of a split of it.
    fn offset(&self, split: &[u8]) -> usize {
        (split.as_ptr() as usize).wrapping_sub(self.body.as_ptr() as usize).min(self.body.len())
    }

    /// Stores a value in the column that followed last time; `false` where that is not its column,
    /// or not so easy.
    #[inline(always)]
    fn store_predicted(&mut self, key: Text<'a>, value: &FieldValue<'a>) -> bool {
        let line = &mut self.line;
        let Some(table) = self.staged.tables.get_mut(line.table) else { return false };
        let predicted = self.next_columns.get(line.table).and_then(|next_columns| next_columns.get(line.next_field));
        let Some(predicted) = predicted.copied() else { return false };
        if key.is_escaped() || !table.columns.is(predicted, key.raw()) || !put(table, predicted, value) {
            return false;
        }
        line.touched.push(predicted);
        line.next_field = predicted + 1;
        true
    }

    /// The same for a column that is looked up.
    #[inline(never)]
    fn store_as_found(&mut self, key: Text<'a>, value: FieldValue<'a>) {
        if let Some(table) = self.staged.tables.get_mut(self.line.table)
            && let Some(column) = match key.is_escaped() {
                false => table.columns.find(key.raw()),
                true => self.spelled.get(&(self.line.table, key.raw())).copied(),
            }
            && match value {
                FieldValue::String(text) if text.is_escaped() => {
                    self.unescaped.clear();
                    text.append_to(&mut self.unescaped);
                    table.rows.put(column, Scalar::Bytes(&self.unescaped))
                }
                value => put(table, column, &value),
            }
        {
            self.line.touched.push(column);
            self.went_to(column);
        } else {
            self.store_or_refuse(key, value);
        }
    }

    /// Learns that the next field is in `column`, and goes there.
    #[inline(always)]
    fn went_to(&mut self, column: usize) {
        let next_field = std::mem::replace(&mut self.line.next_field, column + 1);
        let Some(next_columns) = self.next_columns.get_mut(self.line.table) else { return };
        if next_columns.len() <= next_field {
            next_columns.resize(next_field + 1, usize::MAX);
        }
        if let Some(next) = next_columns.get_mut(next_field) {
            *next = column;
        }
    }

    /// Refuses the line.
    #[cold]
    fn refuse(&mut self, fault: LineFault) {
        if self.line.mode != Mode::Check {
            self.line.mode = Mode::Check;
            self.line.fault = Some(fault);
        }
    }

    #[inline(always)]
    fn time_of(&mut self, timestamp: Option<i64>) -> Result<i64, LineFault> {
        let Some(written) = timestamp else {
            return Ok(self.staged.untimed.next(self.context.receive_ns, self.time_rules().unit));
        };
        let time = scale(written, self.precision)?;
        if self.context.times == TimeChecks::All { self.fit_time(time) } else { Ok(time) }
    }

    #[inline(never)]
    fn fit_time(&mut self, time: i64) -> Result<i64, LineFault> {
        let fitted = self.time_rules().fit(time)?;
        self.staged.has_own_times |= fitted != time;
        Ok(fitted)
    }

    /// Counts a line that had no timestamp. Only where it is good: replay, which passes over bad
    /// lines, must count the same ones.
    #[cold]
    fn count_untimed(&mut self, time: i64) {
        let unit = self.time_rules().unit;
        self.staged.has_own_times |= !unit.is_nanosecond();
        self.staged.untimed.count(self.context.receive_ns, time, unit);
    }

    /// Returns what becomes of times of the line's table. A line in row format is of one without a
    /// unit.
    fn time_rules(&self) -> TimeRules {
        let table = self.staged.tables.get(self.line.table);
        table.map_or_else(TimeRules::default, |table| table.time_rules(self.context))
    }

    /// Ends the row of a line whose fields are stored.
    #[inline(always)]
    fn finish(&mut self, timestamp: Option<i64>) -> Result<(), LineFault> {
        let time = self.time_of(timestamp)?;
        let most_cells = self.context.most_cells;
        self.staged.tables.get(self.line.table).map_or(Ok(()), |table| table.check_cells(most_cells))?;
        let series = match self.line.series {
            Some(series) => Some(series),
            // Last, for it remembers the series: a line that is refused after this would leave it
            // behind.
            None => self.resolve_tags()?,
        };
        let Some(table) = self.staged.tables.get_mut(self.line.table) else {
            return Err(LineFault::from("no table".to_owned()));
        };
        table.rows.end_row(time, series);
        if timestamp.is_none() {
            self.count_untimed(time);
        }
        Ok(())
    }

    /// Takes back what the line has stored and proposed.
    #[cold]
    fn take_back(&mut self) {
        self.staged.rows.take_back();
        if let Some(table) = self.staged.tables.get_mut(self.line.table) {
            // First, for a column may have had a value of the line before that.
            self.line.widened.drain(..).rev().for_each(|before| table.narrow(before));
            for column in self.line.touched.drain(..) {
                table.rows.take_back(column);
            }
            if table.forget_columns(self.line.added) {
                self.spelled.clear();
            }
        }
    }
}

/// Puts a value into a column that has its type and stands at the row being built; `false` where it
/// does not.
#[inline(always)]
fn put(table: &mut StagedTable, column: usize, value: &FieldValue<'_>) -> bool {
    match value {
        FieldValue::String(text) if text.is_escaped() => false,
        FieldValue::String(text) => table.rows.put(column, Scalar::Bytes(text.raw())),
        FieldValue::Float(v) => table.rows.put(column, Scalar::Float(*v)),
        FieldValue::Integer(v) => table.rows.put(column, Scalar::Integer(*v)),
        FieldValue::Unsigned(v) => table.rows.put(column, Scalar::Unsigned(*v)),
        FieldValue::Boolean(v) => table.rows.put(column, Scalar::Boolean(*v)),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
