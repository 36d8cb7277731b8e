//! Settings of the Parquet writer.

use parquet::basic::{Compression, ZstdLevel};

use crate::{Error, Result};

/// How rows are laid out in a data file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParquetOptions {
    /// Most rows of a row group. Default 262,144. More compresses a little better (dictionaries are written once for
    /// each group) and costs memory while writing; fewer give queries more to skip and to run in parallel.
    pub row_group_rows: usize,
    /// Encoded bytes after which a row group ends, whatever its rows. Default 64 MiB. Bounds the writer's memory where
    /// wide rows come in batches, as in compaction; a flush holds one encoded column at a time, and does not need it.
    pub row_group_bytes: usize,
    /// Most rows of a page. Default 10,000. Fewer let a query of one series read less, and make the page index larger.
    pub page_rows: usize,
    /// Zstandard level, 1 to 22. Default 1: on random text level 3 is slower and larger, above it only slower.
    pub compression_level: i32,
}

impl Default for ParquetOptions {
    fn default() -> Self {
        Self { row_group_rows: 262_144, row_group_bytes: 64 << 20, page_rows: 10_000, compression_level: 1 }
    }
}

impl ParquetOptions {
    /// Returns how compaction lays rows out: larger row groups, for its files are larger.
    pub(crate) fn compaction() -> Self {
        Self { row_group_rows: 1 << 20, ..Self::default() }
    }

    /// Checks the values against each other's and Parquet's limits.
    pub(super) fn validate(&self) -> Result<()> {
        let at_least_one = [
            ("row_group_rows", self.row_group_rows),
            ("row_group_bytes", self.row_group_bytes),
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
    fn values_out_of_range_are_named() {
        let defaults = ParquetOptions::default;
        let cases = [
            (ParquetOptions { row_group_rows: 0, ..defaults() }, "row_group_rows"),
            (ParquetOptions { row_group_bytes: 0, ..defaults() }, "row_group_bytes"),
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
