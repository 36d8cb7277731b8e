//! Bulk import: the command `import`, into a data directory or a running server, and the endpoints `/api/v1/import/…`.
//!
//! Reading files is `arc_core::import`'s part. Here is where they come from, where they go, and what is said about it.

mod command;
mod dry_run;
mod endpoint;
mod remote;
mod row_counts;
mod show;
mod upload;

pub(crate) use command::{command, run};
pub(crate) use endpoint::{ImportCounters, csv, line_protocol, parquet, stats};
