//! The statements that wait or run, for whoever wants to see or end one.
//!
//! Owns the list, and what is counted of each statement: when it came, what became of it, how many rows it gave. Never
//! interrupts a statement: that is told, and ends.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use arc_core::{Answer, AnswerEnder, ScannedFiles};
use hyper::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, watch};
use ulid::Ulid;

use crate::{auth::Caller, errors::Failure};

/// What the client of a cancelled statement is told; of the codes that gRPC has for HTTP it is the one for `CANCELLED`.
const CANCELLED: u16 = 499;

/// All statements that wait or run.
#[derive(Debug, Default)]
pub(crate) struct List(Mutex<BTreeMap<Ulid, Weak<Listed>>>);

/// One statement; it is on the list until the last of its owners is dropped: its client, and its work.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) id: Ulid,
    pub(crate) database: String,
    pub(crate) sql: String,
    /// The form of its answer, or what asked.
    pub(crate) door: &'static str,
    /// Who may see and end it, beside those who may do everything.
    caller: Caller,
    /// Its place among the queries of its token, once it has one.
    token_slot: OnceLock<OwnedSemaphorePermit>,
    pub(crate) since: SystemTime,
    started: Instant,
    rows: AtomicU64,
    state: AtomicU8,
    /// Once it is planned.
    files: OnceLock<ScannedFiles>,
    /// From then on, what ends its work where that does not pause.
    ender: OnceLock<AnswerEnder>,
    /// Whether nobody waits for it any more.
    is_over: AtomicBool,
    /// Most rows that it may give.
    most_rows: u64,
    cancelled: watch::Sender<bool>,
    list: Weak<List>,
}

/// A statement that is to be put on the list.
#[derive(Debug)]
pub(crate) struct NewQuery<'a> {
    /// The form of its answer, or what asks.
    pub(crate) door: &'static str,
    pub(crate) caller: Caller,
    pub(crate) database: &'a str,
    pub(crate) sql: &'a str,
    /// Most rows that it may give.
    pub(crate) most_rows: u64,
}

/// How far a statement is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// It waits for others to end.
    Queued,
    /// It is computed, or its answer sent.
    Running,
    /// Its client has gone, or has its answer; its work is about to end.
    Ending,
    /// Somebody has ended it, which it may not have noticed.
    Cancelled,
}

impl State {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Ending => "ending",
            Self::Cancelled => "cancelled",
        }
    }
}

impl List {
    /// Puts a statement on the list.
    #[expect(clippy::disallowed_methods, reason = "the list says since when a query runs")]
    pub(crate) fn add(self: &Arc<Self>, asked: NewQuery<'_>) -> Arc<Listed> {
        let NewQuery { door, caller, database, sql, most_rows } = asked;
        let listed = Arc::new(Listed {
            id: Ulid::new(),
            database: database.to_owned(),
            sql: sql.to_owned(),
            door,
            caller,
            token_slot: OnceLock::new(),
            since: SystemTime::now(),
            started: Instant::now(),
            rows: AtomicU64::new(0),
            state: AtomicU8::new(0),
            files: OnceLock::new(),
            ender: OnceLock::new(),
            is_over: AtomicBool::new(false),
            most_rows,
            cancelled: watch::Sender::new(false),
            list: Arc::downgrade(self),
        });
        self.lock().insert(listed.id, Arc::downgrade(&listed));
        listed
    }

    /// Returns the statements, oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<Listed>> {
        self.lock().values().filter_map(Weak::upgrade).collect()
    }

    /// Returns one statement.
    pub(crate) fn get(&self, id: Ulid) -> Option<Arc<Listed>> {
        self.lock().get(&id)?.upgrade()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Ulid, Weak<Listed>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listed {
    /// Waits until other queries of the same token have ended, where their number is bounded: by a limit of its own, else by
    /// `share`, where there is one.
    pub(crate) async fn wait_for_own(&self, share: Option<usize>) -> Result<(), Failure> {
        let Some(usage) = self.caller.usage() else { return Ok(()) };
        if let Some(slot) = usage.query_slot(share).await? {
            // It is set once: nothing waits twice for the same query.
            let _ = self.token_slot.set(slot);
        }
        Ok(())
    }

    pub(crate) fn state(&self) -> State {
        match self.state.load(Ordering::Relaxed) {
            _ if *self.cancelled.borrow() => State::Cancelled,
            0 => State::Queued,
            1 => State::Running,
            _ => State::Ending,
        }
    }

    /// Its turn has come.
    pub(crate) fn begin(&self) {
        self.state.fetch_max(1, Ordering::Relaxed);
    }

    /// Nobody waits for it any longer.
    pub(crate) fn end(&self) {
        self.state.fetch_max(2, Ordering::Relaxed);
    }

    /// Returns whether somebody may know of the statement, and end it.
    pub(crate) fn is_shown_to(&self, caller: &Caller) -> bool {
        caller.is_admin() || caller.is(&self.caller)
    }

    pub(crate) fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// It is planned, and computes this answer.
    pub(crate) fn computes(&self, answer: &Answer) {
        // Nobody plans it twice.
        let _ = self.files.set(answer.scanned_files());
        let _ = self.ender.set(answer.ender());
        // It may have been ended before there was what ends it.
        if self.is_over.load(Ordering::SeqCst) {
            self.end_work();
        }
    }

    /// Ends its work: nobody waits for it any more.
    pub(crate) fn end_work(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        if let Some(ender) = self.ender.get() {
            ender.end();
        }
    }

    /// Returns how many data files it reads, if that is known yet.
    pub(crate) fn files(&self) -> Option<ScannedFiles> {
        self.files.get().copied()
    }

    /// Counts rows of the answer; fails above the most that it may have.
    pub(crate) fn count_rows(&self, rows: usize) -> Result<(), Failure> {
        let rows = u64::try_from(rows).unwrap_or(u64::MAX);
        let before = self.rows.fetch_add(rows, Ordering::Relaxed);
        if before.saturating_add(rows) > self.most_rows {
            let most = self.most_rows;
            return Err(Failure::bad_request(format!("the answer has more than {most} rows (max_query_rows)")));
        }
        Ok(())
    }

    /// Tells the statement to end.
    pub(crate) fn cancel(&self) {
        self.cancelled.send_replace(true);
        self.end_work();
    }

    /// Waits until somebody cancels the statement.
    pub(crate) async fn cancelled(&self) -> Failure {
        // Its sender is held here, so that it does not end otherwise.
        let _ = self.cancelled.subscribe().wait_for(|is_cancelled| *is_cancelled).await;
        let status = StatusCode::from_u16(CANCELLED).unwrap_or(StatusCode::CONFLICT);
        Failure::new(status, format!("the query was cancelled (DELETE /api/v1/queries/{})", self.id))
    }

    /// Waits for `work`, or until somebody cancels the statement.
    pub(crate) async fn unless_cancelled<T>(&self, work: impl Future<Output = T>) -> Result<T, Failure> {
        tokio::select! {
            biased;
            failure = self.cancelled() => Err(failure),
            done = work => Ok(done),
        }
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        if let Some(list) = self.list.upgrade() {
            list.lock().remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(door: &'static str, sql: &'static str) -> NewQuery<'static> {
        NewQuery { door, caller: Caller::anybody(), database: "d", sql, most_rows: 10 }
    }

    #[tokio::test]
    async fn a_statement_is_listed_until_nobody_holds_it() {
        let list = Arc::new(List::default());
        let (first, second) = (list.add(asked("json", "SELECT 1")), list.add(asked("flight", "SELECT 2")));
        assert_eq!(list.all().iter().map(|listed| listed.id).collect::<std::collections::BTreeSet<_>>().len(), 2);
        assert_eq!(first.state(), State::Queued);
        first.begin();
        assert_eq!(first.state(), State::Running);
        first.end();
        first.begin();
        assert_eq!(first.state(), State::Ending);
        let held = Arc::clone(&first);
        drop(first);
        assert!(list.get(held.id).is_some());
        let id = held.id;
        drop(held);
        assert!(list.get(id).is_none());
        assert_eq!(list.all()[0].sql, "SELECT 2");
        drop(second);
        assert!(list.all().is_empty());
    }

    #[tokio::test]
    async fn a_cancelled_statement_waits_for_nothing() {
        let list = Arc::new(List::default());
        let listed = list.add(asked("json", "SELECT 1"));
        assert_eq!(listed.unless_cancelled(async { 7 }).await.unwrap(), 7);
        let mut waiting = std::pin::pin!(listed.unless_cancelled(std::future::pending::<()>()));
        assert!(futures::poll!(&mut waiting).is_pending());
        list.get(listed.id).unwrap().cancel();
        let failure = waiting.await.unwrap_err();
        assert_eq!(failure.status.as_u16(), 499);
        assert!(failure.message.contains(&listed.id.to_string()), "{}", failure.message);
        assert_eq!(listed.state(), State::Cancelled);
        assert!(listed.unless_cancelled(async {}).await.is_err());
    }

    #[test]
    fn rows_above_the_most_are_refused() {
        let listed = Arc::new(List::default()).add(asked("json", "SELECT 1"));
        assert!(listed.count_rows(10).is_ok());
        assert_eq!(listed.count_rows(1).unwrap_err().status.as_u16(), 400);
    }
}
