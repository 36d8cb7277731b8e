//! The owner's log as the engine of another node reads it: each call is one request.
//!
//! Those who call are blocked meanwhile, wherever they are; the requests run on threads of the cluster's own.

use std::{
    sync::{Arc, Mutex, PoisonError, Weak, mpsc},
    time::Duration,
};

use arc_core::{
    Error, Result, SequenceNumber,
    store::{LogSegment, LogState, OwnerLog},
};
use bytes::Bytes;
use hyper::{Method, StatusCode};

use super::{
    ASK_PATIENCE, Cluster,
    peers::PeerAnswer,
    report::{HOLD, NodeReport, READ, SEGMENTS},
};
use crate::config::Peer;

/// How long a part of the log may take.
const READ_PATIENCE: Duration = Duration::from_secs(5);

/// Asks the owner, whichever node that is.
#[derive(Debug)]
pub(super) struct PeerLog {
    cluster: Weak<Cluster>,
    /// Who answered last, and the opening that it had.
    answered: Mutex<Option<(Peer, u64)>>,
}

impl PeerLog {
    pub(super) fn new(cluster: &Arc<Cluster>) -> Self {
        Self { cluster: Arc::downgrade(cluster), answered: Mutex::default() }
    }

    fn cluster(&self) -> Result<Arc<Cluster>> {
        self.cluster.upgrade().ok_or_else(|| unreachable("this node is stopping"))
    }

    /// Returns who has the log: who is known to, or who says so now.
    fn owner(&self, cluster: &Arc<Cluster>, directory: Option<&str>) -> Result<Peer> {
        if let Some(owner) = cluster.members.owner(directory) {
            return Ok(owner);
        }
        // Nodes that do not answer are asked once a second by themselves; who waits for each of these tries waits for long.
        if cluster.members.all().iter().any(|member| member.failure.is_none()) || cluster.app().is_none() {
            let asking = Arc::clone(cluster);
            run(cluster, async move { asking.ask_all().await }, 2 * ASK_PATIENCE);
        }
        cluster.members.owner(directory).ok_or_else(|| unreachable(cluster.members.no_owner()))
    }

    /// Asks who answered last.
    fn ask(&self, method: Method, path: String, patience: Duration) -> Result<PeerAnswer> {
        let cluster = self.cluster()?;
        let answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let owner = match answered {
            Some((owner, _)) => owner,
            None => self.owner(&cluster, None)?,
        };
        cluster.counters.log_questions.add(1);
        let (asking, asked) = (Arc::clone(&cluster), owner.clone());
        let answer = run(
            &cluster,
            async move { asking.peers.ask((method, &asked, &path), &[], patience).await },
            patience + ASK_PATIENCE,
        );
        match answer {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(reason)) => Err(of_owner(&owner, &reason)),
            None => Err(of_owner(&owner, "no answer in time")),
        }
    }

    fn opening(&self) -> u64 {
        self.answered.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map_or(0, |(_, opening)| *opening)
    }
}

impl OwnerLog for PeerLog {
    fn state(&self, directory: Option<&str>) -> Result<LogState> {
        let cluster = self.cluster()?;
        let owner = self.owner(&cluster, directory)?;
        cluster.counters.log_questions.add(1);
        let (asking, asked) = (Arc::clone(&cluster), owner.clone());
        let answer = run(&cluster, async move { asking.peers.report(&asked, ASK_PATIENCE).await }, 2 * ASK_PATIENCE);
        let answer = answer.unwrap_or_else(|| Err("no answer in time".to_owned()));
        cluster.members.note(&owner.name, answer.clone());
        let report = answer.map_err(|reason| of_owner(&owner, &reason))?;
        let NodeReport { owns, directory: Some(directory), opening, acknowledged, committed, .. } = report else {
            return Err(of_owner(&owner, "it has no log any more"));
        };
        if !owns {
            return Err(of_owner(&owner, "it does not own this store any more"));
        }
        *self.answered.lock().unwrap_or_else(PoisonError::into_inner) = Some((owner, opening));
        Ok(LogState { directory, opening, acknowledged: SequenceNumber(acknowledged), committed })
    }

    fn segments(&self) -> Result<Vec<LogSegment>> {
        let answer = self.ask(Method::GET, format!("{SEGMENTS}?opening={}", self.opening()), READ_PATIENCE)?;
        match answer.status {
            StatusCode::OK => {
                let segments: Vec<(String, u64)> = serde_json::from_slice(&answer.body)
                    .map_err(|error| unreachable(format!("its list of segments cannot be read: {error}")))?;
                Ok(segments.into_iter().map(|(name, bytes)| LogSegment { name, bytes }).collect())
            }
            // It was opened again: what is asked for next is of that opening.
            StatusCode::GONE => Ok(Vec::new()),
            _ => Err(unreachable(answer.reason())),
        }
    }

    fn read(&self, segment: &str, offset: u64, len: usize) -> Result<Option<Bytes>> {
        let path = format!("{READ}?opening={}&segment={segment}&offset={offset}&len={len}", self.opening());
        let answer = self.ask(Method::GET, path, READ_PATIENCE)?;
        match answer.status {
            StatusCode::OK => {
                if let Ok(cluster) = self.cluster() {
                    cluster.counters.log_bytes.add(answer.body.len() as u64);
                }
                Ok(Some(answer.body))
            }
            StatusCode::GONE => Ok(None),
            _ => Err(unreachable(answer.reason())),
        }
    }

    fn hold(&self, reader: u64, commit: u64, time: Duration) -> Result<()> {
        let path = format!("{HOLD}/{reader}?commit={commit}&seconds={}", time.as_secs());
        let answer = self.ask(Method::PUT, path, READ_PATIENCE)?;
        if answer.status.is_success() { Ok(()) } else { Err(unreachable(answer.reason())) }
    }

    fn release(&self, reader: u64) {
        // It ends by itself.
        let _ = self.ask(Method::DELETE, format!("{HOLD}/{reader}"), ASK_PATIENCE);
    }
}

fn unreachable(reason: impl Into<String>) -> Error {
    Error::OwnerUnreachable { reason: reason.into() }
}

fn of_owner(owner: &Peer, reason: &str) -> Error {
    unreachable(format!("node {} at {}: {reason}", owner.name, owner.url))
}

/// Runs something on the cluster's threads, and waits for it.
pub(super) fn run<T: Send + 'static>(
    cluster: &Cluster,
    asked: impl Future<Output = T> + Send + 'static,
    patience: Duration,
) -> Option<T> {
    let (sender, receiver) = mpsc::sync_channel(1);
    cluster.runtime.as_ref()?.spawn(async move {
        // Who has asked may have stopped waiting.
        let _ = sender.send(asked.await);
    });
    receiver.recv_timeout(patience).ok()
}
