//! Settings of the Parquet writer.

use parquet::basic::{Compression, ZstdLevel};

use crate::{Error, Result};

/// What a value takes in memory, mostly.
const VALUE_BYTES: usize = 8;
/// However little memory there is, for what surrounds pages has its size, too.
const MIN_PAGE_ROWS: usize = 64;
const MIN_DICTIONARY_BYTES: usize = 1 << 10;

/// How rows are laid out in a data file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParquetOptions {
    /// Most rows of a row group. Default 262,144. More compresses a little better (dictionaries are
    /// written once for each group) and costs memory while writing; fewer give queries more to skip
    /// and to run in parallel.
    pub row_group_rows: usize,
    /// Encoded bytes after which a row group ends, whatever its rows. Default 64 MiB. Bounds the
    /// writer's memory where wide rows come in batches, as in compaction; a flush holds one encoded
    /// column at a time, and does not need it.
    pub row_group_bytes: usize,
    /// Bytes of rows that are gathered before they are encoded. Default 16 MiB. Fewer cost a fifth
    /// of the time more.
    pub gather_bytes: usize,
    /// Bytes after which a column's dictionary, and a page of texts without one, ends. Default 16
    /// MiB, which is the most there is: numbers have dictionaries of up to 1 MiB whatever this is,
    /// texts have pages of that size. Merging files takes as much for each column; less makes
    /// columns with many repeated values larger.
    pub dictionary_bytes: usize,
    /// Most rows of a page. Default 10,000. Fewer let a query of one series read less, and make the
    /// page index larger.
    pub page_rows: usize,
    /// Zstandard level, 1 to 22. Default 1: on random text level 3 is slower and larger, above it
    /// only slower.
    pub compression_level: i32,
}

impl Default for ParquetOptions {
    fn default() -> Self {
        Self {
            row_group_rows: 262_144,
            row_group_bytes: 64 << 20,
            gather_bytes: 16 << 20,
            dictionary_bytes: 16 << 20,
            page_rows: 10_000,
            compression_level: 1,
        }
    }
}

impl ParquetOptions {
    /// Returns how compaction lays rows out: larger row groups, for its files are larger. It
    /// gathers less, which took 50 MB off the peak of a server that merges while it is written to,
    /// and no more time.
    pub(crate) fn compaction() -> Self {
        Self { row_group_rows: 1 << 20, gather_bytes: 4 << 20, ..Self::default() }
    }

    /// Returns these options with what a writer of files with so many columns holds in proportion
    /// to a memory budget: several files are written at a time, and none of them asks before it
    /// takes. Nor does a merge that reads them: it has a page and a dictionary of each column.
    pub(crate) fn within(self, memory_bytes: usize, columns: usize) -> Self {
        let column_bytes = memory_bytes / 64 / columns.max(1);
        Self {
            row_group_bytes: self.row_group_bytes.min(memory_bytes / 16).max(1),
            gather_bytes: self.gather_bytes.min(memory_bytes / 32).max(1),
            dictionary_bytes: self.dictionary_bytes.min(column_bytes.max(MIN_DICTIONARY_BYTES)),
            page_rows: self.page_rows.min((column_bytes / VALUE_BYTES).max(MIN_PAGE_ROWS)),
            ..self
        }
    }

    /// Checks the values against each other's and Parquet's limits.
    pub(super) fn validate(&self) -> Result<()> {
        let at_least_one = [
            ("row_group_rows", self.row_group_rows),
            ("row_group_bytes", self.row_group_bytes),
            ("gather_bytes", self.gather_bytes),
            ("dictionary_bytes", self.dictionary_bytes),
            ("page_rows", self.page_rows),
        ];
        for (option, value) in at_least_one {
            if value == 0 {
                return Err(Error::InvalidOption { option, reason: "0 is too small; expected at least 1".into() });
            }
        }
        self.compression().map(drop)
    }

    pub(super) fn compression(&self) -> Result<Compression> {
        let level = ZstdLevel::try_new(self.compression_level).map_err(|_| Error::InvalidOption {
            option: "compression_level",
            reason: format!("{} is out of range; expected 1 to 22", self.compression_level),
        })?;
        Ok(Compression::ZSTD(level))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_budget_bounds_what_a_writer_holds_and_a_large_one_changes_nothing() {
        let small = ParquetOptions::compaction().within(64 << 20, 10);
        assert_eq!((small.row_group_bytes, small.gather_bytes), (4 << 20, 2 << 20));
        assert_eq!((small.dictionary_bytes, small.page_rows), ((1 << 20) / 10, 10_000));
        let wide = ParquetOptions::default().within(128 << 20, 1_000);
        assert_eq!((wide.dictionary_bytes, wide.page_rows), (2_097, 262));
        let tiny = ParquetOptions::default().within(0, 1_000);
        assert_eq!((tiny.dictionary_bytes, tiny.page_rows), (1 << 10, 64));
        assert!(small.validate().is_ok() && tiny.validate().is_ok());
        assert_eq!(ParquetOptions::default().within(16 << 30, 10), ParquetOptions::default());
    }

    #[test]
    fn values_out_of_range_are_named() {
        let defaults = ParquetOptions::default;
        let cases = [
            (ParquetOptions { row_group_rows: 0, ..defaults() }, "row_group_rows"),
            (ParquetOptions { row_group_bytes: 0, ..defaults() }, "row_group_bytes"),
            (ParquetOptions { gather_bytes: 0, ..defaults() }, "gather_bytes"),
            (ParquetOptions { dictionary_bytes: 0, ..defaults() }, "dictionary_bytes"),
            (ParquetOptions { page_rows: 0, ..defaults() }, "page_rows"),
            (ParquetOptions { compression_level: 0, ..defaults() }, "compression_level"),
            (ParquetOptions { compression_level: 23, ..defaults() }, "compression_level"),
        ];
        assert!(defaults().validate().is_ok());
        for (options, name) in cases {
            let error = options.validate().unwrap_err();
            assert!(matches!(error, Error::InvalidOption { option, .. } if option == name), "{error}");
        }
    }
}
