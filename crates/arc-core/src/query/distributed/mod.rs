//! Queries over several nodes: parts of a plan are executed where this node sends them.
//!
//! A statement is planned as on one node. Then the parts of its plan that may be executed anywhere
//! are found ([`parts`]): scans of data files, and what is computed of each of their rows or
//! partitions by itself. Their files are divided among workers ([`places`]), each of which gets the
//! part with its own files ([`leaf`], [`codec`]), and what comes back takes the place of the part
//! ([`run`]). All else stays here: joins, windows, the second phase of aggregates, unflushed rows,
//! the merge of late rows.
//!
//! The library `datafusion-distributed` moves plans and rows. Where a plan is cut is decided here,
//! so that no row can come twice: a partition is executed in one place, and it makes no difference
//! in which. See docs/decisions/044-distributed-queries.md.
//!
//! Never opens a connection: the nodes and the ways to them come from the caller ([`QueryCluster`]).

mod channel;
mod cluster;
mod codec;
mod gather;
mod given;
mod leaf;
mod parts;
mod places;
mod run;
mod wire;
mod worker;

pub(super) use self::{cluster::Cluster, run::Spread, worker::worker};
pub use self::{
    cluster::{ClusterStats, QueryCluster},
    worker::QueryWorker,
};
