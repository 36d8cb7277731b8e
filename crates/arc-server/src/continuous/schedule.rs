//! The clock of continuous queries: each that is active is executed at the end of its interval.
//!
//! One at a time, so that they never take the places of other queries. What could not be executed is tried again.

use std::{sync::Arc, time::Duration};

use super::execute::execute;
use crate::{app::App, timestamp};

/// What is not to be looked for again at once: an execution that somebody asked for is under way, or the disk is full.
const PAUSE: Duration = Duration::from_secs(1);
/// How long nothing is looked for at most: the clock of the machine may be set.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Executes what is due, as long as it is polled.
pub(crate) async fn run(app: Arc<App>) {
    if app.engine.is_reader() {
        return std::future::pending().await;
    }
    loop {
        let now_ns = timestamp::now_ns();
        let queries = app.continuous.all();
        let next = queries.iter().filter_map(|query| Some((query.next_ns(now_ns)?, query))).min_by_key(|(at, _)| *at);
        let wait = match next {
            None => None,
            Some((at_ns, query)) if at_ns <= now_ns => {
                let is_done = match query.due(now_ns) {
                    // Why is noted with the query, and in the log.
                    Some(window) => execute(&app, query, window).await.is_ok(),
                    None => false,
                };
                if !is_done {
                    tokio::time::sleep(PAUSE).await;
                }
                continue;
            }
            Some((at_ns, _)) => Some(Duration::from_nanos(at_ns.abs_diff(now_ns)).min(LONGEST_WAIT)),
        };
        let later = async {
            match wait {
                Some(wait) => tokio::time::sleep(wait).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = later => {}
            () = app.continuous.changed.notified() => {}
        }
    }
}
