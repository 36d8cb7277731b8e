//! Looks for the series of lines to come, many at a time, where they come in no order that the
//! cache has seen.
//!
//! A look-up among a million series waits for memory several times, some tenths of a microsecond in
//! all, unless others are under way meanwhile. Knows of a line only where it begins and where its
//! key ends. What is found is a prediction, which the thread that asks compares with the key: lines
//! that are not split as the parser splits them cost time, and nothing else.

use memchr::{memchr, memchr_iter};

use crate::registry::{FoundSeries, SeriesCache};

/// Lines looked at together.
const LINES: usize = 32;
/// Lines up to which the last one that had no good prediction is near: that one may have been where
/// another agent's lines begin.
const NEAR: u64 = 4;

/// What was found of lines to come.
#[derive(Debug, Default)]
pub(super) struct Lookahead {
    /// Where the key of each begins and ends, and the entry that is likely to have it.
    found: [(usize, usize, usize); LINES],
    /// The first that is not passed yet.
    next: usize,
    /// The last line that had no good prediction.
    missed: u64,
}

impl Lookahead {
    /// Returns the series of `key`, of line `number`, which lies in `body` at `start`.
    #[inline(never)]
    pub(super) fn find<'c>(
        &mut self,
        cache: &'c SeriesCache,
        body: &[u8],
        start: usize,
        (number, key): (u64, &[u8]),
    ) -> Option<FoundSeries<'c>> {
        let missed = std::mem::replace(&mut self.missed, number);
        if !cache.is_large() || missed + NEAR < number || missed == 0 {
            return cache.get(key, usize::MAX);
        }
        let span = (start, start + key.len());
        let at = self.passed_to(span).or_else(|| {
            self.look(cache, body, start);
            self.passed_to(span)
        });
        match at {
            Some(usize::MAX) => None,
            Some(at) => cache.at(at, key).or_else(|| cache.get(key, usize::MAX)),
            None => cache.get(key, usize::MAX),
        }
    }

    /// Returns what was found of a key, and passes those before it.
    fn passed_to(&mut self, (start, end): (usize, usize)) -> Option<usize> {
        let rest = self.found.get(self.next..).unwrap_or_default();
        self.next += rest.iter().take_while(|found| found.0 < start).count();
        self.found.get(self.next).filter(|found| (found.0, found.1) == (start, end)).map(|found| found.2)
    }

    fn look(&mut self, cache: &SeriesCache, body: &[u8], mut start: usize) {
        let mut keys: [&[u8]; LINES] = [b""; LINES];
        for (found, key) in self.found.iter_mut().zip(&mut keys) {
            let line = body.get(start..).unwrap_or_default();
            let end = key_end(line);
            *key = line.get(..end).unwrap_or_default();
            *found = (start, start + end, usize::MAX);
            let rest = line.get(end..).unwrap_or_default();
            start = memchr(b'\n', rest).map_or(body.len(), |length| start + end + length + 1);
        }
        for (found, at) in self.found.iter_mut().zip(cache.likely(&keys)) {
            found.2 = at;
        }
        self.next = 0;
    }
}

/// Returns where the first space is that has no backslash before it.
fn key_end(line: &[u8]) -> usize {
    let is_plain = |end: &usize| end.checked_sub(1).and_then(|before| line.get(before)) != Some(&b'\\');
    memchr_iter(b' ', line).find(is_plain).unwrap_or(line.len())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{model::TableSchema, registry::Table};

    fn cache(keys: impl Iterator<Item = String>) -> SeriesCache {
        let schema =
            TableSchema { database: "d".into(), table: "t".into(), has_primary_key: true, columns: Vec::new() };
        let (table, mut cache) = (Arc::new(Table::new(schema)), SeriesCache::default());
        (0..).zip(keys).for_each(|(series, key)| cache.insert(key.as_bytes(), &table, series));
        cache
    }

    #[test]
    fn series_in_any_order_are_those_that_the_cache_has() {
        let cache = cache((0..20_000).map(|n| format!("t,host={n}")).chain(["t,host=a\\ b".to_owned()]));
        assert!(cache.is_large());
        // Known, unknown, with what is taken for another line, with an escape; lines that no thread
        // asks for between them.
        let line = |n: usize| match n % 11 {
            3 => (format!("t,host=none{n}"), " x=1 1\n"),
            5 => (format!("t,host={n}"), " x=\"a\nt,host=7 x=1 b\" 1\n"),
            7 => ("t,host=a\\ b".to_owned(), " x=1 1\n"),
            9 => ("# not a line".to_owned(), "\n"),
            _ => (format!("t,host={}", n * 7_919 % 20_000), " x=1 1\r\n\n"),
        };
        let (mut body, mut lines) = (String::new(), Vec::new());
        for (key, rest) in (0..3_000).map(line) {
            lines.push((body.len(), key.clone()));
            body += &(key + rest);
        }
        for leave_out in [2, 5, 31, 10_000] {
            let mut lookahead = Lookahead::default();
            for (number, (start, key)) in (1..).zip(&lines).filter(|(number, _)| number % leave_out > 0) {
                let found = lookahead.find(&cache, body.as_bytes(), *start, (number, key.as_bytes()));
                let expected = cache.get(key.as_bytes(), usize::MAX);
                assert_eq!(found.map(|found| found.series), expected.map(|found| found.series), "{key}");
            }
        }
    }

    #[test]
    fn a_key_ends_at_the_first_space_without_a_backslash() {
        for (line, end) in [("a b", 1), ("a\\ b c", 4), ("", 0), (" ", 0), ("abc", 3), ("a\\", 2), ("a\nb c", 3)] {
            assert_eq!(key_end(line.as_bytes()), end, "{line:?}");
        }
    }
}
