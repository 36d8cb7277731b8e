//! The socket and the life of the process: bind, open the engine, serve, and on a signal stop in good order.
//!
//! Owns the connections and how many there may be. What happens on one is `connection`'s.

use std::{
    future::Future,
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use arc_core::{Engine, ErrorKind, store::ObjectStorage};
use axum::Router;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

use crate::{
    allocator,
    app::{App, StartError},
    cluster::Cluster,
    cluster_query::NodeList,
    config::{Config, Role},
    connection, continuous,
    errors::chain,
    history,
    http::router::{flight_router, router},
    opening,
    places::{self, Places, TakenPlace},
    tls::{self, Tls, TlsError},
    workers::Workers,
};

/// Pause before another connection is accepted when the system has no room for one.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long a node waits for a store with something in it, and between two looks.
const STORE_PATIENCE: Duration = Duration::from_secs(120);
const STORE_PAUSE: Duration = Duration::from_secs(1);

/// Why the server did not start, or did not end well.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address cannot be served on.
    #[error("cannot listen on {address}{}", in_use(source))]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// The engine refuses an option; the data directory is not at fault.
    #[error(transparent)]
    Option(arc_core::Error),
    /// The data directory cannot be opened.
    #[error("cannot open the data directory {}{}", path.display(), if_damaged(path, source))]
    Open {
        /// The data directory.
        path: PathBuf,
        /// What the engine said.
        #[source]
        source: arc_core::Error,
    },
    /// What was in memory could not be flushed; it is still in the log, if durability is not `memory`.
    #[error("cannot flush on the way out")]
    Close(#[source] arc_core::Error),
    /// The operating system refused something else.
    #[error("cannot {action}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// There is no room for threads, or tokens cannot be read or kept.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Connections cannot be encrypted as asked for.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A bug: a thread died.
    #[error("a thread of the server died")]
    Died,
}

fn in_use(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::AddrInUse => " (another program does; choose another port, for example 127.0.0.1:8002)",
        _ => "",
    }
}

fn if_damaged(path: &Path, source: &arc_core::Error) -> String {
    let path = path.display();
    match source.kind() {
        ErrorKind::Corrupt => format!(
            " (`arc-server verify --data-dir {path}` lists all that is damaged, `arc-server repair --data-dir {path}` what \
             can be done)"
        ),
        _ => String::new(),
    }
}

/// A server that listens, with its engine open.
#[derive(Debug)]
pub struct Server {
    app: Arc<App>,
    http: Listener,
    /// There if Flight has an address of its own.
    flight: Option<Listener>,
    tls: Option<Arc<Tls>>,
    workers: Workers,
    connections: usize,
    shutdown_timeout: Duration,
}

/// An address that is served on.
#[derive(Debug)]
struct Listener {
    listener: TcpListener,
    address: SocketAddr,
}

impl Listener {
    async fn bind(address: SocketAddr) -> Result<Self, ServeError> {
        let failed = |source| ServeError::Bind { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address })
    }
}

impl Server {
    /// Binds the addresses, then opens the data directory: a taken port is reported at once, before any recovery.
    ///
    /// # Errors
    ///
    /// [`ServeError::Tls`], [`ServeError::Bind`], [`ServeError::Option`], [`ServeError::Open`], [`ServeError::Start`], or [`ServeError::Io`] if there
    /// is no room for threads.
    pub async fn start(config: &Config) -> Result<Self, ServeError> {
        Self::start_over(config, None).await
    }

    /// Does the same with an object store of the caller's own, where one is given, whatever the settings name.
    ///
    /// # Errors
    ///
    /// As of [`Self::start`].
    pub async fn start_over(config: &Config, storage: Option<ObjectStorage>) -> Result<Self, ServeError> {
        let tls = Tls::open(&config.tls)?;
        let http = Listener::bind(config.http).await?;
        let flight = match config.flight {
            Some(address) => Some(Listener::bind(address).await?),
            None => None,
        };
        allocator::tune(config.engine.memory_bytes);
        let cluster = Cluster::open(config).map_err(StartError::Cluster)?;
        let (settings, of_node) = (config.clone(), cluster.clone());
        let opened = tokio::task::spawn_blocking(move || {
            let storage = storage.map_or_else(|| settings.object_store.open(), |storage| Ok(Some(storage)))?;
            open_node(&settings, storage, of_node.as_ref())
        });
        let opened = opening::answer_until(opened, &http.listener, tls.as_ref()).await;
        let engine = opened.map_err(|_| ServeError::Died)?;
        let engine = engine.map_err(|source| match source {
            arc_core::Error::InvalidOption { .. } => ServeError::Option(source),
            _ => ServeError::Open { path: config.data_dir.clone(), source },
        })?;
        let app = App::in_cluster(engine, config, cluster);
        let workers = Workers::start();
        Ok(Self {
            app: app?,
            workers: workers
                .map_err(|source| ServeError::Io { action: "start the threads for connections", source })?,
            http,
            flight,
            tls,
            connections: connections(config.limits.connections),
            shutdown_timeout: config.shutdown_timeout,
        })
    }

    /// Returns the address that HTTP is served on, with the port that was taken where 0 was asked for.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.http.address
    }

    /// Returns the address that serves Flight alone, if there is one.
    #[must_use]
    pub fn flight_address(&self) -> Option<SocketAddr> {
        self.flight.as_ref().map(|flight| flight.address)
    }

    /// Returns whether connections are encrypted.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Spreads queries over these nodes from now on, and computes parts of theirs: all read the same data files, and run the
    /// same version. Only the first call counts.
    ///
    /// # Errors
    ///
    /// That the engine is closed.
    pub fn join_cluster(&self, list: Arc<dyn NodeList>) -> arc_core::Result<()> {
        self.app.spread_queries(list)
    }

    /// Returns the engine that is served.
    #[must_use]
    pub fn engine(&self) -> Engine {
        self.app.engine.clone()
    }

    /// Serves until `stop` is done, lets requests under way end, then flushes and closes the engine.
    ///
    /// # Errors
    ///
    /// [`ServeError::Close`] if the last flush failed.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<(), ServeError> {
        let (stopping, stopped) = watch::channel(());
        let (app, tls) = (Arc::clone(&self.app), self.tls.clone());
        let open = Connections { app, tls, workers: self.workers, tasks: Mutex::default(), stopped };
        let places = Places::new(self.connections);
        let http = accept(&self.http.listener, &places, router(Arc::clone(&self.app)), &open);
        let flight = async {
            match &self.flight {
                Some(flight) => accept(&flight.listener, &places, flight_router(Arc::clone(&self.app)), &open).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = http => {}
            () = flight => {}
            () = history::record(Arc::clone(&self.app)) => {}
            () = continuous::run(Arc::clone(&self.app)) => {}
            () = tls::watch(self.tls) => {}
            () = stop => {}
        }
        tracing::info!("stopping: finishing requests under way");
        self.app.close();
        drop((self.http, self.flight));
        drop(stopping);
        let mut connections = open.tasks.into_inner().unwrap_or_else(PoisonError::into_inner);
        let finished = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(self.shutdown_timeout, finished).await.is_err() {
            tracing::warn!(timeout = ?self.shutdown_timeout, "requests under way took too long and were dropped");
        }
        connections.shutdown().await;
        self.app.runner.stop();
        let (engine, workers) = (self.app.engine.clone(), open.workers);
        let app = self.app;
        let close = move || {
            app.auth.close();
            let closed = engine.close();
            drop(workers);
            closed
        };
        let closed = tokio::task::spawn_blocking(close).await;
        closed.map_err(|_| ServeError::Died)?.map_err(ServeError::Close)?;
        tracing::info!("stopped: everything that this process writes is flushed");
        Ok(())
    }
}

/// Has the process open as many files as it may at all; returns how many connections there may be then, `wanted` at most. The
/// other half is for the engine: its log fails for good where a file cannot be opened.
fn connections(wanted: usize) -> usize {
    let files = match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(files) => files,
        Err(error) => {
            tracing::warn!(%error, "cannot raise the limit of open files");
            return wanted;
        }
    };
    let most = usize::try_from(files / 2).unwrap_or(usize::MAX).max(1);
    if most < wanted {
        tracing::warn!(
            files,
            max_connections = most,
            "fewer connections than asked for: half of the files that may be open"
        );
    }
    wanted.min(most)
}

/// Opens the engine that the settings describe.
pub(crate) fn open_engine(config: &Config) -> arc_core::Result<Engine> {
    open_node(config, config.object_store.open()?, None)
}

/// Opens the engine of one server of several, if it is one.
fn open_node(
    config: &Config,
    storage: Option<ObjectStorage>,
    cluster: Option<&Arc<Cluster>>,
) -> arc_core::Result<Engine> {
    let builder = || {
        let builder = Engine::builder(&config.data_dir).options(config.engine_options());
        match &storage {
            Some(storage) => builder.object_store(storage.clone()),
            None => builder,
        }
    };
    match cluster {
        Some(cluster) if cluster.role == Role::Query => {
            open_query_node(|| builder().owner_log(cluster.owner_log()).open_reader())
        }
        _ if config.reader => builder().open_reader(),
        Some(cluster) => match (&storage, config.cluster.takeover_after) {
            (Some(storage), Some(patience)) => {
                let over = |take_over| builder().object_store(storage.clone().take_over(take_over)).open();
                open_standby(cluster, (patience, &config.data_dir), over)
            }
            _ => builder().open(),
        },
        _ => builder().open(),
    }
}

/// Opens the engine of a node that takes writes, or stands by until it has to.
fn open_standby(
    cluster: &Arc<Cluster>,
    (patience, dir): (Duration, &Path),
    open: impl Fn(bool) -> arc_core::Result<Engine>,
) -> arc_core::Result<Engine> {
    loop {
        match open(false) {
            Err(error @ arc_core::Error::OtherStore { .. }) => {
                tracing::info!(reason = chain(&error), ?patience, "standing by: another node has the store");
            }
            opened => return opened,
        }
        cluster.wait_until_unowned(patience, dir);
        tracing::warn!(?patience, "taking the store over: no node has said for so long that it has the log");
        match open(true) {
            // Another one was sooner.
            Err(arc_core::Error::OtherStore { .. } | arc_core::Error::Closed { .. }) if cluster.has_other_owner() => {}
            opened => return opened,
        }
    }
}

/// Opens the engine of a node that answers queries. Waits for a while until there is something in the store to read: nodes are
/// started in any order.
#[expect(clippy::disallowed_methods, reason = "it is on a thread of its own, before anything is served")]
fn open_query_node(open: impl Fn() -> arc_core::Result<Engine>) -> arc_core::Result<Engine> {
    let began = Instant::now();
    loop {
        match open() {
            Err(error @ arc_core::Error::NotADataDirectory { .. }) if began.elapsed() < STORE_PATIENCE => {
                tracing::warn!(reason = chain(&error), "waiting for the node that takes writes to begin");
                std::thread::sleep(STORE_PAUSE);
            }
            opened => return opened,
        }
    }
}

/// The connections that are open.
struct Connections {
    app: Arc<App>,
    tls: Option<Arc<Tls>>,
    workers: Workers,
    tasks: Mutex<JoinSet<()>>,
    stopped: watch::Receiver<()>,
}

impl Connections {
    /// Serves a connection, which has a place.
    fn add(&self, router: Router, stream: TcpStream, place: TakenPlace) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that ended are forgotten here; a busy server would otherwise remember them all.
        while tasks.try_join_next().is_some() {}
        let (app, tls, stopped) = (Arc::clone(&self.app), self.tls.clone(), self.stopped.clone());
        // Each thread has a poll of its own that its sockets belong to.
        let (Some((runtime, lease)), Ok(stream)) = (self.workers.lease(), stream.into_std()) else { return };
        let serve = async move {
            match TcpStream::from_std(stream) {
                Ok(stream) => {
                    let served = connection::serve(&app, tls.as_ref(), router, stream, stopped);
                    if place.is_last {
                        // What is cut off is told so by the end of its connection.
                        let _ = tokio::time::timeout(places::LAST_HELD, served).await;
                    } else {
                        served.await;
                    }
                }
                Err(error) => tracing::warn!(%error, "cannot serve a connection"),
            }
            drop((place, lease));
        };
        tasks.spawn_on(serve, runtime);
    }
}

/// Accepts connections for `router`, as long as there is a place for one.
async fn accept(listener: &TcpListener, places: &Arc<Places>, router: Router, open: &Connections) {
    while let Some(free) = places.free().await {
        match listener.accept().await {
            Ok((stream, peer)) => match places.take(free, peer.ip()) {
                Some(place) => open.add(router.clone(), stream, place),
                None => open.app.metrics.connection_refused(),
            },
            Err(error) => {
                // Out of file descriptors, mostly: others will end, so this passes.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Waits for SIGINT or SIGTERM. From then on a second one ends the process at once.
///
/// # Errors
///
/// [`ServeError::Io`] if the handlers cannot be installed.
pub(crate) fn signals() -> Result<impl Future<Output = ()>, ServeError> {
    let mut next = next_signal().map_err(|source| ServeError::Io { action: "listen for signals", source })?;
    let (first, received) = tokio::sync::oneshot::channel();
    tokio::spawn(async move {
        next.recv().await;
        // The receiver may be gone: then the server is stopping already.
        let _ = first.send(());
        next.recv().await;
        tracing::warn!("second signal: exiting at once");
        std::process::exit(130);
    });
    Ok(async {
        // The sender lives until it has sent.
        let _ = received.await;
    })
}

/// The signals that ask a process to end.
#[cfg(unix)]
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
fn next_signal() -> io::Result<Signals> {
    use tokio::signal::unix::{SignalKind, signal};
    // By default they would end the process without a flush. Whoever listens takes that away for good.
    for other in [SignalKind::hangup(), SignalKind::user_defined1(), SignalKind::user_defined2()] {
        let _ = signal(other)?;
    }
    Ok(Signals { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
}

#[cfg(unix)]
impl Signals {
    async fn recv(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// The signals that ask a process to end.
#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
fn next_signal() -> io::Result<Signals> {
    Ok(Signals)
}

#[cfg(not(unix))]
impl Signals {
    async fn recv(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            // Without a handler the system ends the process by itself.
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_half_of_the_open_files_to_the_engine() {
        let most = usize::try_from(rlimit::Resource::NOFILE.get_hard().unwrap() / 2).unwrap_or(usize::MAX);
        assert_eq!(connections(usize::MAX), most);
        assert_eq!(connections(1), 1);
        let (soft, hard) = rlimit::Resource::NOFILE.get().unwrap();
        assert_eq!(soft, hard, "raised");
    }
}
