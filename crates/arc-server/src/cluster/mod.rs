//! One server of several over one object store: whom it knows, what nodes tell each other, and what is
//! handed on to the node that takes it.
//!
//! One node, the *owner*, commits to the store's manifest and has the log. Others read the store, and ask
//! the owner for what is in no data file yet, so that their answers have every row that was acknowledged
//! before the question (decision 042). Whose log it is says the manifest, never a setting. Nothing here
//! knows SQL, a body, or a file of the engine's.

mod forward;
mod internal;
mod members;
mod owner_log;
mod peers;
mod places;
mod queries;
mod report;
mod secret;
mod standby;
mod status;

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use arc_core::store::OwnerLog;
use hyper::StatusCode;
use tokio::runtime::Runtime;

use self::{members::Members, owner_log::PeerLog, peers::PeerClient, report::Identity, secret::ClusterToken};
use crate::{
    app::App,
    config::{ClusterSettings, Config, Role},
    errors::{Failure, chain},
    metrics::Counter,
};

pub(crate) use forward::{answer, text_of_token};
pub(crate) use internal::{Between, between_nodes, routes};
pub(crate) use status::status;

/// How often nodes ask each other how they are.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// How long an answer may take, of a node that does nothing else for it.
const ASK_PATIENCE: Duration = Duration::from_secs(2);

/// Why a server cannot be a node.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// The file with the secret cannot be read, or has none.
    #[error("the cluster's token in {} cannot be used: {reason}", path.display())]
    Token {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what was expected.
        reason: String,
    },
    /// There is no room for the thread that talks to other nodes, or for encrypted connections.
    #[error("cannot talk to other nodes: {reason}")]
    Start {
        /// What failed.
        reason: String,
    },
}

/// What a server knows as a node.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) role: Role,
    pub(crate) name: String,
    identity: Identity,
    token: ClusterToken,
    /// Asks other nodes, on threads of its own: those that ask may be blocked.
    peers: PeerClient,
    /// Hands requests on, on the threads that serve them.
    onward: PeerClient,
    members: Members,
    runtime: Option<Runtime>,
    app: OnceLock<Weak<App>>,
    pub(crate) counters: ClusterCounters,
}

/// What a node has done for others, and asked of them.
#[derive(Debug, Default)]
pub(crate) struct ClusterCounters {
    /// Requests that were handed on.
    pub(crate) forwarded: Counter,
    /// Those of them that were not answered by who they were for.
    pub(crate) forward_failures: Counter,
    /// Requests that other nodes have handed on to this one.
    pub(crate) received: Counter,
    /// Questions to the owner about its log, and bytes of it that were read.
    pub(crate) log_questions: Counter,
    pub(crate) log_bytes: Counter,
    /// Bytes of the log that this node has sent.
    pub(crate) log_bytes_sent: Counter,
    /// Requests between nodes that were refused.
    pub(crate) refused: Counter,
}

impl Cluster {
    /// Returns what a server is as a node; `None` where it is alone.
    ///
    /// # Errors
    ///
    /// [`ClusterError`].
    pub(crate) fn open(config: &Config) -> Result<Option<Arc<Self>>, ClusterError> {
        let ClusterSettings { role, node_name, peers, token_file, .. } = &config.cluster;
        let (Some(name), Some(path)) = (node_name, token_file) else { return Ok(None) };
        let token = ClusterToken::read(path)?;
        let start = |error: &dyn std::error::Error| ClusterError::Start { reason: chain(error) };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("arc-peers")
            .enable_all()
            .build()
            .map_err(|error| start(&error))?;
        let identity = Identity::new(name, config.object_store.url.as_deref().unwrap_or_default());
        let is_encrypted = peers.iter().any(|peer| peer.url.starts_with("https://"));
        let client = || PeerClient::new(&identity, &token, is_encrypted).map_err(|error| start(&error));
        Ok(Some(Arc::new(Self {
            role: *role,
            name: name.clone(),
            peers: client()?,
            onward: client()?,
            members: Members::new(peers),
            identity,
            token,
            runtime: Some(runtime),
            app: OnceLock::new(),
            counters: ClusterCounters::default(),
        })))
    }

    /// Returns what asks the owner for its log, for an engine that reads.
    pub(crate) fn owner_log(self: &Arc<Self>) -> Arc<dyn OwnerLog> {
        Arc::new(PeerLog::new(self))
    }

    /// Serves `app` as a node from now on, and keeps asking the others.
    pub(crate) fn begin(self: &Arc<Self>, app: &Arc<App>) {
        if self.app.set(Arc::downgrade(app)).is_err() {
            return;
        }
        app.metrics.of_cluster(self);
        let cluster = Arc::downgrade(self);
        if let Some(runtime) = &self.runtime {
            runtime.spawn(async move {
                while let Some(cluster) = cluster.upgrade() {
                    cluster.ask_all().await;
                    cluster.follow_tokens().await;
                    drop(cluster);
                    tokio::time::sleep(ASK_EVERY).await;
                }
            });
        }
    }

    /// Returns how many other nodes are named, and how many of them answer.
    pub(crate) fn nodes(&self) -> (u64, u64) {
        let all = self.members.all();
        let reachable = all.iter().filter(|member| member.report.is_some() && member.failure.is_none()).count();
        (all.len() as u64, reachable as u64)
    }

    /// Returns whether a node that takes writes is known.
    pub(crate) fn has_owner(&self) -> bool {
        self.role != Role::Query || self.members.owner(None).is_some()
    }

    /// Returns why this node cannot answer, if that is so: without the owner no answer of a reader would have every row.
    pub(crate) fn not_ready(&self) -> Option<String> {
        let lacks_owner = self.role == Role::Query && self.members.owner(None).is_none();
        lacks_owner.then(|| format!("the owner of the store does not answer: {}", self.members.no_owner()))
    }

    /// Refuses what is not handed on, and says where it is taken.
    pub(crate) fn check_takes_changes(&self) -> Result<(), Failure> {
        if self.role != Role::Query {
            return Ok(());
        }
        let whose = match self.members.owner(None) {
            Some(owner) => format!("node {} at {}", owner.name, owner.url),
            None => "the node that takes writes, which does not answer now".to_owned(),
        };
        let text =
            format!("this node hands on writes and changes over HTTP, not over Arrow Flight: send this to {whose}");
        Err(Failure::new(StatusCode::METHOD_NOT_ALLOWED, text))
    }

    fn app(&self) -> Option<Arc<App>> {
        self.app.get()?.upgrade()
    }

    /// Asks all others how they are, at once.
    async fn ask_all(&self) {
        let all = self.members.peers();
        let asked = all.iter().map(|peer| async move {
            let answer = self.peers.report(peer, ASK_PATIENCE).await;
            self.members.note(&peer.name, answer);
        });
        futures::future::join_all(asked).await;
    }

    /// Takes over the tokens of the owner, if this node lets clients in by them.
    async fn follow_tokens(&self) {
        let Some(app) = self.app().filter(|app| app.auth.is_owners()) else { return };
        let Some(owner) = self.members.owner(None) else { return };
        match self.peers.tokens(&owner, app.auth.revision().as_deref(), ASK_PATIENCE).await {
            Ok(tokens) => app.auth.take_over(tokens),
            Err(reason) => tracing::warn!(owner = owner.name, reason, "cannot read the tokens of the owner"),
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
