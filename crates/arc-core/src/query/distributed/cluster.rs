//! The nodes that parts of queries are sent to, and which of them failed lately.

use std::{
    collections::HashMap,
    fmt::Debug,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use datafusion_distributed::LocalWorkerContext;
use parking_lot::Mutex;
use tokio::time::Instant;
use url::Url;

use super::worker::QueryWorker;
use crate::{Error, Result};

/// The name of this node among workers: an address that cannot be reached.
const OWN_URL: &str = "http://self.invalid";

/// How long nothing is sent to a worker that failed.
const REST: Duration = Duration::from_secs(10);

/// The nodes that execute parts of queries for this one.
///
/// Nothing here may wait: it is asked while a statement is planned.
pub trait QueryCluster: Debug + Send + Sync + 'static {
    /// Returns the addresses of the other nodes that are up, as `http://host:port` each. The order
    /// does not matter; with none, queries run on this node alone.
    fn workers(&self) -> Vec<Url>;

    /// Returns the connection to a worker, which may be yet to be made. It should be the same one
    /// each time, as it carries any number of calls.
    fn channel(&self, worker: &Url) -> tonic::transport::Channel;

    /// Returns the headers of each call, by which workers know their own.
    fn headers(&self) -> http::HeaderMap;

    /// Returns how many bytes the data files of a scan must have at least for it to be divided:
    /// less is read sooner than sent. 0 divides all.
    fn min_scan_bytes(&self) -> u64;
}

/// What became of queries since this node joined a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ClusterStats {
    /// Queries of which a part was sent to workers.
    pub divided: u64,
    /// Queries that ran on this node alone though they read enough: nothing in them is computed
    /// before the rows would be sent, or it has no form to be sent in.
    pub kept: u64,
    /// Queries that were begun again because a worker failed before the first row.
    pub retried: u64,
}

/// See the module.
#[derive(Debug)]
pub(in crate::query) struct Cluster {
    nodes: Arc<dyn QueryCluster>,
    /// What this node takes its own share by.
    own: QueryWorker,
    own_url: Url,
    /// Until when nothing is sent to a worker.
    resting: Mutex<HashMap<Url, Instant>>,
    divided: AtomicU64,
    kept: AtomicU64,
    retried: AtomicU64,
}

/// What a query has met.
#[derive(Debug, Clone, Copy)]
pub(super) enum Counted {
    Divided,
    Kept,
    Retried,
}

impl Cluster {
    pub(in crate::query) fn new(nodes: Arc<dyn QueryCluster>, own: QueryWorker) -> Result<Self> {
        Ok(Self {
            nodes,
            own,
            own_url: Url::parse(OWN_URL).map_err(|e| Error::internal(e.to_string()))?,
            resting: Mutex::default(),
            divided: AtomicU64::default(),
            kept: AtomicU64::default(),
            retried: AtomicU64::default(),
        })
    }

    /// Returns what has the library execute this node's own share here.
    pub(super) fn own_share(&self) -> LocalWorkerContext {
        self.own.local(self.own_url.clone())
    }

    pub(super) fn nodes(&self) -> &dyn QueryCluster {
        &*self.nodes
    }

    /// Returns the workers to divide files among, this node with them, in an order that is always
    /// the same.
    pub(super) fn workers(&self) -> Vec<Url> {
        let mut workers = self.nodes.workers();
        let mut resting = self.resting.lock();
        let now = Instant::now();
        resting.retain(|_, until| *until > now);
        workers.retain(|worker| !resting.contains_key(worker));
        workers.push(self.own_url.clone());
        workers.sort_unstable();
        workers.dedup();
        workers
    }

    /// Sends nothing to a worker for a while.
    pub(super) fn rest(&self, worker: &Url, error: &dyn std::fmt::Display) {
        tracing::warn!(%worker, %error, "a worker of the cluster failed");
        self.resting.lock().insert(worker.clone(), Instant::now() + REST);
    }

    pub(super) fn count(&self, what: Counted) {
        let count = match what {
            Counted::Divided => &self.divided,
            Counted::Kept => &self.kept,
            Counted::Retried => &self.retried,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    pub(in crate::query) fn stats(&self) -> ClusterStats {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        ClusterStats { divided: load(&self.divided), kept: load(&self.kept), retried: load(&self.retried) }
    }
}
