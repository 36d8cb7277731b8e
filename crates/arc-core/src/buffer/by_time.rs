//! Sorts the rows of an append-only table by time.
//!
//! Rows of one request mostly are in order, and those of other connections lie beside or between
//! them: the rows are a few runs that are sorted already. These are merged, the next one as far as
//! it goes before another has to come: a run that overlaps with none costs one search, whatever its
//! length.

use std::sync::Arc;

use super::{order::RowOrder, rows::Chunk};

/// Rows that runs have on average, at least, for merging to be cheaper than sorting.
const MIN_RUN_ROWS: usize = 8;
/// Runs that may overlap at one time for merging to be cheaper than sorting.
const MAX_OVERLAP: usize = 256;

/// A step is a gap if it is more than such a part of all that a run spans,
const GAP_PARTS: u64 = 4;
/// and the run has more rows.
const MIN_GAP_ROWS: usize = 64;

/// Rows that follow each other in a chunk and are in order.
#[derive(Debug, Clone, Copy)]
struct OrderedRun<'a> {
    chunk: u32,
    /// The next row.
    row: u32,
    /// Times of the rows that are left.
    times: &'a [i64],
}

/// Time of a run's next row, and the run's rank among all: what the runs are merged by.
type Head = (i64, usize);

/// Returns the order of all rows by time; those of one time are in the order of their arrival.
pub(super) fn by_time(chunks: &[&Arc<Chunk>]) -> RowOrder {
    let rows: usize = chunks.iter().map(|chunk| chunk.len()).sum();
    let runs = runs(chunks);
    if runs.len() <= rows / MIN_RUN_ROWS + 1
        && let Some(order) = merge(runs.clone(), rows)
    {
        return order;
    }
    let mut order = Vec::with_capacity(rows);
    runs.iter().for_each(|run| order.extend((run.row..).take(run.times.len()).map(|row| (run.chunk, row))));
    order.sort_by_key(|(chunk, row)| chunks.get(*chunk as usize).and_then(|c| c.time.get(*row as usize)));
    RowOrder::Rows(order)
}

fn runs<'a>(chunks: &[&'a Arc<Chunk>]) -> Vec<OrderedRun<'a>> {
    let mut runs = Vec::new();
    for (chunk, rows) in (0..).zip(chunks) {
        let mut row = 0;
        for sorted in rows.time.chunk_by(|a, b| a <= b) {
            let mut rest = sorted;
            while !rest.is_empty() {
                let (times, others) = rest.split_at(before_gap(rest));
                runs.push(OrderedRun { chunk, row, times });
                row += u32::try_from(times.len()).unwrap_or(u32::MAX);
                rest = others;
            }
        }
    }
    runs
}

/// Returns how many sorted times there are before a step that is large beside those before it. A
/// request of a connection whose clock is ahead may follow one of another and seem to go on with
/// it: as one run they would have been begun, and wait, for all that comes between the two.
fn before_gap(times: &[i64]) -> usize {
    let mut end = times.len();
    loop {
        let part = times.get(..end).unwrap_or_default();
        let (Some(first), Some(last)) = (part.first(), part.last()) else { return end };
        let large = last.wrapping_sub(*first).cast_unsigned() / GAP_PARTS;
        let is_gap = |pair: &[i64; 2]| pair[1].wrapping_sub(pair[0]).cast_unsigned() > large;
        match part.array_windows().position(is_gap).filter(|_| end > MIN_GAP_ROWS && large > 0) {
            Some(before) => end = before + 1,
            None => return end,
        }
    }
}

/// Returns `None` if too many runs overlap.
fn merge(mut runs: Vec<OrderedRun<'_>>, rows: usize) -> Option<RowOrder> {
    let mut order = RowOrder::with_capacity(rows);
    let mut waiting: Vec<Head> = (0..runs.len()).filter_map(|index| head(&runs, index)).collect();
    waiting.sort_unstable_by(|a, b| b.cmp(a));
    // Those that have begun, the first of them last. They are few.
    let mut begun: Vec<Head> = Vec::new();
    while begun.len() <= MAX_OVERLAP {
        let begins = waiting.pop_if(|next| begun.last().is_none_or(|first| *next < *first));
        let Some((_, index)) = begins.or_else(|| begun.pop()) else { return Some(order) };
        let run = runs.get_mut(index)?;
        let next = match (begun.last(), waiting.last()) {
            (Some(begun), Some(waiting)) => Some(begun.min(waiting)),
            (begun, waiting) => begun.or(waiting),
        };
        let count = next.map_or(run.times.len(), |next| run.rows_before(*next, index));
        order.push((run.chunk, run.row), count, rows);
        run.skip(count);
        if let Some(head) = head(&runs, index) {
            let rank = begun.iter().rposition(|other| *other > head).map_or(0, |rank| rank + 1);
            begun.insert(rank, head);
        }
    }
    None
}

fn head(runs: &[OrderedRun<'_>], index: usize) -> Option<Head> {
    runs.get(index)?.times.first().map(|time| (*time, index))
}

impl OrderedRun<'_> {
    /// Returns how many rows come before another run's next one; at least one does. Looks far only
    /// if many do.
    fn rows_before(&self, next: Head, index: usize) -> usize {
        let comes_before = |time: &i64| (*time, index) < next;
        let mut step = 1;
        while self.times.get(step).is_some_and(comes_before) {
            step *= 2;
        }
        let searched = self.times.get(step / 2..self.times.len().min(step)).unwrap_or_default();
        step / 2 + searched.partition_point(comes_before)
    }

    fn skip(&mut self, count: usize) {
        self.row += u32::try_from(count).unwrap_or(u32::MAX);
        self.times = self.times.get(count..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::buffer::{Rows, sorted::ChunkRow};

    fn chunk(times: &[i64]) -> Arc<Chunk> {
        let mut rows = Rows::default();
        times.iter().for_each(|time| rows.end_row(*time, None));
        Arc::new(rows.into_chunk().unwrap())
    }

    fn check(chunks: &[Vec<i64>]) {
        let chunks: Vec<Arc<Chunk>> = chunks.iter().map(|times| chunk(times)).collect();
        let chunks: Vec<&Arc<Chunk>> = chunks.iter().collect();
        let mut expected: Vec<(i64, ChunkRow)> = Vec::new();
        for (chunk, rows) in (0..).zip(&chunks) {
            expected.extend((0..).zip(rows.time.iter()).map(|(row, time)| (*time, (chunk, row))));
        }
        expected.sort_by_key(|(time, _)| *time);
        let expected: Vec<ChunkRow> = expected.into_iter().map(|(_, position)| position).collect();
        let order = by_time(&chunks);
        assert_eq!(order.positions(0..order.len()), expected);
    }

    #[test]
    fn runs_beside_each_other_and_rows_without_any_order_are_sorted() {
        check(&[]);
        check(&[vec![1]]);
        check(&[(0..100).collect(), (50..200).collect(), vec![7; 90], (-40..60).collect()]);
        check(&[(0..100).rev().collect(), (0..100).rev().collect()]);
        // More runs at one time than are merged.
        check(&[(0..3_000).map(|i| i % 10).collect()]);
    }

    #[test]
    fn connections_that_drift_apart_are_merged() {
        // Twelve connections of eight or nine hosts, each with a clock of its own, which some
        // advance three times as often.
        let mut clocks = [0_i64; 12];
        let mut times = vec![Vec::new()];
        for request in 0..3_000_usize {
            let connection = if request % 3 == 0 { request / 3 % 12 } else { request * 7 % 4 };
            let hosts = if connection < 4 { 9 } else { 8 };
            let base = clocks[connection] + connection as i64;
            if times.last().is_some_and(|chunk: &Vec<i64>| chunk.len() > 64_000) {
                times.push(Vec::new());
            }
            times.last_mut().unwrap().extend((0..1_000).map(|row| base + row / hosts * 100));
            clocks[connection] += (1_000 / hosts + 2) * 100;
        }
        let chunks: Vec<Arc<Chunk>> = times.iter().map(|times| chunk(times)).collect();
        let chunks: Vec<&Arc<Chunk>> = chunks.iter().collect();
        let runs = runs(&chunks);
        let rows = chunks.iter().map(|chunk| chunk.len()).sum();
        assert!(matches!(merge(runs, rows), Some(RowOrder::Spans(_))));
    }

    proptest! {
        #[test]
        fn rows_of_one_time_keep_the_order_of_their_arrival(
            runs in prop::collection::vec((0..4_usize, prop::collection::vec(0..60_i64, 1..60)), 0..12),
        ) {
            let mut chunks = vec![Vec::new(); 4];
            for (chunk, mut times) in runs {
                times.sort_unstable();
                chunks[chunk].extend(times);
            }
            check(&chunks);
        }

        #[test]
        fn any_times_are_sorted(chunks in prop::collection::vec(prop::collection::vec(any::<i8>(), 0..50), 0..4)) {
            check(&chunks.iter().map(|chunk| chunk.iter().map(|time| i64::from(*time)).collect()).collect::<Vec<_>>());
        }
    }
}
