//! Pushes, one after the other, for as long as the program runs.
//!
//! A push that fails is tried again with the next one, and goes on where it was. Rows that the server has go once they are
//! older than they are to be kept; the engine keeps all others, whatever their age.

use std::{
    sync::{
        Arc, PoisonError,
        mpsc::{self, RecvTimeoutError, Sender},
    },
    thread::JoinHandle,
    time::Duration,
};

use arc_core::{PushOptions, PushReport, Result};

use super::{Shared, settings::PushSettings, spawn};
use crate::{PushServer, chain};

/// What pushes came to.
#[derive(Debug, Clone, Default)]
pub(super) struct Pushed {
    pub(super) pushes: u64,
    pub(super) rows: u64,
    pub(super) bytes: u64,
    /// Why the last one failed, if it did.
    pub(super) failed: Option<String>,
}

/// The thread that pushes.
#[derive(Debug)]
pub(super) struct Pusher {
    end: Sender<()>,
    thread: JoinHandle<()>,
}

impl Pusher {
    pub(super) fn start(shared: Arc<Shared>, to: PushSettings) -> std::io::Result<Self> {
        let (end, ended) = mpsc::channel();
        let work = move || {
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(to.every) {
                let pushed = push(&shared, &to);
                note(&shared, pushed);
            }
        };
        Ok(Self { end, thread: spawn("arc-push", work)? })
    }

    /// Ends the waiting. A push that is under way is left to the end of the process.
    pub(super) fn stop(self) {
        drop(self.end);
        if self.thread.is_finished() {
            // It has nothing to say.
            let _ = self.thread.join();
        }
    }
}

fn push(shared: &Shared, to: &PushSettings) -> Result<PushReport> {
    let server = PushServer::connect(&to.url, &to.credentials)?;
    let mut options = PushOptions::default();
    options.bytes_per_second = to.bytes_per_second;
    options.piece_bytes = 256 << 10;
    let report = shared.engine.push(&server, &options, &mut |_| {})?;
    keep_no_longer(shared, shared.keep)?;
    Ok(report)
}

/// Has the rows of all databases go once they are older; those that were not handed over stay.
fn keep_no_longer(shared: &Shared, keep: Option<Duration>) -> Result<()> {
    for database in shared.engine.databases() {
        if database.retention != keep {
            shared.engine.set_retention(&database.name, None, keep)?;
        }
    }
    Ok(())
}

fn note(shared: &Shared, pushed: Result<PushReport>) {
    let mut sum = shared.pushed.lock().unwrap_or_else(PoisonError::into_inner);
    match pushed {
        Ok(report) => {
            if report.cuts > 0 {
                tracing::info!(rows = report.rows, bytes = report.sent_bytes, "pushed");
            }
            sum.pushes += 1;
            sum.rows += report.rows;
            sum.bytes += report.sent_bytes;
            sum.failed = None;
        }
        Err(error) => {
            let reason = chain(&error);
            tracing::warn!(reason, "nothing was pushed; it is tried again");
            sum.failed = Some(reason);
        }
    }
}
