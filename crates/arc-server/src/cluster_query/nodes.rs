//! The ways to other nodes.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use arc_core::QueryCluster;
use hyper::HeaderMap;
use tonic::transport::{Channel, Endpoint};
use url::Url;

use super::NodeList;

/// How long it may take to reach another node.
const CONNECT_PATIENCE: Duration = Duration::from_secs(2);
/// How often a node is asked whether it is still there, and how long it may take to say so: one that is cut off fails its
/// queries after that.
const ALIVE_EVERY: Duration = Duration::from_secs(5);
const ALIVE_PATIENCE: Duration = Duration::from_secs(5);
/// Bytes that a node may send ahead of what is read, on one query and on all.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;

/// See the module. A node that is reached by TLS is left out.
#[derive(Debug)]
pub(super) struct QueryNodes {
    list: Arc<dyn NodeList>,
    /// One connection each, which is made anew when it was lost.
    channels: Mutex<HashMap<Url, Channel>>,
}

impl QueryNodes {
    pub(super) fn new(list: Arc<dyn NodeList>) -> Self {
        Self { list, channels: Mutex::default() }
    }
}

impl QueryCluster for QueryNodes {
    fn workers(&self) -> Vec<Url> {
        let urls = self.list.query_nodes().into_iter().filter_map(|node| Url::parse(&node).ok());
        urls.filter(|url| url.scheme() == "http").collect()
    }

    fn channel(&self, worker: &Url) -> Channel {
        let mut channels = self.channels.lock().unwrap_or_else(PoisonError::into_inner);
        channels.entry(worker.clone()).or_insert_with(|| connect(worker)).clone()
    }

    fn headers(&self) -> HeaderMap {
        self.list.headers()
    }

    fn min_scan_bytes(&self) -> u64 {
        self.list.min_scan_bytes()
    }
}

fn connect(worker: &Url) -> Channel {
    // What parses as an address does so here; if not, calls fail with what is wrong with it.
    let endpoint = Endpoint::from_shared(worker.to_string()).unwrap_or_else(|_| Endpoint::from_static("http://[::]:0"));
    endpoint
        .connect_timeout(CONNECT_PATIENCE)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(ALIVE_EVERY)
        .keep_alive_timeout(ALIVE_PATIENCE)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .connect_lazy()
}
