//! Standing by for the node that takes writes: until no node says any more that it has the store's log.
//!
//! Never opens the store itself. What the other node acknowledges meanwhile is refused by the store (decision 043): to wait
//! for too short a time costs a change of owners, and no row.

use std::{
    path::Path,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use super::{ASK_EVERY, ASK_PATIENCE, Cluster, owner_log::run};
use crate::{
    auth::{self, OwnersTokens},
    kept,
};

/// How much longer a node waits for each other one whose name comes before its own: of two that stand by one begins.
const TURN: Duration = Duration::from_secs(2);

impl Cluster {
    /// Waits until no node has said for `patience` that it has the log. Takes over what else it has of its own meanwhile, its
    /// clients' tokens and its small files: into `dir`, where this node has none.
    #[expect(clippy::disallowed_methods, reason = "it is on a thread of its own, before anything is served")]
    pub(crate) fn wait_until_unowned(self: &Arc<Self>, patience: Duration, dir: &Path) {
        let before = self.members.peers().iter().filter(|peer| peer.name < self.name).count();
        let patience = patience + TURN * u32::try_from(before).unwrap_or(u32::MAX);
        let (mut seen, mut taken) = (Instant::now(), Taken::default());
        while seen.elapsed() < patience {
            let asking = Arc::clone(self);
            run(self, async move { asking.ask_all().await }, 2 * ASK_PATIENCE);
            if self.has_other_owner() {
                seen = Instant::now();
                self.keep_tokens(dir, &mut taken.tokens);
                self.keep_files(dir, &mut taken.files);
            }
            thread::sleep(ASK_EVERY);
        }
    }

    /// Returns whether another node says that it has the log.
    pub(crate) fn has_other_owner(&self) -> bool {
        self.members.owner(None).is_some()
    }

    fn keep_tokens(self: &Arc<Self>, dir: &Path, revision: &mut Option<String>) {
        let Some(owner) = self.members.owner(None) else { return };
        let (asking, known) = (Arc::clone(self), revision.clone());
        let asked = async move { asking.peers.tokens(&owner, known.as_deref(), ASK_PATIENCE).await };
        match run(self, asked, 2 * ASK_PATIENCE) {
            Some(Ok(OwnersTokens::Others { revision: newer, text })) => match auth::keep_tokens(dir, &text) {
                Ok(()) => *revision = Some(newer),
                Err(error) => tracing::warn!(%error, "cannot keep the tokens of the owner"),
            },
            Some(Ok(OwnersTokens::Same | OwnersTokens::None)) => {}
            Some(Err(reason)) => tracing::warn!(reason, "cannot read the tokens of the owner"),
            None => tracing::warn!("cannot read the tokens of the owner in time"),
        }
    }

    /// Copies policies, continuous queries and documents, which are changed at the owner alone.
    fn keep_files(self: &Arc<Self>, dir: &Path, revision: &mut Option<String>) {
        let Some(owner) = self.members.owner(None) else { return };
        let (asking, known) = (Arc::clone(self), revision.clone());
        let asked = async move { asking.peers.kept_files(&owner, known.as_deref(), ASK_PATIENCE).await };
        let kept = run(self, asked, 2 * ASK_PATIENCE).unwrap_or_else(|| Err("no answer in time".to_owned()));
        let kept = kept.and_then(|newer| {
            let Some((newer, files)) = newer else { return Ok(()) };
            kept::write_all(dir, &files)?;
            *revision = Some(newer);
            Ok(())
        });
        if let Err(reason) = kept {
            tracing::warn!(reason, "cannot keep the policies, continuous queries and documents of the owner");
        }
    }
}

/// What was taken over last, by its revisions.
#[derive(Debug, Default)]
struct Taken {
    tokens: Option<String>,
    files: Option<String>,
}
