//! Queries that are spread over several nodes: what this one computes for others, and its ways to them.
//!
//! Owns the gRPC service of a worker, which stands beside Flight SQL, and the connections to those of others. Who the others
//! are, and what proves that a node is one of them, is asked of a [`NodeList`].

mod nodes;
mod service;

use std::{fmt::Debug, sync::Arc};

use arc_core::{ClusterStats, Engine, QueryWorker};
use hyper::HeaderMap;

use self::nodes::QueryNodes;

pub(crate) use self::service::beside;

/// Which nodes compute parts of each other's queries.
pub trait NodeList: Debug + Send + Sync + 'static {
    /// Returns where the others are that are up and answer queries, as `http://host:port`. Must not wait.
    fn query_nodes(&self) -> Vec<String>;

    /// Returns the headers of each call to another node, by which it knows this one.
    fn headers(&self) -> HeaderMap;

    /// Returns whether a call comes from one of the nodes: whoever is let in reads every data file.
    fn admits(&self, headers: &HeaderMap) -> bool;

    /// Returns how many bytes the data files of a scan must have at least for it to be divided; 0 divides all.
    fn min_scan_bytes(&self) -> u64 {
        16 << 20
    }
}

/// What a server is to others that spread queries.
#[derive(Debug)]
pub(crate) struct QueryNode {
    list: Arc<dyn NodeList>,
    worker: QueryWorker,
    engine: Engine,
}

impl QueryNode {
    /// Spreads the queries of an engine over these nodes from now on, and computes parts of theirs.
    pub(crate) fn join(engine: &Engine, list: Arc<dyn NodeList>) -> arc_core::Result<Self> {
        engine.join_cluster(Arc::new(QueryNodes::new(Arc::clone(&list))))?;
        Ok(Self { list, worker: engine.query_worker()?, engine: engine.clone() })
    }

    /// Returns what became of queries here, and how many parts of others' there are at this moment.
    pub(crate) fn counts(&self) -> (ClusterStats, usize) {
        let stats = self.engine.cluster_stats().ok().flatten().unwrap_or_default();
        (stats, self.worker.tasks())
    }
}
