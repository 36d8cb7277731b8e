//! Merge of late rows: rows of one primary key become one row, in which each field has its last
//! value that is not null.
//!
//! A row that is late may have the primary key of an earlier one, so late parts, and the parts
//! whose times they overlap, are read in order of (tags, time, version) and folded. Everything else
//! is scanned without this. Nothing but filters on tags and time may be applied before the fold,
//! for only they hold for all versions of a row or for none.

mod buffered;
mod exec;
mod filter;
mod fold;
mod plan;
#[cfg(test)]
mod tests;

pub(super) use self::plan::{row_field, scan, split};
