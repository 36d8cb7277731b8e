//! The order in which rows reach a file: for each of them the place where it lies.
//!
//! Rows of one request mostly stay together in an append-only table. So their order is a list of
//! spans, of which each has one place, however many rows it has: less memory to fill, and columns
//! are copied a span at a time. Where spans would be short, as in a file in order of series, the
//! order has a row for each row. Never looks at the rows themselves.

use std::{borrow::Cow, cell::Cell, ops::Range};

use super::sorted::ChunkRow;

/// Rows that spans have on average, at least, to take less memory than row numbers of single rows,
/// and less time.
const MIN_ROWS: usize = 4;

/// Where the rows of a file are.
#[derive(Debug)]
pub(super) enum RowOrder {
    /// One by one.
    Rows(Vec<ChunkRow>),
    Spans(Spans),
}

/// Rows that follow each other in a chunk, too, span by span.
#[derive(Debug, Default)]
pub(super) struct Spans {
    list: Vec<SeriesSpan>,
    rows: usize,
    /// The span of the row that was asked for last. The next row mostly is in it or a little after
    /// it.
    last: Cell<usize>,
}

#[derive(Debug, Clone, Copy)]
struct SeriesSpan {
    /// The first row, in the order and in the chunks.
    start: usize,
    position: ChunkRow,
}

impl RowOrder {
    /// Returns an order without rows, which is going to have `rows`.
    pub(super) fn with_capacity(rows: usize) -> Self {
        // What is not used of it is never touched; a list that grows by doubling is.
        let list = Vec::with_capacity(most_spans(rows) + 1);
        Self::Spans(Spans { list, ..Spans::default() })
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Rows(rows) => rows.len(),
            Self::Spans(spans) => spans.rows,
        }
    }

    /// Returns the place of a row.
    pub(super) fn get(&self, row: usize) -> Option<ChunkRow> {
        match self {
            Self::Rows(rows) => rows.get(row).copied(),
            Self::Spans(spans) => spans.get(row),
        }
    }

    /// Returns the row numbers of some rows.
    pub(super) fn positions(&self, rows: Range<usize>) -> Cow<'_, [ChunkRow]> {
        match self {
            Self::Rows(all) => Cow::Borrowed(all.get(rows).unwrap_or_default()),
            Self::Spans(spans) => {
                let mut positions = Vec::with_capacity(rows.len());
                spans.parts(rows).for_each(|(first, count)| positions.extend(row_numbers(first, count)));
                Cow::Owned(positions)
            }
        }
    }

    /// Appends rows that follow each other in a chunk, to an order that is going to have `expected`
    /// rows.
    pub(super) fn push(&mut self, first: ChunkRow, count: usize, expected: usize) {
        match self {
            Self::Rows(rows) => rows.extend(row_numbers(first, count)),
            Self::Spans(spans) => {
                spans.push(first, count);
                if spans.list.len() > most_spans(expected) {
                    let mut rows = Vec::with_capacity(expected);
                    let all = 0..spans.rows;
                    spans.parts(all).for_each(|(first, count)| rows.extend(row_numbers(first, count)));
                    *self = Self::Rows(rows);
                }
            }
        }
    }
}

fn most_spans(rows: usize) -> usize {
    rows / MIN_ROWS + 1
}

fn row_numbers((chunk, first): ChunkRow, count: usize) -> impl Iterator<Item = ChunkRow> {
    (first..).take(count).map(move |row| (chunk, row))
}

impl Spans {
    /// Returns the spans that rows make up if these have `least` rows on average.
    pub(super) fn of(rows: &[ChunkRow], least: usize) -> Option<Self> {
        let mut spans = Self::default();
        for row in rows {
            spans.push(*row, 1);
            if spans.list.len() > 1 + rows.len() / least {
                return None;
            }
        }
        Some(spans)
    }

    /// Returns whether the spans have `least` rows on average.
    pub(super) fn have(&self, least: usize) -> bool {
        self.list.len() <= 1 + self.rows / least
    }

    /// Returns the spans within some rows: of each the first place, and how many rows follow it.
    pub(super) fn parts(&self, rows: Range<usize>) -> impl Iterator<Item = (ChunkRow, usize)> {
        let first = self.index_of(rows.start);
        let ends = self.list.iter().skip(first + 1).map(|next| next.start).chain([self.rows]);
        let spans = self.list.iter().skip(first).zip(ends);
        spans.take_while(move |(span, _)| span.start < rows.end).map(move |(span, end)| {
            let start = span.start.max(rows.start);
            (span.position_of(start), end.min(rows.end).saturating_sub(start))
        })
    }

    fn push(&mut self, position: ChunkRow, count: usize) {
        if self.list.last().is_none_or(|last| last.position_of(self.rows) != position) {
            self.list.push(SeriesSpan { start: self.rows, position });
        }
        self.rows += count;
    }

    fn get(&self, row: usize) -> Option<ChunkRow> {
        let index = self.index_of(row);
        self.last.set(index);
        self.list.get(index).filter(|_| row < self.rows).map(|span| span.position_of(row))
    }

    /// Returns the span that a row is in. It is searched for in steps that double, from where the
    /// last one was.
    fn index_of(&self, row: usize) -> usize {
        let starts_by = |index: usize| self.list.get(index).is_some_and(|span| span.start <= row);
        let from = Some(self.last.get()).filter(|last| starts_by(*last)).unwrap_or(0);
        let mut step = 1;
        while starts_by(from + step) {
            step *= 2;
        }
        let near = self.list.get(from + step / 2..self.list.len().min(from + step)).unwrap_or_default();
        (from + step / 2 + near.partition_point(|span| span.start <= row)).saturating_sub(1)
    }
}

impl SeriesSpan {
    /// Returns the place of a row that the span has, or would have if it were longer.
    fn position_of(&self, row: usize) -> ChunkRow {
        // Rows of a chunk are counted by 32 bits.
        (self.position.0, self.position.1.saturating_add(u32::try_from(row - self.start).unwrap_or(u32::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn spans_are_the_rows_that_they_are_made_of(
            pieces in prop::collection::vec((0..3_u32, 0..40_u32, 1..30_usize), 1..20),
            (from, count, step) in (0..400_usize, 0..400_usize, 1..9_usize),
            is_long in any::<bool>(),
        ) {
            let expected: Vec<ChunkRow> = pieces.iter().flat_map(|(chunk, row, count)| row_numbers((*chunk, *row), *count)).collect();
            // Short spans become row numbers while they are pushed.
            let rows = if is_long { expected.len() * MIN_ROWS } else { expected.len() };
            let mut order = RowOrder::with_capacity(rows);
            pieces.iter().for_each(|(chunk, row, count)| order.push((*chunk, *row), *count, rows));
            prop_assert!(!is_long || matches!(order, RowOrder::Spans(_)));
            prop_assert_eq!(order.len(), expected.len());
            for row in (0..expected.len() + 2).chain((0..expected.len()).rev()).step_by(step) {
                prop_assert_eq!(order.get(row), expected.get(row).copied());
            }
            let range = from.min(expected.len())..(from + count).min(expected.len());
            prop_assert_eq!(&*order.positions(range.clone()), &expected[range.clone()]);
            let found = Spans::of(&expected, 1).unwrap();
            let parts: Vec<ChunkRow> = found.parts(range.clone()).flat_map(|(first, count)| row_numbers(first, count)).collect();
            prop_assert_eq!(&parts, &expected[range]);
        }
    }

    #[test]
    fn few_and_long_spans_are_told_from_many() {
        let rows: Vec<ChunkRow> = row_numbers((1, 5), 100).chain(row_numbers((0, 0), 100)).collect();
        assert_eq!(Spans::of(&rows, 100).unwrap().parts(0..200).collect::<Vec<_>>(), [((1, 5), 100), ((0, 0), 100)]);
        assert!(Spans::of(&rows, 201).is_none());
        assert!(Spans::of(&rows, 100).unwrap().have(100));
        assert!(!Spans::of(&rows, 100).unwrap().have(201));
    }
}
