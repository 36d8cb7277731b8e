//! The program: opens the data directory, serves writes, pushes, and ends with a flush.
//!
//! Ends with 0 after SIGINT or SIGTERM, 1 if something failed, 2 if it was told something it cannot do.

mod http;
mod pushing;
mod settings;

use std::{
    ffi::OsString,
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use arc_core::{Engine, Error, Options, Result};
use tokio::net::TcpListener;

use crate::chain;
use pushing::{Pushed, Pusher};
use settings::Settings;

const FAILED: u8 = 1;
const CANNOT_RUN: u8 = 2;

/// Runs the program with its arguments and its environment.
pub fn run(arguments: impl IntoIterator<Item = OsString>, environment: Vec<(OsString, OsString)>) -> ExitCode {
    let settings = match settings::read(arguments, &environment) {
        Ok(settings) => settings,
        Err(told) => return told,
    };
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false).with_target(false).init();
    match Agent::start(settings).and_then(Agent::serve) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("arc-edge: {}", chain(&error));
            ExitCode::from(match error {
                Error::InUse { .. }
                | Error::NotADataDirectory { .. }
                | Error::NewerFormat { .. }
                | Error::InvalidOption { .. } => CANNOT_RUN,
                _ => FAILED,
            })
        }
    }
}

/// What the threads of the program share.
#[derive(Debug)]
struct Shared {
    engine: Engine,
    /// How the last push ended.
    pushed: Mutex<Pushed>,
    /// How long rows stay that were handed over.
    keep: Option<Duration>,
}

impl Shared {
    fn pushed(&self) -> Pushed {
        self.pushed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[derive(Debug)]
struct Agent {
    shared: Arc<Shared>,
    settings: Settings,
}

impl Agent {
    fn start(settings: Settings) -> Result<Self> {
        let engine = Engine::builder(&settings.data_dir).options(options(&settings)).open()?;
        let shared = Arc::new(Shared { engine, pushed: Mutex::default(), keep: settings.keep });
        Ok(Self { shared, settings })
    }

    fn serve(self) -> Result<()> {
        let Self { shared, settings } = self;
        let failed = |source| Error::Io { action: "listen on", path: settings.http.to_string().into(), source };
        // One thread: what writes wait for is the disk, which they do not hold it up for.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let pusher =
            settings.push.clone().map(|to| Pusher::start(Arc::clone(&shared), to)).transpose().map_err(failed)?;
        let served = runtime.block_on(async {
            let listener = TcpListener::bind(settings.http).await.map_err(failed)?;
            let address = listener.local_addr().map_err(failed)?;
            tracing::info!("writes go to http://{address}/write, rows to {}", shared.engine.path().display());
            tokio::select! {
                () = http::serve(&shared, listener) => Ok(()),
                stopped = stop() => stopped.map_err(failed),
            }
        });
        // A push that is under way goes on after the next start.
        if let Some(pusher) = pusher {
            pusher.stop();
        }
        served.and(shared.engine.close())
    }
}

/// Waits for SIGINT or SIGTERM.
async fn stop() -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};

        let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        Ok(())
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await
}

/// Returns what suits a machine with little memory that nobody asks questions of.
fn options(settings: &Settings) -> Options {
    let mut options = Options::default();
    options.memory_bytes = settings.memory_bytes;
    options.wal_segment_bytes = 8 << 20;
    options.flush_wal_bytes = 64 << 20;
    // Nobody reads older states here.
    options.history = Duration::ZERO;
    options.compaction_grace = Duration::ZERO;
    options.idempotency_keys = 4096;
    options.max_tables = 10_000;
    options.retention_waits_for_push = true;
    options
}

/// Starts a thread with a name.
fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<thread::JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).spawn(work)
}
