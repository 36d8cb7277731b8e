//! The socket and the life of the process: bind, open the engine, serve, and on a signal stop in good order.
//!
//! Owns connections and their limits. Never looks into a request.

use std::{
    future::Future,
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use arc_core::{Engine, ErrorKind};
use axum::{Router, body::Body};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    task::JoinSet,
};
use tower::ServiceExt;

use crate::{allocator, app::App, config::Config, http::router::router};

/// How long a connection may wait for a request, or take to send its head.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);
/// Bytes of a connection that are read before they are asked for, at most; also the most that the head of a request may have.
const READ_AHEAD: usize = 64 << 10;
/// Pause before another connection is accepted when the system has no room for one.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

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
    /// A bug: a thread died.
    #[error("a thread of the server died")]
    Died,
}

fn in_use(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::AddrInUse => " (another program does; choose another port, for example --http 127.0.0.1:8001)",
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
    listener: TcpListener,
    address: SocketAddr,
    connections: usize,
    shutdown_timeout: Duration,
}

impl Server {
    /// Binds the address, then opens the data directory: a taken port is reported at once, before any recovery.
    ///
    /// # Errors
    ///
    /// [`ServeError::Bind`], [`ServeError::Option`], [`ServeError::Open`], or [`ServeError::Io`] if there is no room for threads.
    pub async fn start(config: &Config) -> Result<Self, ServeError> {
        let bind = |source| ServeError::Bind { address: config.http, source };
        let listener = TcpListener::bind(config.http).await.map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        allocator::tune(config.engine.memory_bytes);
        let (path, options) = (config.data_dir.clone(), config.engine_options());
        let opened = tokio::task::spawn_blocking(move || Engine::builder(path).options(options).open());
        let engine = opened.await.map_err(|_| ServeError::Died)?;
        let engine = engine.map_err(|source| match source {
            arc_core::Error::InvalidOption { .. } => ServeError::Option(source),
            _ => ServeError::Open { path: config.data_dir.clone(), source },
        })?;
        let app = App::new(engine, config);
        Ok(Self {
            app: app.map_err(|source| ServeError::Io { action: "start the threads for queries", source })?,
            listener,
            address,
            connections: config.limits.connections,
            shutdown_timeout: config.shutdown_timeout,
        })
    }

    /// Returns the address that is served on, with the port that was taken where 0 was asked for.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
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
        let router = router(Arc::clone(&self.app));
        let (stopping, stopped) = watch::channel(());
        let mut connections = JoinSet::new();
        let room = Arc::new(Semaphore::new(self.connections));
        let accept = accept(&self.listener, &room, |stream, permit| {
            // Those that ended are forgotten here; a busy server would otherwise remember them all.
            while connections.try_join_next().is_some() {}
            let (app, router, stopped) = (Arc::clone(&self.app), router.clone(), stopped.clone());
            connections.spawn(async move {
                connection(&app, router, stream, stopped).await;
                drop(permit);
            });
        });
        tokio::select! {
            () = accept => {}
            () = stop => {}
        }
        tracing::info!("stopping: finishing requests under way");
        self.app.close();
        drop(self.listener);
        drop(stopping);
        let finished = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(self.shutdown_timeout, finished).await.is_err() {
            tracing::warn!(timeout = ?self.shutdown_timeout, "requests under way took too long and were dropped");
        }
        connections.shutdown().await;
        self.app.runner.stop();
        let engine = self.app.engine.clone();
        let closed = tokio::task::spawn_blocking(move || engine.close()).await;
        closed.map_err(|_| ServeError::Died)?.map_err(ServeError::Close)?;
        tracing::info!("stopped: everything is flushed");
        Ok(())
    }
}

/// Hands every new connection to `serve`, as long as there is room for more.
async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
    mut serve: impl FnMut(TcpStream, tokio::sync::OwnedSemaphorePermit),
) {
    while let Ok(permit) = Arc::clone(room).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => serve(stream, permit),
            Err(error) => {
                // Out of file descriptors, mostly: others will end, so this passes.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn connection(app: &App, router: Router, stream: TcpStream, mut stopped: watch::Receiver<()>) {
    let _open = app.metrics.connection();
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot switch off Nagle's algorithm");
    }
    let service = service_fn(move |request: hyper::Request<Incoming>| router.clone().oneshot(request.map(Body::new)));
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(IDLE_TIMEOUT);
    // What a connection reads ahead of its request is in no account.
    builder.max_buf_size(READ_AHEAD);
    let served = builder.serve_connection(TokioIo::new(stream), service);
    let mut served = std::pin::pin!(served);
    let result = tokio::select! {
        result = served.as_mut() => result,
        // The sender is dropped when the server stops; nothing is ever sent.
        _ = stopped.changed() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(error = crate::errors::chain(&error), "connection broke");
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
