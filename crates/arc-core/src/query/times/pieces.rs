//! Where the times of the rows of a row group lie.

use std::ops::Range;

use super::range::TimeRange;

/// Rows from which on equal distances are worth a piece of their own.
const MIN_EVEN: u32 = 32;
/// Most rows of a piece of which only the ends are known.
const MAX_MIXED: u32 = 128;

/// The times of consecutive rows, piece by piece. Takes at most a byte for a row, and far less
/// where distances are equal.
#[derive(Debug)]
pub(super) struct PackedTimes {
    pieces: Vec<TimesPiece>,
}

#[derive(Debug, Clone, Copy)]
struct TimesPiece {
    rows: u32,
    min: i64,
    max: i64,
    /// Distance of one row from the next, in which case they ascend; 0 where nothing is known but
    /// the ends.
    step: i64,
}

/// Rows that may have a time asked for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Selected {
    /// Ascending, with other rows between them.
    pub(super) ranges: Vec<Range<usize>>,
    /// Whether none of them has another time.
    pub(super) certain: bool,
}

impl PackedTimes {
    pub(super) fn size(&self) -> usize {
        self.pieces.capacity() * size_of::<TimesPiece>()
    }

    /// Returns the rows with a time in `wanted`, and maybe others.
    pub(super) fn select(&self, wanted: TimeRange) -> Selected {
        let mut selected = Selected { ranges: Vec::new(), certain: true };
        let mut start = 0;
        for piece in &self.pieces {
            let end = start + piece.rows as usize;
            if wanted.covers(TimeRange::new(piece.min, piece.max)) {
                selected.push(start..end);
            } else if piece.max >= wanted.min && piece.min <= wanted.max {
                match piece.part(wanted) {
                    Some(part) => selected.push(start + part.start..start + part.end),
                    None => {
                        selected.certain = false;
                        selected.push(start..end);
                    }
                }
            }
            start = end;
        }
        selected
    }
}

impl TimesPiece {
    /// Returns which of its rows have a time in `wanted`, if that is known.
    fn part(&self, wanted: TimeRange) -> Option<Range<usize>> {
        let (step, min) = (i128::from(self.step), i128::from(self.min));
        if step == 0 {
            return None;
        }
        let start = (i128::from(wanted.min) - min + step - 1).max(0) / step;
        let end = (i128::from(wanted.max.min(self.max)) - min) / step + 1;
        Some(usize::try_from(start).ok()?..usize::try_from(end.max(start)).ok()?)
    }
}

impl Selected {
    fn push(&mut self, range: Range<usize>) {
        match self.ranges.last_mut() {
            _ if range.is_empty() => {}
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.ranges.push(range),
        }
    }

    /// Takes away the rows of `others`, which ascend.
    pub(super) fn without(self, others: &[Range<usize>]) -> Self {
        let mut left = Self { ranges: Vec::new(), certain: self.certain };
        for range in self.ranges {
            let mut start = range.start;
            let first = others.partition_point(|other| other.end <= range.start);
            for other in others.iter().skip(first).take_while(|other| other.start < range.end) {
                left.push(start..other.start.max(start));
                start = start.max(other.end);
            }
            left.push(start..range.end.max(start));
        }
        left
    }
}

/// Makes [`PackedTimes`] of times that come row by row.
#[derive(Debug, Default)]
pub(super) struct Noting {
    pieces: Vec<TimesPiece>,
    mixed: Option<TimesPiece>,
    /// The rows that are at equal distances up to now.
    even: Option<TimesPiece>,
}

impl Noting {
    pub(super) fn push(&mut self, times: &[i64]) {
        for time in times {
            match &mut self.even {
                Some(even) if even.rows == u32::MAX => self.restart(*time),
                Some(even) if even.rows > 1 && even.max.checked_add(even.step) == Some(*time) => {
                    even.rows += 1;
                    even.max = *time;
                }
                Some(even) if even.rows == 1 && *time > even.max && time.checked_sub(even.max).is_some() => {
                    *even = TimesPiece { rows: 2, min: even.min, max: *time, step: *time - even.max };
                }
                _ => self.restart(*time),
            }
        }
    }

    fn restart(&mut self, time: i64) {
        let begun = TimesPiece { rows: 1, min: time, max: time, step: 0 };
        let Some(even) = self.even.replace(begun) else { return };
        self.close(even);
        // The next series begins.
        if time < even.max && self.mixed.is_some_and(|mixed| mixed.rows >= MIN_EVEN) {
            self.pieces.extend(self.mixed.take());
        }
    }

    fn close(&mut self, even: TimesPiece) {
        if even.rows >= MIN_EVEN {
            self.pieces.extend(self.mixed.take());
            self.pieces.push(even);
            return;
        }
        let mixed = self.mixed.get_or_insert(TimesPiece { rows: 0, step: 0, ..even });
        mixed.rows += even.rows;
        mixed.min = mixed.min.min(even.min);
        mixed.max = mixed.max.max(even.max);
        if mixed.rows >= MAX_MIXED {
            self.pieces.extend(self.mixed.take());
        }
    }

    pub(super) fn finish(mut self) -> PackedTimes {
        if let Some(even) = self.even.take() {
            self.close(even);
        }
        self.pieces.extend(self.mixed.take());
        self.pieces.shrink_to_fit();
        PackedTimes { pieces: self.pieces }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times_of(times: &[i64]) -> PackedTimes {
        let mut noting = Noting::default();
        times.chunks(7).for_each(|times| noting.push(times));
        noting.finish()
    }

    /// Three series of 1,000 rows every 10, with a start of its own each.
    fn even() -> Vec<i64> {
        (0..3).flat_map(|series| (0..1_000).map(move |row| series + 10 * row)).collect()
    }

    /// The same with distances that vary, repeated times among them.
    fn uneven() -> Vec<i64> {
        (0..3).flat_map(|series| (0..1_000).map(move |row| series + 10 * row - (row * row) % 11)).collect()
    }

    #[test]
    fn the_rows_of_a_range_are_those_with_its_times() {
        let short: Vec<i64> = (0..500).flat_map(|series| [series, series + 5, series + 7]).collect();
        let extreme = vec![i64::MIN, -1, 0, i64::MAX, i64::MAX, i64::MIN];
        for times in [even(), uneven(), short, extreme, vec![7; 300], (0..200).rev().collect(), vec![5], vec![]] {
            let known = times_of(&times);
            let ends = [i64::MIN, i64::MIN + 1, -1, 0, 5, 7, 100, 4_995, 5_000, 9_989, 9_990, 10_000, i64::MAX];
            for (min, max) in ends.iter().flat_map(|min| ends.map(|max| (*min, max))) {
                let selected = known.select(TimeRange::new(min, max));
                let rows: Vec<usize> = selected.ranges.iter().cloned().flatten().collect();
                let expected: Vec<usize> = (0..times.len()).filter(|row| (min..=max).contains(&times[*row])).collect();
                assert!(expected.iter().all(|row| rows.binary_search(row).is_ok()), "{min} {max}");
                assert!(!selected.certain || rows == expected, "{min} {max}");
                assert!(selected.ranges.windows(2).all(|pair| pair[0].end < pair[1].start), "{:?}", selected.ranges);
            }
        }
    }

    #[test]
    fn equal_distances_are_known_to_the_row_and_take_few_bytes() {
        let known = times_of(&even());
        assert_eq!((known.pieces.len(), known.select(TimeRange::new(501, 9_000)).certain), (3, true));
        let other = times_of(&uneven());
        assert!(!other.select(TimeRange::new(501, 9_000)).certain);
        assert!(other.size() <= 1_000, "{}", other.size());
        let rows = other.select(TimeRange::new(501, 1_000)).ranges.iter().map(Range::len).sum::<usize>();
        assert!(rows < 900, "{rows}");
        // Distances that change whenever a piece would pay.
        let mut time = 0;
        let worst: Vec<i64> = (0..10_000).map(|row| (time += 1 + (row / i64::from(MIN_EVEN)) % 2, time).1).collect();
        assert!(times_of(&worst).size() <= worst.len() * 2, "{}", times_of(&worst).size());
    }

    #[test]
    fn rows_can_be_taken_away() {
        let ranges = |ends: &[(usize, usize)]| ends.iter().map(|(start, end)| *start..*end).collect::<Vec<_>>();
        let cases: [(&[_], &[_], &[_]); 6] = [
            (&[(0, 10)], &[], &[(0, 10)]),
            (&[(0, 10)], &[(0, 10)], &[]),
            (&[(0, 10)], &[(2, 3), (5, 7)], &[(0, 2), (3, 5), (7, 10)]),
            (&[(0, 10), (20, 30)], &[(5, 25)], &[(0, 5), (25, 30)]),
            (&[(5, 10), (20, 30)], &[(0, 6), (9, 12), (29, 40)], &[(6, 9), (20, 29)]),
            (&[(5, 10)], &[(0, 20)], &[]),
        ];
        for (rows, others, left) in cases {
            let selected = Selected { ranges: ranges(rows), certain: true };
            assert_eq!(selected.without(&ranges(others)).ranges, ranges(left), "{rows:?} without {others:?}");
        }
    }
}
