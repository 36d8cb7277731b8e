//! Which rows of a data file have times that are asked for, without reading any other column.
//!
//! A file sorted by (tags, time) has each series in one piece, so that a range of times is some
//! rows here and there in every row group: its statistics leave nothing out. Where the times of a
//! row group lie is found out once, held in few bytes (most series come at equal distances) and
//! remembered, as a file never changes. From then on a condition on time says which rows to decode,
//! and need not be looked at again; so does what a sort with a limit has found so far. Never
//! decides what a statement answers: rows of which it is not sure are read and looked at.

mod cache;
mod opening;
mod pieces;
mod range;
mod relaxed;
mod sorting;
mod source;

pub(super) use self::{
    cache::TimesCache,
    range::TimeRange,
    source::{InTimeOrder, TimedSource},
};
