//! Sorted rows, split into the parts that become files: by day, and by whether a file may have their
//! primary keys already.
//!
//! Rows come series by series, with their times, which lie in the order of the rows: in the chunks
//! each look at one would be at another page. Never looks at columns.

use hashbrown::HashMap;

use super::{
    series::SeriesId,
    sorted::{ChunkRow, GatherSource, SeriesRun},
};
use crate::model::PartitionDay;

/// The rows of one part.
#[derive(Debug)]
pub(super) struct DayPart {
    pub(super) day: PartitionDay,
    pub(super) late: bool,
    pub(super) rows: Vec<ChunkRow>,
    /// Their times, where rows have series.
    pub(super) times: Vec<i64>,
    /// Where each row of the file starts in `rows`; `None` where no primary key repeats.
    pub(super) runs: Option<Vec<usize>>,
    /// The series of the file's rows, and how many rows follow each other that have it; none where
    /// rows have no series.
    pub(super) series_runs: Vec<SeriesRun>,
}

/// Parts that rows are added to.
pub(super) struct DayParts<'s, 'a> {
    source: &'s GatherSource<'a>,
    /// Rows newer than this repeat none of a file.
    newest_before: i64,
    /// Rows of all parts.
    expected: usize,
    parts: Vec<DayPart>,
    by_day: HashMap<(PartitionDay, bool), usize>,
    /// The part of the row before.
    last: usize,
    /// Rows of a series with their times, for the moment.
    timed: Vec<(i64, ChunkRow)>,
}

impl<'s, 'a> DayParts<'s, 'a> {
    pub(super) fn new(source: &'s GatherSource<'a>, newest_before: i64, expected: usize) -> Self {
        let (parts, by_day, timed) = (Vec::new(), HashMap::new(), Vec::new());
        Self { source, newest_before, expected, parts, by_day, last: 0, timed }
    }

    /// Adds rows of an append-only table, in order.
    pub(super) fn push_rows(&mut self, rows: &[ChunkRow]) {
        for row in rows {
            let (time, is_main) = (self.source.time(*row), self.source.is_main(*row));
            self.push(time, self.is_late(time, is_main), None, &[(time, *row)]);
        }
    }

    /// Adds all rows of a series: those that came on time in order, and after them those that came
    /// late in any.
    pub(super) fn push_series(&mut self, series: SeriesId, rows: &[ChunkRow], times: &[i64]) {
        let timed_rows = times.iter().copied().zip(rows.iter().copied());
        if rows.last().is_none_or(|row| self.source.is_main(*row)) {
            for (time, row) in timed_rows {
                self.push(time, false, Some(series), &[(time, row)]);
            }
            return;
        }
        let mut timed = std::mem::take(&mut self.timed);
        timed.clear();
        timed.extend(timed_rows);
        // Stable: of equal times the later version comes last. Rows on time are one run of it.
        timed.sort_by_key(|(time, _)| *time);
        for versions in timed.chunk_by(|a, b| a.0 == b.0) {
            let Some((time, _)) = versions.first() else { continue };
            let is_late = self.is_late(*time, versions.iter().any(|(_, row)| self.source.is_main(*row)));
            self.push(*time, is_late, Some(series), versions);
        }
        self.timed = timed;
    }

    /// Returns the parts, none of them empty.
    pub(super) fn finish(mut self) -> Vec<DayPart> {
        self.parts.sort_by_key(|part| (part.day, part.late));
        self.parts
    }

    fn is_late(&self, time: i64, is_main: bool) -> bool {
        !is_main && time <= self.newest_before
    }

    /// Adds the versions of a row, the later after the earlier.
    #[inline]
    fn push(&mut self, time: i64, late: bool, series: Option<SeriesId>, versions: &[(i64, ChunkRow)]) {
        let day = PartitionDay::from_time_ns(time);
        let is_its = |part: &DayPart| part.day == day && part.late == late;
        if !self.parts.get(self.last).is_some_and(is_its) {
            self.find(day, late);
        }
        if let Some(part) = self.parts.get_mut(self.last) {
            part.push(series, versions);
        }
    }

    /// Goes to the part of a day. Rows may be of a million days: it is not looked for among all.
    fn find(&mut self, day: PartitionDay, late: bool) {
        let Self { parts, by_day, expected, .. } = self;
        self.last = *by_day.entry((day, late)).or_insert_with(|| {
            // Nearly all rows are of one part, which mostly comes first.
            let expected = if parts.is_empty() { *expected } else { 0 };
            let (rows, times) = (Vec::with_capacity(expected), Vec::with_capacity(expected));
            parts.push(DayPart { day, late, rows, times, runs: None, series_runs: Vec::new() });
            parts.len() - 1
        });
    }
}

impl DayPart {
    /// Adds the versions of a row, the later after the earlier.
    #[inline]
    fn push(&mut self, series: Option<SeriesId>, versions: &[(i64, ChunkRow)]) {
        if versions.len() > 1 && self.runs.is_none() {
            self.runs = Some((0..self.rows.len()).collect());
        }
        if let Some(runs) = &mut self.runs {
            runs.push(self.rows.len());
        }
        self.rows.extend(versions.iter().map(|(_, row)| *row));
        let Some(series) = series else { return };
        self.times.extend(versions.iter().map(|(time, _)| *time));
        match self.series_runs.last_mut() {
            Some((last, rows)) if *last == series => *rows += 1,
            _ => self.series_runs.push((series, 1)),
        }
    }
}
