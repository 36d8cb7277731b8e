//! Where the records of line protocol are: strings may hold line feeds, so only the parser knows.
//!
//! Cuts and reorders texts for benches. Never changes a byte of a record.

use std::ops::Range;

use crate::random::Random;

/// Returns the range of every good record with what stands after it, its line end included, up to
/// the next record.
///
/// The ranges follow each other without a gap, and the first begins at 0.
#[must_use]
pub fn records(text: &[u8]) -> Vec<Range<usize>> {
    let mut starts: Vec<usize> = arc_lp::points(text).flatten().map(|point| point.byte_range().start).collect();
    if let Some(first) = starts.first_mut() {
        *first = 0;
    }
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts.iter().copied().zip(ends).map(|(start, end)| start..end).collect()
}

/// Cuts a text at record ends into pieces of at most `bytes`; a record that is longer is a piece of
/// its own.
#[must_use]
pub fn cut(text: &[u8], bytes: usize) -> Vec<Range<usize>> {
    let mut pieces: Vec<Range<usize>> = Vec::new();
    for record in records(text) {
        match pieces.last_mut() {
            Some(piece) if record.end - piece.start <= bytes => piece.end = record.end,
            _ => pieces.push(record),
        }
    }
    pieces
}

/// Brings the records of each stretch of about `bytes` into random order: hosts and measurements
/// report without one.
#[must_use]
pub fn shuffle(text: &[u8], bytes: usize, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut shuffled = Vec::with_capacity(text.len());
    for piece in cut(text, bytes) {
        let piece = text.get(piece).unwrap_or_default();
        let mut records = records(piece);
        random.shuffle(&mut records);
        records
            .into_iter()
            .filter_map(|record| piece.get(record))
            .for_each(|record| shuffled.extend_from_slice(record));
    }
    shuffled
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::Corpus;

    const TEXT: &[u8] = b"\n# comment\na s=\"one\ntwo\" 1\nb f=2 2\n\nc f=3 3\n";

    fn parts(text: &[u8], ranges: Vec<Range<usize>>) -> Vec<&str> {
        ranges.into_iter().map(|range| std::str::from_utf8(&text[range]).unwrap()).collect()
    }

    #[test]
    fn a_record_goes_on_behind_a_line_feed_in_a_string() {
        let want = ["\n# comment\na s=\"one\ntwo\" 1\n", "b f=2 2\n\n", "c f=3 3\n"];
        assert_eq!(parts(TEXT, records(TEXT)), want);
        assert!(records(b"").is_empty());
    }

    #[test]
    fn a_text_is_cut_at_record_ends_only() {
        // (most bytes, pieces)
        let cases: [(usize, &[&str]); 4] = [
            (1, &["\n# comment\na s=\"one\ntwo\" 1\n", "b f=2 2\n\n", "c f=3 3\n"]),
            (17, &["\n# comment\na s=\"one\ntwo\" 1\n", "b f=2 2\n\nc f=3 3\n"]),
            (36, &["\n# comment\na s=\"one\ntwo\" 1\nb f=2 2\n\n", "c f=3 3\n"]),
            (100, &["\n# comment\na s=\"one\ntwo\" 1\nb f=2 2\n\nc f=3 3\n"]),
        ];
        for (bytes, want) in cases {
            assert_eq!(parts(TEXT, cut(TEXT, bytes)), want, "{bytes}");
        }
    }

    #[test]
    fn pieces_of_every_corpus_have_all_its_points() {
        for corpus in Corpus::ALL {
            let text = corpus.generate(1, 100_000);
            let pieces = cut(&text, 10_000);
            assert!(pieces.len() >= 10, "{}", corpus.name());
            let points = |piece: Range<usize>| {
                let points = arc_lp::points(&text[piece]).collect::<Result<Vec<_>, _>>();
                points.unwrap_or_else(|error| panic!("{}: {error}", corpus.name())).len()
            };
            assert_eq!(pieces.into_iter().map(points).sum::<usize>(), records(&text).len(), "{}", corpus.name());
        }
    }

    #[test]
    fn shuffling_keeps_every_record_in_its_stretch() {
        let text = Corpus::Escape.generate(1, 50_000);
        let shuffled = shuffle(&text, 10_000, 7);
        assert_ne!(shuffled, text);
        assert_eq!(shuffled, shuffle(&text, 10_000, 7));
        for piece in cut(&text, 10_000) {
            let sorted = |text: &[u8]| {
                let mut records: Vec<_> = records(text).into_iter().map(|record| text[record].to_vec()).collect();
                records.sort_unstable();
                records
            };
            assert_eq!(sorted(&text[piece.clone()]), sorted(&shuffled[piece]));
        }
    }
}
