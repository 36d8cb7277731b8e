//! Line protocol that parsers are measured with: nine mixes, each from a seed, whole lines.
//!
//! | corpus | a line | what it is hard for |
//! | --- | --- | --- |
//! | telegraf | 340 B, 13 measurements of 60 hosts; integers, floats of up to 17 digits, strings, booleans, some escapes | the fields of every line stand in another order, as agents send them |
//! | ordered | the same with its fields in one order | nothing: what a predicted order gains |
//! | cpu-only | 340 B, 10 tags and 10 integers | tags |
//! | devops | 9 measurements of integers, 10 tags and more | tags, many tables |
//! | iot | short floats, absent tags and fields, 1 line in 10 late | nulls and disorder |
//! | short | 69 B, `cpu,host=server01,region=us-east usage_idle=90.5` | the cost of a line |
//! | escape | escapes, quotes and UTF-8 in every part | the slow paths |
//! | sparse | 12 to 30 of 200 fields in random order | finding a column, nulls |
//! | floats | six floats of 17 digits | reading numbers |
//!
//! cpu-only, devops and iot have the shapes of the use cases of these names in the public Time
//! Series Benchmark Suite; the generators and values are ours. Timestamps are nanoseconds.

mod line;
mod small;
mod telegraf;
mod tsbs;

use line::LineWriter;

/// One mix of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Corpus {
    /// What a fleet of agents sends, fields in another order on every line.
    Telegraf,
    /// The same, fields in one order.
    Ordered,
    /// Ten tags, ten integers.
    CpuOnly,
    /// Nine measurements of integers.
    Devops,
    /// Lorries: short floats, nulls, disorder.
    Iot,
    /// Two tags, one float.
    Short,
    /// Escapes, quotes and UTF-8 in every part.
    Escape,
    /// 12 to 30 of 200 fields.
    Sparse,
    /// Six floats of 17 digits.
    Floats,
}

impl Corpus {
    /// Every corpus, in the order of the table above.
    pub const ALL: [Self; 9] = [
        Self::Telegraf,
        Self::Ordered,
        Self::CpuOnly,
        Self::Devops,
        Self::Iot,
        Self::Short,
        Self::Escape,
        Self::Sparse,
        Self::Floats,
    ];

    /// Returns the name used in tables and benches.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Telegraf => "telegraf",
            Self::Ordered => "ordered",
            Self::CpuOnly => "cpu-only",
            Self::Devops => "devops",
            Self::Iot => "iot",
            Self::Short => "short",
            Self::Escape => "escape",
            Self::Sparse => "sparse",
            Self::Floats => "floats",
        }
    }

    /// Makes whole lines until they take `bytes` or a little more.
    ///
    /// The same seed gives the same lines; more bytes give more lines after the same ones.
    #[must_use]
    pub fn generate(self, seed: u64, bytes: usize) -> Vec<u8> {
        let mut source: Box<dyn Source> = match self {
            Self::Telegraf => Box::new(telegraf::Fleet::new(seed, true)),
            Self::Ordered => Box::new(telegraf::Fleet::new(seed, false)),
            Self::CpuOnly => Box::new(tsbs::CpuOnly::new(seed)),
            Self::Devops => Box::new(tsbs::Devops::new(seed)),
            Self::Iot => Box::new(tsbs::Lorries::new(seed)),
            Self::Short => Box::new(small::Short::new(seed)),
            Self::Escape => Box::new(small::Escape::new(seed)),
            Self::Sparse => Box::new(small::Sparse::new(seed)),
            Self::Floats => Box::new(small::Floats::new(seed)),
        };
        let mut line = LineWriter::with_capacity(bytes);
        while line.len() < bytes {
            source.write(&mut line);
        }
        line.into_bytes()
    }
}

/// Writes the lines of one corpus, one or more at a call.
trait Source {
    fn write(&mut self, line: &mut LineWriter);
}

/// When the first line of every corpus was measured: 2026-01-01T00:00:00Z.
const START_NS: i64 = 1_767_225_600_000_000_000;

/// Ten seconds, between two reports of one host.
const INTERVAL_NS: i64 = 10_000_000_000;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const BYTES: usize = 200_000;

    #[test]
    fn every_line_is_good() {
        for corpus in Corpus::ALL {
            let text = corpus.generate(1, BYTES);
            let lines = text.iter().filter(|byte| **byte == b'\n').count();
            let points = arc_lp::points(&text)
                .collect::<Result<Vec<_>, _>>()
                .unwrap_or_else(|error| panic!("{}: {error}", corpus.name()));
            assert!(points.len() <= lines, "{}", corpus.name());
            assert!(points.iter().all(|point| point.timestamp().is_some()), "{}", corpus.name());
            assert!(text.len() >= BYTES && text.ends_with(b"\n"), "{}", corpus.name());
        }
    }

    #[test]
    fn a_seed_names_one_text_and_more_bytes_continue_it() {
        for corpus in Corpus::ALL {
            let long = corpus.generate(1, 40_000);
            assert!(long.starts_with(&corpus.generate(1, 10_000)), "{}", corpus.name());
            assert_ne!(long, corpus.generate(2, 40_000), "{}", corpus.name());
        }
    }

    #[test]
    fn lines_are_as_long_as_said() {
        // (corpus, least and greatest mean length of a line)
        let cases = [
            (Corpus::Telegraf, 300, 380),
            (Corpus::Ordered, 300, 380),
            (Corpus::CpuOnly, 320, 360),
            (Corpus::Short, 67, 71),
            (Corpus::Sparse, 250, 600),
            (Corpus::Floats, 150, 280),
        ];
        for (corpus, least, greatest) in cases {
            let text = corpus.generate(1, BYTES);
            let mean = text.len() / arc_lp::points(&text).count();
            assert!((least..=greatest).contains(&mean), "{}: {mean}", corpus.name());
        }
    }

    #[test]
    fn telegraf_is_the_ordered_corpus_shuffled() {
        let sorted = |corpus: Corpus| {
            let text = corpus.generate(1, BYTES);
            let text = String::from_utf8(text).unwrap();
            let mut bytes = text.into_bytes();
            bytes.sort_unstable();
            bytes
        };
        let (shuffled, ordered) = (sorted(Corpus::Telegraf), sorted(Corpus::Ordered));
        assert_eq!(shuffled, ordered);
        assert_ne!(Corpus::Telegraf.generate(1, BYTES), Corpus::Ordered.generate(1, BYTES));
    }

    #[test]
    fn the_mixes_have_their_tables_and_columns() {
        // (corpus, measurements, least number of different fields)
        let cases = [
            (Corpus::Telegraf, 13, 80),
            (Corpus::CpuOnly, 1, 10),
            (Corpus::Devops, 9, 40),
            (Corpus::Iot, 2, 10),
            (Corpus::Sparse, 1, 200),
            (Corpus::Floats, 1, 6),
        ];
        for (corpus, tables, fields) in cases {
            let text = corpus.generate(1, BYTES);
            let mut found = (BTreeSet::new(), BTreeSet::new());
            for point in arc_lp::points(&text).map(Result::unwrap) {
                found.0.insert(point.measurement().to_cow().into_owned());
                for (key, _) in point.fields() {
                    found.1.insert((point.measurement().to_cow().into_owned(), key.to_cow().into_owned()));
                }
            }
            assert_eq!(found.0.len(), tables, "{}", corpus.name());
            assert!(found.1.len() >= fields, "{}: {}", corpus.name(), found.1.len());
        }
    }
}
