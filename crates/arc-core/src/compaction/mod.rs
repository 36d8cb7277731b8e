//! Compaction: which data files are merged, and the merge itself.
//!
//! Owns the choice (`plan`, `order`, `retention`: pure functions over what the manifest says) and
//! the rewriting (`job` and below: sorted files in, sorted files out, in bounded memory). Never
//! touches the manifest and never removes a file that is live: `engine` commits what comes out of
//! here, and lets go of what went in.
//!
//! # Which row wins
//!
//! A point's primary key lies in one day, so partitions are independent. Within one, three facts
//! about files decide (see docs/decisions/008-late-rows.md):
//!
//! 1. Files on time hold each primary key at most once *among all of them*. No order between them
//!    matters.
//! 2. A late file may hold primary keys of files on time, which it overwrites, field by field,
//!    whichever was added first.
//! 3. Late files overwrite each other in the order of their
//!    [version](crate::model::DataFile::version): by last, then by first sequence number.
//!
//! A rewrite must keep all three for the files that it does not touch, which is what `order`
//! checks:
//!
//! - Any files on time may be merged, and the result is on time.
//! - Late files may be merged into files on time if *every* file on time whose times overlap theirs
//!   takes part (or an primary key would be on time twice), and every *earlier* late file whose
//!   times overlap theirs (or it would overwrite what overwrote it). Later late files may stay
//!   outside: they overwrite the result as they did the parts.
//! - Late files alone may be merged into one late file if no late file that stays outside and whose
//!   times overlap those of the result has a version between theirs, and the result's version lies
//!   strictly on the same side of it as theirs.
//! - Any output may be parted by time: each primary key has one time. The parts of a late file have
//!   one version, and no row in common.
//!
//! Folding versions field by field can be done in any grouping that keeps their order, so several
//! steps give what one would. Rows that are flushed while a task runs cannot break it: one that is
//! on time is newer than all rows that its series had before, so it has no primary key that is in a
//! file already; one that is late has a later version than all late files. (Two late files can have
//! one version, where all their rows were written without the log; `engine` checks the third rule
//! again when it commits.)
//!
//! Deletes are carried out by the way: each input is read without the rows that deletes have taken
//! from it, before anything is merged, and the output says up to which delete that was. A file that
//! no merge is about to read is rewritten alone for a delete (`purge`), which touches none of the
//! rules above.
//!
//! # When
//!
//! While a partition takes points, files of about the same number of rows are merged once there are
//! [`compaction_files`](crate::Options::compaction_files) of them, or four times as many once they
//! have a million rows, so that a row is rewritten about once each time its file grows by that
//! factor. Late files come along for nothing where they overlap no other file on time; else they
//! are merged among themselves until they are worth the rewriting of what they overlap. Once its
//! day has ended and nothing was added for a while, what is small in a partition is rewritten once
//! more, into files of about [`compaction_file_bytes`](crate::Options::compaction_file_bytes), or
//! of some million rows that come one time after the other, and then left alone. Where that is more
//! files than may be open at once, a late file is parted by time until a part of it overlaps few
//! enough.
//!
//! In order of time alone, a file of a million rows is as good as a larger one: append-only tables
//! keep it as it is, unless it is one of very many
//! (docs/decisions/028-large-files-of-appended-rows.md).

mod assemble;
mod cursor;
mod job;
mod live_rows;
mod merge;
mod moves;
mod order;
mod plan;
mod purge;
mod retention;
#[cfg(test)]
mod tests;
mod texts;

pub(crate) use job::{MAX_BATCH_BYTES, MergeJob, MergeSource, run};
pub(crate) use live_rows::Keep;
pub(crate) use moves::{moves, moves_alone};
pub(crate) use order::{MergeOutput, output};
pub(crate) use plan::{CompactionPlan, MergeTask, SLICE_ROWS, Settings, plan};
pub(crate) use purge::{batches, purge};
pub(crate) use retention::expired;
