//! Arc: an embeddable time-series store.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests make files and measure time"))]

mod arrays;
mod buffer;
pub mod catalog;
pub mod clock;
mod compaction;
mod crash;
pub mod datafile;
mod decoder;
#[cfg(feature = "known-defects")]
pub mod defects;
#[cfg(not(feature = "known-defects"))]
mod defects;
mod engine;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
#[cfg(feature = "import")]
pub mod import;
mod ingest;
mod maintenance;
mod memory;
mod model;
mod options;
mod push;
#[cfg(feature = "query")]
mod query;
pub mod random;
mod registry;
#[cfg(feature = "object-store")]
mod remote_log;
pub mod store;
#[cfg(not(feature = "schedules"))]
mod sync;
#[cfg(feature = "schedules")]
#[doc(hidden)]
pub mod sync;
pub mod vfs;
mod view;
mod wal;
mod write;

pub use catalog::is_data_directory;
pub use decoder::{DecodedLines, DecodedTable, LineDecoder};
pub use engine::{
    CompactionReport, DatabaseInfo, Deleted, Engine, EngineBuilder, EngineStats, FlushReport, TableInfo, Tail,
};
#[cfg(feature = "query")]
pub use engine::{Deletion, Executed};
pub use error::{Error, ErrorKind, Result};
pub use ingest::expanded_bytes;
pub use maintenance::backup::{BackupReport, RestoreReport, restore};
pub use maintenance::branch::BranchReport;
pub use maintenance::repair::{GivenUp, RepairPlan, RepairStep, plan_repair, repair};
#[cfg(feature = "object-store")]
pub use maintenance::verify::verify_in_store;
pub use maintenance::verify::{Finding, Severity, VerifyReport, VerifyTotals, verify};
pub use model::{
    Access, AccessScope, ColumnTypes, Comparison, CutName, FileTimeUnit, FinerTimes, Literal, OnConflict, PastMoment,
    Predicate, SequenceNumber, SnapshotInfo, Tombstone, time_of_text,
};
pub use options::{Durability, Options, Precision, WriteOptions};
pub use push::{AdoptOutcome, AdoptReport, PushOptions, PushProgress, PushReport, PushTarget, Upload};
#[cfg(feature = "query")]
pub use query::{Answer, AnswerEnder, ChangeTarget, Description, ScannedFiles, Statement, StatementKind};
#[cfg(feature = "distributed")]
pub use query::{ClusterStats, QueryCluster, QueryWorker};
pub use view::{BufferPart, TableView};
pub use write::{MAX_REJECTED, PendingWrite, Rejected, Written};

/// Runs the Rust of the README.
#[cfg(all(doctest, feature = "query"))]
#[doc = include_str!("../../../README.md")]
struct Readme;
