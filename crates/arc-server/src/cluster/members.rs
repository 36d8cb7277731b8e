//! The other nodes, and what each said last.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use super::report::NodeReport;
use crate::config::Peer;

/// The other nodes.
#[derive(Debug)]
pub(super) struct Members(Mutex<Vec<Member>>);

/// One of them.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub(super) peer: Peer,
    /// What it said when it answered last.
    pub(super) report: Option<NodeReport>,
    pub(super) answered: Option<Instant>,
    /// Why it did not answer since, or why its answer does not count.
    pub(super) failure: Option<String>,
}

impl Members {
    pub(super) fn new(peers: &[Peer]) -> Self {
        let member = |peer: &Peer| Member { peer: peer.clone(), report: None, answered: None, failure: None };
        Self(Mutex::new(peers.iter().map(member).collect()))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Member>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn all(&self) -> Vec<Member> {
        self.lock().clone()
    }

    pub(super) fn peers(&self) -> Vec<Peer> {
        self.lock().iter().map(|member| member.peer.clone()).collect()
    }

    /// Notes what a node has answered, or why it has not.
    pub(super) fn note(&self, name: &str, answer: Result<NodeReport, String>) {
        let mut members = self.lock();
        let Some(member) = members.iter_mut().find(|member| member.peer.name == name) else { return };
        match answer {
            Ok(report) => {
                if member.failure.is_some() {
                    tracing::info!(node = name, "a node answers again");
                }
                (member.report, member.answered, member.failure) = (Some(report), Some(Instant::now()), None);
            }
            Err(reason) => {
                if member.failure.is_none() {
                    tracing::warn!(node = name, url = member.peer.url, reason, "a node does not answer");
                }
                member.failure = Some(reason);
            }
        }
    }

    /// Returns the node that has the log: the one with this data directory, if one is named. Of several that say so the one
    /// that was opened last, for the others have lost the store to it and may not know.
    pub(super) fn owner(&self, directory: Option<&str>) -> Option<Peer> {
        let members = self.lock();
        let owns = |member: &&Member| {
            let is_owner = |report: &NodeReport| {
                report.owns && directory.is_none_or(|named| report.directory.as_deref() == Some(named))
            };
            member.failure.is_none() && member.report.as_ref().is_some_and(is_owner)
        };
        let opening = |member: &&Member| member.report.as_ref().map_or(0, |report| report.opening);
        members.iter().filter(owns).max_by_key(opening).map(|member| member.peer.clone())
    }

    /// Returns nodes that answer queries now.
    pub(super) fn that_answer_queries(&self) -> Vec<Peer> {
        let answers = |member: &&Member| {
            member.failure.is_none() && member.report.as_ref().is_some_and(NodeReport::answers_queries)
        };
        self.lock().iter().filter(answers).map(|member| member.peer.clone()).collect()
    }

    /// Returns nodes that compute parts of queries now: they read the store and run this very version, so that a plan
    /// means the same to them.
    pub(super) fn that_compute_queries(&self) -> Vec<Peer> {
        let computes = |member: &&Member| {
            member.failure.is_none() && member.report.as_ref().is_some_and(NodeReport::computes_queries)
        };
        self.lock().iter().filter(computes).map(|member| member.peer.clone()).collect()
    }

    /// Returns how long a node has not answered; `None` if it is not one of these, or never has.
    pub(super) fn silent_for(&self, name: &str) -> Option<Duration> {
        self.lock().iter().find(|member| member.peer.name == name)?.answered.map(|answered| answered.elapsed())
    }

    /// Says of each node that might be the owner why it cannot be asked.
    pub(super) fn no_owner(&self) -> String {
        let told: Vec<String> = self.lock().iter().map(Member::why_not).collect();
        if told.is_empty() { "no peer is named".to_owned() } else { told.join("; ") }
    }
}

impl Member {
    fn why_not(&self) -> String {
        let Peer { name, url } = &self.peer;
        match (&self.failure, &self.report) {
            (Some(failure), _) => format!("node {name} at {url}: {failure}"),
            (None, Some(report)) if report.owns => format!("node {name} at {url} does not own this store any more"),
            (None, Some(_)) => format!("node {name} at {url} has no log"),
            (None, None) => format!("node {name} at {url} has not answered yet"),
        }
    }
}
