//! Aggregates that are answered from those which data files keep by series and hour.
//!
//! `GROUP BY host, date_trunc('hour', time)` reads all rows of a file, and gives one for each hour of
//! each series. A merged file has these already ([`datafile::hourly`](crate::datafile::hourly)): as
//! states of the first phase of an aggregate, which the second phase merges with those of other
//! rows. What is asked must be the same for all rows of a series and an hour: groups by tags and
//! buckets of hours, conditions on tags, `count`, `sum`, `avg`, `min` and `max` of a column. Of a
//! range of times whole hours are taken, and the rows before and behind them are read.
//!
//! Never decides which files merge with which: only scans of files whose rows no others overwrite
//! are looked at, and only the deletes that a plan applies to their rows. Where aggregates cannot be
//! read, or have not what the manifest lets expect, the rows answer.

mod exec;
mod question;
mod read;
mod rule;

pub(super) use self::rule::StoredHours;
