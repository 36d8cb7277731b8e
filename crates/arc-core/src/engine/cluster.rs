//! Queries over several nodes: this engine's with the help of others, and others' with its help.

use std::sync::Arc;

use super::Engine;
use crate::{
    Result,
    query::{ClusterStats, QueryCluster, QueryWorker},
};

impl Engine {
    /// Spreads queries over the nodes of `cluster` from now on: parts of them are sent to other
    /// nodes, which read the same data files, and take a share here. Only the first call counts.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Closed`](crate::ErrorKind::Closed).
    pub fn join_cluster(&self, cluster: Arc<dyn QueryCluster>) -> Result<()> {
        self.inner.query()?.join(cluster)
    }

    /// Returns what became of queries since this node joined a cluster, or `None` if it did not.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Closed`](crate::ErrorKind::Closed).
    pub fn cluster_stats(&self) -> Result<Option<ClusterStats>> {
        Ok(self.inner.query()?.cluster_stats())
    }

    /// Returns what executes parts of other nodes' queries, within this engine's memory for queries
    /// and its time limit. It reads data files where this engine does: they must be the same.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Closed`](crate::ErrorKind::Closed).
    pub fn query_worker(&self) -> Result<QueryWorker> {
        Ok(self.inner.query()?.worker())
    }
}
