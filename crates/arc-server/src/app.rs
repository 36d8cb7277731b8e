//! What all handlers share: the engine, the limits, the counters.

use std::{
    io,
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use arc_core::Engine;
use hyper::header::HeaderValue;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{
    admission::Budget,
    auth::{Auth, AuthError, Caller},
    backup::Backups,
    cluster::{Cluster, ClusterError},
    cluster_query::{NodeList, QueryNode},
    config::{Config, Delete, Limits, Role},
    connection,
    console::Documents,
    continuous::ContinuousQueries,
    errors::Failure,
    history::History,
    http::access::Access,
    import::ImportCounters,
    metrics::Metrics,
    query::{List, Listed, NewQuery, Runner, Spools},
    retention::Policies,
};

/// How long a query waits for others to end: those of its token, and all.
pub(crate) const QUERY_PATIENCE: Duration = Duration::from_secs(10);

/// Files that are imported at a time; each takes a core and a few pieces of memory.
const IMPORTS: usize = 2;
/// Files of the largest size that have room on disk while they are uploaded and wait.
const UPLOADS: usize = 4;
/// Tails that there may be at a time; for each of them 16 MiB of rows may wait.
const TAILS: usize = 64;
/// How long a file waits for others to be imported; it lies on disk by then.
const IMPORT_PATIENCE: Duration = Duration::from_secs(600);

/// What all handlers share.
#[derive(Debug)]
pub struct App {
    pub(crate) engine: Engine,
    pub(crate) limits: Limits,
    pub(crate) delete: Delete,
    pub(crate) access: Access,
    pub(crate) auth: Auth,
    pub(crate) cors_origin: Option<HeaderValue>,
    pub(crate) metrics: Metrics,
    pub(crate) history: History,
    pub(crate) runner: Runner,
    /// The statements that wait or run.
    pub(crate) queries: Arc<List>,
    /// Where answers wait that are sent column by column.
    pub(crate) spools: Arc<Spools>,
    /// From when on a query is slow, if that is to be logged.
    pub(crate) slow_query: Option<Duration>,
    pub(crate) started: Instant,
    /// There if backups may be asked for.
    pub(crate) backups: Option<Backups>,
    /// Memory for the bodies of requests.
    pub(crate) bodies: Arc<Budget>,
    /// Disk for the files that are imported over HTTP.
    pub(crate) uploads: Arc<Budget>,
    /// The connections of HTTP/2 whose clients may send much ahead of what is read.
    pub(crate) wide_windows: Arc<Semaphore>,
    /// What the engine was given, in bytes.
    pub(crate) engine_memory: usize,
    pub(crate) imports: ImportCounters,
    pub(crate) policies: Policies,
    pub(crate) continuous: ContinuousQueries,
    pub(crate) documents: Documents,
    /// There if queries are spread over several nodes.
    pub(crate) query_node: OnceLock<Arc<QueryNode>>,
    /// There if this is one server of several.
    pub(crate) cluster: Option<Arc<Cluster>>,
    write_timeout: Duration,
    write_slots: Arc<Semaphore>,
    query_slots: Arc<Semaphore>,
    import_slots: Arc<Semaphore>,
    tail_slots: Arc<Semaphore>,
    closing: AtomicBool,
    /// Rounds of compaction that were asked for, and whether the last one runs.
    pub(crate) compaction: Triggered,
}

/// Why nothing can be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// There is no room for the threads that queries run on.
    #[error("cannot start the threads for queries")]
    Threads(#[source] io::Error),
    /// Tokens cannot be read or kept.
    #[error(transparent)]
    Tokens(#[from] AuthError),
    /// It cannot be a node of a cluster.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// It cannot compute parts of other nodes' queries.
    #[error("cannot take part in the queries of other nodes")]
    Queries(#[source] arc_core::Error),
    /// A file of the server's own cannot be read.
    #[error("{} is not a file of {content}: {reason}; put back the file of a backup, or remove it and make them again", path.display())]
    Kept {
        /// The file.
        path: PathBuf,
        /// What it is to have in it.
        content: &'static str,
        /// What is wrong.
        reason: String,
    },
}

/// Work that was asked for, of which one piece runs at a time.
#[derive(Debug, Default)]
pub(crate) struct Triggered {
    pub(crate) cycles: AtomicU64,
    pub(crate) running: AtomicBool,
}

impl App {
    /// Returns what handlers need to serve `engine`, within the limits that `config` sets. Where tokens are asked for, they are
    /// those of the engine's folder; where there is none yet that may make others, this makes one, and leaves it in
    /// `admin.token` there.
    ///
    /// # Errors
    ///
    /// [`StartError`] for threads that there is no room for, tokens that cannot be read or kept, and retention policies and
    /// continuous queries and documents of the console that cannot be read.
    pub fn new(engine: Engine, config: &Config) -> Result<Arc<Self>, StartError> {
        Self::in_cluster(engine, config, Cluster::open(config)?)
    }

    /// Returns the same of one server of several.
    pub(crate) fn in_cluster(
        engine: Engine,
        config: &Config,
        cluster: Option<Arc<Cluster>>,
    ) -> Result<Arc<Self>, StartError> {
        let app = Self::of_node(engine, config, cluster)?;
        if let Some(cluster) = &app.cluster {
            cluster.begin(&app);
            if cluster.role != Role::Ingest {
                app.spread_queries(Arc::clone(cluster) as _).map_err(StartError::Queries)?;
            }
        }
        Ok(app)
    }

    /// Spreads queries over these nodes from now on, and computes parts of theirs. Only the first call counts.
    pub(crate) fn spread_queries(&self, nodes: Arc<dyn NodeList>) -> arc_core::Result<()> {
        if self.query_node.get().is_none() {
            let node = Arc::new(QueryNode::join(&self.engine, nodes)?);
            self.metrics.of_query_node(&node);
            // Of two at once one counts.
            let _ = self.query_node.set(node);
        }
        Ok(())
    }

    fn of_node(engine: Engine, config: &Config, cluster: Option<Arc<Cluster>>) -> Result<Arc<Self>, StartError> {
        let auth = if config.no_auth { Auth::open() } else { Self::closed(&engine, config)? };
        // Where changes are handed on, who takes them says whether they may be made.
        let hands_on = config.cluster.role == Role::Query;
        let delete = Delete { enabled: config.delete.enabled || hands_on, ..config.delete.clone() };
        let policies = Policies::open(engine.path())?;
        let continuous = ContinuousQueries::open(engine.path())?;
        let documents = Documents::open(engine.path())?;
        let memory_bytes = config.engine.memory_bytes;
        let limits = within_memory(&config.limits, memory_bytes);
        Ok(Arc::new(Self {
            spools: Arc::new(Spools::new(if engine.is_reader() {
                std::env::temp_dir()
            } else {
                engine.path().to_owned()
            })),
            engine,
            bodies: Budget::new(memory_bytes / 8, config.engine.write_timeout, BODIES_FULL),
            uploads: Budget::new(
                limits.import_bytes.saturating_mul(UPLOADS),
                config.engine.write_timeout,
                UPLOADS_FULL,
            ),
            wide_windows: Arc::new(Semaphore::new(connection::wide_windows(memory_bytes))),
            access: Access::new(&allowed_hosts(config), config.cors_origin.as_deref()),
            auth,
            delete,
            cors_origin: config.cors_origin.as_ref().and_then(|origin| HeaderValue::try_from(origin).ok()),
            metrics: Metrics::default(),
            history: History::default(),
            runner: Runner::start(config.engine.query_timeout).map_err(StartError::Threads)?,
            queries: Arc::default(),
            slow_query: config.slow_query,
            started: Instant::now(),
            backups: config.backup_dir.as_deref().map(Backups::new),
            engine_memory: config.engine.memory_bytes,
            imports: ImportCounters::default(),
            policies,
            continuous,
            documents,
            query_node: OnceLock::new(),
            cluster,
            write_timeout: config.engine.write_timeout,
            write_slots: Arc::new(Semaphore::new(write_slots())),
            query_slots: Arc::new(Semaphore::new(limits.queries)),
            limits,
            import_slots: Arc::new(Semaphore::new(IMPORTS)),
            tail_slots: Arc::new(Semaphore::new(TAILS)),
            closing: AtomicBool::new(false),
            compaction: Triggered::default(),
        }))
    }

    fn closed(engine: &Engine, config: &Config) -> Result<Auth, StartError> {
        if config.cluster.role == Role::Query {
            return Ok(Auth::of_owner(config.public_metrics));
        }
        if engine.is_reader() && !config.reads_from_afar() {
            return Ok(Auth::followed(engine.path(), config.public_metrics)?);
        }
        let (auth, made) = Auth::closed(engine.path(), config.public_metrics)?;
        if let Some(path) = made {
            tracing::info!(path = %path.display(), "made a token that may do everything; the file has it");
        }
        Ok(auth)
    }

    /// Waits for leave to decode a write.
    ///
    /// Few are decoded at a time, so that many connections cannot take many times `max_decompressed_bytes` of memory.
    pub(crate) async fn write_slot(&self) -> Result<OwnedSemaphorePermit, Failure> {
        slot(&self.write_slots, self.write_timeout, "too many writes wait to be decoded").await
    }

    /// Waits for leave to import a file; it is held until the import has ended.
    pub(crate) async fn import_slot(&self) -> Result<OwnedSemaphorePermit, Failure> {
        slot(&self.import_slots, IMPORT_PATIENCE, "other imports are under way").await
    }

    /// Waits for leave to run a query; it is held until the query has ended.
    pub(crate) async fn query_slot(&self, listed: &Listed) -> Result<OwnedSemaphorePermit, Failure> {
        // One token leaves others a quarter of the places.
        let share = self.limits.queries - self.limits.queries / 4;
        listed.unless_cancelled(listed.wait_for_own(Some(share))).await??;
        let slot = slot(&self.query_slots, QUERY_PATIENCE, "too many queries are running (max_concurrent_queries)");
        let slot = listed.unless_cancelled(slot).await??;
        listed.begin();
        Ok(slot)
    }

    /// Puts a statement on the list; `door` is the form of its answer, or what asks.
    pub(crate) fn list_query(&self, door: &'static str, caller: &Caller, database: &str, sql: &str) -> Arc<Listed> {
        self.queries.add(NewQuery { door, caller: caller.clone(), database, sql, most_rows: self.limits.query_rows })
    }

    /// Refuses changes over Arrow Flight where others take them: they are not handed on.
    pub(crate) fn check_takes_changes(&self) -> Result<(), Failure> {
        self.cluster.as_ref().map_or(Ok(()), |cluster| cluster.check_takes_changes())
    }

    /// Returns the leave to tail a table, which is held until that ends.
    pub(crate) fn tail_slot(&self) -> Result<OwnedSemaphorePermit, Failure> {
        let full = |_| Failure::busy(format!("there are {TAILS} tails already"), Duration::from_secs(5));
        Arc::clone(&self.tail_slots).try_acquire_owned().map_err(full)
    }

    /// Returns whether the server is about to stop.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// From now on `/ready` says no.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
    }

    /// Returns why requests are not welcome, if they are not.
    pub(crate) fn not_ready(&self) -> Option<String> {
        if self.closing.load(Ordering::Relaxed) {
            return Some("shutting down".into());
        }
        if let Some(reason) = self.cluster.as_ref().and_then(|cluster| cluster.not_ready()) {
            return Some(reason);
        }
        if let Some(closed) = self.engine.closed_to_writes() {
            return Some(format!("closed to writes until restarted: {closed}"));
        }
        self.engine
            .is_short_of_memory()
            .then(|| "the process holds nearly all of max_resident; the largest query ends".into())
    }
}

/// Returns the names that clients may use. Where a token is asked for, no page can do anything with a name of its own.
fn allowed_hosts(config: &Config) -> Vec<String> {
    if config.no_auth { config.allowed_hosts.clone() } else { vec!["*".to_owned()] }
}

async fn slot(slots: &Arc<Semaphore>, patience: Duration, busy: &str) -> Result<OwnedSemaphorePermit, Failure> {
    match tokio::time::timeout(patience, Arc::clone(slots).acquire_owned()).await {
        Ok(Ok(permit)) => Ok(permit),
        // Nobody closes the semaphore; if it were closed, busy would be the right answer as well.
        _ => Err(Failure::busy(busy, Duration::from_secs(1))),
    }
}

const BODIES_FULL: &str = "request bodies have filled their share of memory";
const UPLOADS_FULL: &str = "files that are being imported have filled their share of the disk";

/// Memory budget for each query that runs: some of what it takes is in no account.
const QUERY_BYTES: usize = 32 << 20;

/// Lowers the limits on bodies to what the engine would take: it refuses a write that is more than a quarter of its memory;
/// and the number of queries to what there is memory for.
fn within_memory(limits: &Limits, memory_bytes: usize) -> Limits {
    let most = memory_bytes / 4;
    Limits {
        body_bytes: limits.body_bytes.min(most),
        decompressed_bytes: limits.decompressed_bytes.min(most),
        queries: limits.queries.min(memory_bytes / QUERY_BYTES).max(1),
        ..limits.clone()
    }
}

fn write_slots() -> usize {
    std::thread::available_parallelism().map_or(8, |cores| (4 * cores.get()).max(8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_memory_lowers_the_limits_and_much_leaves_them() {
        let lowered = within_memory(&Limits::default(), 128 << 20);
        assert_eq!((lowered.body_bytes, lowered.decompressed_bytes, lowered.queries), (32 << 20, 32 << 20, 4));
        assert_eq!(within_memory(&Limits::default(), 1 << 20).queries, 1);
        assert_eq!(within_memory(&Limits::default(), 1 << 30), Limits::default());
    }

    #[tokio::test]
    async fn a_write_that_finds_no_slot_is_told_to_come_back() {
        let dir = tempfile::tempdir().unwrap();
        let mut config = Config { no_auth: true, ..Config::default() };
        config.engine.write_timeout = Duration::from_millis(1);
        let app = App::new(Engine::open(dir.path().join("data")).unwrap(), &config).unwrap();
        let mut held = Vec::new();
        for _ in 0..write_slots() {
            held.push(app.write_slot().await.unwrap());
        }
        let failure = app.write_slot().await.unwrap_err();
        assert_eq!(failure.status.as_u16(), 503);
        held.pop();
        assert!(app.write_slot().await.is_ok());
    }
}
