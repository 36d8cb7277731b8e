//! What is known of the line being read, until it is a row or refused.

use std::borrow::Cow;

use crate::{buffer::SeriesId, ingest::type_rules::Narrow};

/// What to do with the fields of a line.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Store them.
    #[default]
    Store,
    /// Store them, but look at each: one may have the name of a tag of the line.
    Compare,
    /// Store them in row format.
    Row,
    /// Only check them: the line is to be passed over, or bad already.
    Check,
}

/// The line being read.
#[derive(Debug, Default)]
pub(super) struct Line<'a> {
    pub(super) number: u64,
    pub(super) key: &'a [u8],
    pub(super) mode: Mode,
    /// Its table, once that is known.
    pub(super) table: usize,
    /// Known when the cache had it.
    pub(super) series: Option<SeriesId>,
    pub(super) tags: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// Columns that have a value of this line.
    pub(super) touched: Vec<usize>,
    /// One more than the column of the last field; 0 before the first.
    pub(super) next_field: usize,
    /// Columns that the request proposed before this line.
    pub(super) added: usize,
    /// Columns that became others of this line's values, as they were before.
    pub(super) widened: Vec<Narrow>,
    pub(super) fault: Option<LineFault>,
}

/// Why a line is refused that the parser finds good.
#[derive(Debug)]
pub(super) struct LineFault {
    /// Byte in the line, from 1; 0 where a position means nothing.
    pub(super) column: u64,
    pub(super) reason: String,
}

impl From<String> for LineFault {
    fn from(reason: String) -> Self {
        Self { column: 0, reason }
    }
}
