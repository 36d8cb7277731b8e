//! What nodes tell each other of themselves, and what has to be the same for that to count.

use hyper::{
    HeaderMap, StatusCode,
    header::{HeaderName, HeaderValue},
};
use serde::{Deserialize, Serialize};

use crate::{config::Role, errors::Failure};

/// The version of what nodes say to each other. Raised where an older node would misread a newer one.
pub(super) const PROTOCOL: u32 = 1;

/// Headers of a request from one node to another: the secret, the version, whose store it is, who sends it, and through how
/// many nodes a client's request has come.
pub(super) const TOKEN: HeaderName = HeaderName::from_static("x-arc-cluster-token");
pub(super) const VERSION: HeaderName = HeaderName::from_static("x-arc-cluster-protocol");
pub(super) const STORE: HeaderName = HeaderName::from_static("x-arc-cluster-store");
pub(super) const NODE: HeaderName = HeaderName::from_static("x-arc-cluster-node");
pub(super) const HOPS: HeaderName = HeaderName::from_static("x-arc-cluster-hops");

/// Paths between nodes, below which no client's are.
pub(super) const INTERNAL: &str = "/internal/v1/";
pub(super) const REPORT: &str = "/internal/v1/node";
pub(super) const SEGMENTS: &str = "/internal/v1/log/segments";
pub(super) const READ: &str = "/internal/v1/log/read";
pub(super) const HOLD: &str = "/internal/v1/hold";
pub(super) const TOKENS: &str = "/internal/v1/tokens";
pub(super) const KEPT: &str = "/internal/v1/kept";

/// What a node says of itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct NodeReport {
    pub(super) name: String,
    pub(super) role: String,
    /// Of the program.
    pub(super) version: String,
    pub(super) protocol: u32,
    pub(super) store: String,
    /// Whether it has the log, and commits.
    pub(super) owns: bool,
    /// The name of its data directory in the store, if it is the owner's.
    pub(super) directory: Option<String>,
    /// The commit that it was opened with.
    pub(super) opening: u64,
    /// The last frame of the log that is acknowledged, or that a reader has seen.
    pub(super) acknowledged: u64,
    /// The newest commit that it made or knows.
    pub(super) committed: u64,
    pub(super) is_ready: bool,
}

/// What a node is to those that it talks to.
#[derive(Debug, Clone)]
pub(super) struct Identity {
    pub(super) name: String,
    pub(super) store: String,
}

impl Identity {
    pub(super) fn new(name: &str, store: &str) -> Self {
        Self { name: name.to_owned(), store: store.trim_end_matches('/').to_owned() }
    }

    /// Returns the headers that say it, but for the secret.
    pub(super) fn headers(&self) -> [(HeaderName, HeaderValue); 3] {
        let value = |text: &str| HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static("?"));
        [(VERSION, PROTOCOL.into()), (STORE, value(&self.store)), (NODE, value(&self.name))]
    }

    /// Refuses a request of a node that does not belong to this one.
    pub(super) fn check_request(&self, headers: &HeaderMap) -> Result<(), Failure> {
        let said = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let (node, protocol, store) = (said(&NODE), said(&VERSION), said(&STORE));
        if protocol != PROTOCOL.to_string() {
            return Err(conflict(format!(
                "node {} speaks version {PROTOCOL} of what nodes say to each other, and {node:?} version {protocol:?}: run the \
                 same version of arc-server on both",
                self.name
            )));
        }
        if store != self.store {
            return Err(conflict(format!(
                "node {} has its data in {}, and {node:?} reads {store:?}: set object_store_url to the same on both, or name \
                 another peer",
                self.name, self.store
            )));
        }
        Ok(())
    }

    /// Returns what is wrong with what the peer `name` says of itself.
    pub(super) fn check_report(&self, name: &str, report: &NodeReport) -> Result<(), String> {
        if report.name != name {
            return Err(format!("it says that its name is {}: correct the setting peer", report.name));
        }
        if report.protocol != PROTOCOL {
            return Err(format!(
                "it speaks version {} of what nodes say to each other (arc-server {}), this node {PROTOCOL} (arc-server {}): \
                 run the same version on both",
                report.protocol,
                report.version,
                env!("CARGO_PKG_VERSION")
            ));
        }
        if report.store != self.store {
            return Err(format!(
                "it has its data in {}, this node reads {}: set object_store_url to the same on both, or name another peer",
                report.store, self.store
            ));
        }
        Ok(())
    }
}

impl NodeReport {
    /// Returns whether it hands queries on rather than answer them itself.
    pub(super) fn answers_queries(&self) -> bool {
        self.is_ready && self.role == Role::Query.name()
    }

    /// Returns whether it computes parts of other nodes' queries.
    pub(super) fn computes_queries(&self) -> bool {
        self.is_ready && self.role != Role::Ingest.name() && self.version == env!("CARGO_PKG_VERSION")
    }
}

fn conflict(text: String) -> Failure {
    Failure::new(StatusCode::CONFLICT, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(name: &str) -> NodeReport {
        NodeReport {
            name: name.to_owned(),
            role: "all".to_owned(),
            version: "9.9".to_owned(),
            protocol: PROTOCOL,
            store: "s3://b/p".to_owned(),
            owns: true,
            directory: None,
            opening: 1,
            acknowledged: 0,
            committed: 1,
            is_ready: true,
        }
    }

    #[test]
    fn what_does_not_belong_together_is_told_apart_on_both_sides() {
        let identity = Identity::new("a", "s3://b/p/");
        assert!(identity.check_report("b", &report("b")).is_ok());
        assert!(identity.check_report("c", &report("b")).unwrap_err().contains("its name is b"));
        let other = NodeReport { store: "s3://b/q".to_owned(), ..report("b") };
        assert!(identity.check_report("b", &other).unwrap_err().contains("object_store_url"));
        let newer = NodeReport { protocol: PROTOCOL + 1, ..report("b") };
        assert!(identity.check_report("b", &newer).unwrap_err().contains("same version"));
        let sent = |identity: &Identity| identity.headers().into_iter().collect::<HeaderMap>();
        assert!(identity.check_request(&sent(&Identity::new("b", "s3://b/p"))).is_ok());
        let refused = identity.check_request(&sent(&Identity::new("b", "s3://b/q"))).unwrap_err();
        assert!(refused.status == 409 && refused.message.contains("object_store_url"), "{refused:?}");
        let mut old = sent(&identity);
        old.insert(VERSION, 0.into());
        assert!(identity.check_request(&old).unwrap_err().message.contains("same version"));
        assert!(identity.check_request(&HeaderMap::new()).is_err());
    }
}
