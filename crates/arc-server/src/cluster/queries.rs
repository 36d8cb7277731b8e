//! The nodes that compute parts of each other's queries: those of the cluster that answer queries.

use hyper::HeaderMap;

use super::{Cluster, report::TOKEN};
use crate::cluster_query::NodeList;

impl NodeList for Cluster {
    fn query_nodes(&self) -> Vec<String> {
        self.members.that_compute_queries().into_iter().map(|peer| peer.url).collect()
    }

    fn headers(&self) -> HeaderMap {
        let mut headers: HeaderMap = self.identity.headers().into_iter().collect();
        headers.insert(TOKEN, self.token.header());
        headers
    }

    fn admits(&self, headers: &HeaderMap) -> bool {
        let is_one_of_us = self.check(headers).is_ok();
        if !is_one_of_us {
            self.counters.refused.add(1);
        }
        is_one_of_us
    }
}
