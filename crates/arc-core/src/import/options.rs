//! What an import is told: plain values, like the settings of a write.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
};

use super::TimeFormat;
use crate::{Durability, Precision, WriteOptions};

/// What a file is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImportFormat {
    /// Line protocol: `lp`.
    LineProtocol,
    /// Values between commas, semicolons, tabs or bars, with a first line of names: `csv`.
    Csv,
    /// `parquet`.
    Parquet,
    /// An Arrow IPC stream or file: `arrow`.
    Arrow,
}

impl ImportFormat {
    /// Tells the format from a file's name; `.gz` and `.zst` after it do not count.
    ///
    /// ```
    /// use arc_core::import::ImportFormat;
    ///
    /// assert_eq!(ImportFormat::of_name("pump.csv.gz"), Some(ImportFormat::Csv));
    /// assert_eq!(ImportFormat::of_name("pump.xlsx"), None);
    /// ```
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        let inner = [".gz", ".zst"].into_iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
        let end = Path::new(inner).extension()?.to_str()?.to_ascii_lowercase();
        Some(match end.as_str() {
            "lp" | "line" | "influx" => Self::LineProtocol,
            "csv" | "tsv" | "tab" => Self::Csv,
            "parquet" | "pq" => Self::Parquet,
            "arrow" | "arrows" | "feather" | "ipc" => Self::Arrow,
            _ => return None,
        })
    }
}

impl FromStr for ImportFormat {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        Ok(match s {
            "lp" => Self::LineProtocol,
            "csv" => Self::Csv,
            "parquet" => Self::Parquet,
            "arrow" => Self::Arrow,
            _ => return Err(format!("{s:?} is not a format; expected lp, csv, parquet or arrow")),
        })
    }
}

/// What the values of a column of text are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImportType {
    /// `float`.
    Float,
    /// `integer`.
    Integer,
    /// `unsigned`.
    Unsigned,
    /// `boolean`.
    Boolean,
    /// `string`.
    String,
}

impl FromStr for ImportType {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        Ok(match s {
            "float" => Self::Float,
            "integer" => Self::Integer,
            "unsigned" => Self::Unsigned,
            "boolean" => Self::Boolean,
            "string" => Self::String,
            _ => return Err(format!("{s:?} is not a type; expected float, integer, unsigned, boolean or string")),
        })
    }
}

/// Settings of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportOptions {
    /// Where the points go. Default `default`.
    pub database: String,
    /// The table of a CSV, Parquet or Arrow file, which has to be said. Of line protocol, the one
    /// measurement that is taken. Default: none, and all.
    pub table: Option<String>,
    /// Default: by the end of the file's name.
    pub format: Option<ImportFormat>,
    /// Unit of times that are numbers since 1970. Default: nanoseconds for line protocol. Else the
    /// first 10,000 rows of CSV, or the first piece of another file, decide by their size, where
    /// they can be nothing else.
    pub precision: Option<Precision>,
    /// The form of times, not in line protocol. Default: texts with the year first or a month by its
    /// name, and what the first rows tell of others.
    pub time_format: Option<TimeFormat>,
    /// The column that has the time, not in line protocol, or several with commas between them whose
    /// texts make it together, as `date,hour`. Default `time`, else the one that has `Time`,
    /// `timestamp`, `datetime` or `date` for its name.
    pub time_column: Option<String>,
    /// Columns that are left out. Those without a name always are.
    pub exclude: Vec<String>,
    /// Columns that are tags, not in line protocol. Default: the tags that the table has.
    pub tags: Vec<String>,
    /// What the points survive. Default: what the database says, or the engine.
    pub durability: Option<Durability>,
    /// What stands between the values of CSV. Default: what the first line has most of, of comma,
    /// semicolon, tab and bar.
    pub delimiter: Option<u8>,
    /// Lines before the names of CSV. Default 0.
    pub skip_rows: u64,
    /// Types of columns of CSV. Default: what the table has, else the narrowest that fits all
    /// values of the file.
    pub types: Vec<(String, ImportType)>,
    /// What stands for no value in all columns of CSV, beside an empty one and `NA`, `N/A`, `null`,
    /// `None`, `nil`, `-`, `?` and their like in columns that are neither texts nor tags. Default
    /// none.
    pub nulls: Vec<String>,
    /// How many bytes of a file are stored with one write. Default 4 MiB. More costs that much
    /// memory a few times over.
    pub chunk_bytes: usize,
    /// The folder in which a compressed file of Parquet or Arrow is laid down unpacked while it is
    /// read. Default: the system's for temporary files.
    pub unpack_in: Option<PathBuf>,
    /// How many bytes such a file may have then. Default: as many as there is room for.
    pub unpacked_bytes: u64,
    /// A name for the import: the same file under the same name is stored once, as long as the
    /// target remembers its writes. Default empty, which is a name. Without one each import is a
    /// new one.
    pub id: Option<String>,
}

impl Default for ImportOptions {
    fn default() -> Self {
        Self {
            database: "default".to_owned(),
            table: None,
            format: None,
            precision: None,
            time_format: None,
            time_column: None,
            exclude: Vec::new(),
            tags: Vec::new(),
            durability: None,
            delimiter: None,
            skip_rows: 0,
            types: Vec::new(),
            nulls: Vec::new(),
            chunk_bytes: 4 << 20,
            unpack_in: None,
            unpacked_bytes: u64::MAX,
            id: Some(String::new()),
        }
    }
}

impl ImportOptions {
    /// Returns the defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns how many bytes one record of a file may have: what holds a piece holds it whole.
    pub(super) fn longest_record(&self) -> usize {
        /// How many times the usual size of a piece, and what it may have in any case.
        const PIECES: usize = 8;
        const LEAST: usize = 1 << 20;
        self.chunk_bytes.saturating_mul(PIECES).max(LEAST)
    }

    /// Returns the settings of the write that is known by `key`.
    pub(super) fn write(&self, format: ImportFormat, key: Option<String>) -> WriteOptions {
        let mut write = WriteOptions::new();
        write.idempotency_key = key;
        write.durability = self.durability;
        match format {
            ImportFormat::LineProtocol => write.precision = self.precision,
            // Times are nanoseconds by then.
            _ => write = write.tags(self.tags.iter().cloned()),
        }
        write
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_name_says_the_format() {
        use ImportFormat::{Arrow, Csv, LineProtocol, Parquet};
        for (name, format) in [
            ("a.lp", Some(LineProtocol)),
            ("a.lp.gz", Some(LineProtocol)),
            ("a.b.CSV.zst", Some(Csv)),
            ("a.parquet", Some(Parquet)),
            ("a.arrows", Some(Arrow)),
            ("a.gz", None),
            ("a.txt", None),
            ("csv", None),
        ] {
            assert_eq!(ImportFormat::of_name(name), format, "{name}");
        }
    }
}
