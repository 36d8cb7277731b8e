//! Settings of the server, and the layers they come from.
//!
//! A flag beats an environment variable, which beats the file named by `--config`, which beats the default. Owns names,
//! spelling and origins of settings. Never opens the data directory or a socket: what a value means is checked here,
//! whether it works is found out by whoever uses it.

mod cluster;
mod effective;
mod flags;
mod layers;
mod reference;
mod setting;
mod settings;
mod values;

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use arc_core::{Options, store::ObjectStorage};

pub use cluster::{ClusterSettings, Peer, Role};
pub(crate) use effective::describe;
pub(crate) use flags::{Taker, arguments, given};
pub use layers::{ConfigError, load};
pub(crate) use layers::{check_exposed, unused_variables};
pub(crate) use reference::reference;
pub(crate) use values::{duration, size as byte_size};

/// Everything `arc-server` can be told.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// Directory of the data. Default `./arc-data`.
    pub data_dir: PathBuf,
    /// Whether to only read the directory, while another process writes it. Default no.
    pub reader: bool,
    /// Address to serve HTTP on. Default `127.0.0.1:8000`.
    pub http: SocketAddr,
    /// Address to serve Arrow Flight on, and nothing else. Default none: it is served beside HTTP in any case.
    pub flight: Option<SocketAddr>,
    /// What connections are encrypted with. Default nothing.
    pub tls: TlsFiles,
    /// Whether everybody is let in, without a token: on loopback addresses only. Default no.
    pub no_auth: bool,
    /// Whether the metrics are shown without a token. Default no.
    pub public_metrics: bool,
    /// Whether the kernel holds `arc-server serve` to its folders, where it can (Landlock). Default yes.
    pub sandbox: bool,
    /// Web origin whose pages may call this server. Default none.
    pub cors_origin: Option<String>,
    /// Names that clients may call this server by where nobody has to log in, beside IP addresses, `localhost` and the machine's
    /// own name; `*` for any. Default none: a web page could otherwise give its own name this server's address, and read all
    /// data.
    pub allowed_hosts: Vec<String>,
    /// Folder of the backups that clients may ask for. Default none: then they may ask for none.
    pub backup_dir: Option<PathBuf>,
    /// Where data files and manifest are, if not in the directory of the data.
    pub object_store: ObjectStore,
    /// What a server of several is told.
    pub cluster: ClusterSettings,
    /// Whether clients may delete points, and how many.
    pub delete: Delete,
    /// Settings of the engine.
    pub engine: Options,
    /// [`Options::max_resident_bytes`], if not twice [`Options::memory_bytes`]. Default none.
    pub max_resident: Option<usize>,
    /// Limits on what clients may send and ask for.
    pub limits: Limits,
    /// What is logged, and how.
    pub log: Log,
    /// From when on a query is slow, which is logged with its statement. Default 5 s; `None` for never.
    pub slow_query: Option<Duration>,
    /// How long requests under way may take when the server is told to stop. Default 30 s.
    pub shutdown_timeout: Duration,
}

/// The files that connections are encrypted with. They are read again when they change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsFiles {
    /// The certificate that the server shows, and those that vouch for it, in PEM. Default none: no TLS.
    pub cert: Option<PathBuf>,
    /// Its private key, in PEM.
    pub key: Option<PathBuf>,
    /// Certificates, one of which has to vouch for that of each client. Default none: clients show none.
    pub client_ca: Option<PathBuf>,
}

/// Limits on what clients may send and ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Largest request body as sent, in bytes. Default 100 MiB, and never more than a quarter of the engine's memory.
    pub body_bytes: usize,
    /// Largest request body after decompression, in bytes. Default 100 MiB, and never more than a quarter of the engine's
    /// memory. All bodies together take an eighth of that memory, and one of them what it needs beside the others.
    pub decompressed_bytes: usize,
    /// Largest file that is imported over HTTP, in bytes. Default 500 MiB. It lies on disk while it is read.
    pub import_bytes: usize,
    /// Connections served at once. Default 10,000, and never more than half of the files that the process may have open.
    pub connections: usize,
    /// Queries that run at once. Default 32, and never more than one for each 32 MiB of the engine's memory.
    pub queries: usize,
    /// Most rows of an answer; one that has more fails. Default no limit.
    pub query_rows: u64,
    /// Longest pause within a request body, and how long all pauses may be together, but that each 64 KiB make good for one
    /// second. Default 30 s.
    pub read_timeout: Duration,
    /// How long a client may take nothing of its answer. Default 300 s, as long as a query may run.
    pub send_timeout: Duration,
}

/// Where data files and manifest are, if not in the directory of the data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObjectStore {
    /// `s3://bucket/prefix`. Default none: they are in the directory of the data.
    pub url: Option<String>,
    /// URL of a server that is not AWS. Default what `AWS_ENDPOINT_URL` says.
    pub endpoint: Option<String>,
    /// Whether a new directory may take over what another one has written there. Default no.
    pub take_over: bool,
}

impl ObjectStore {
    /// Returns the location as the engine opens it; `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`arc_core::Error::InvalidOption`] for a URL that is not understood, and in a build without S3.
    pub fn open(&self) -> arc_core::Result<Option<ObjectStorage>> {
        let Some(url) = &self.url else { return Ok(None) };
        Ok(Some(ObjectStorage::from_url(url, self.endpoint.as_deref())?.take_over(self.take_over)))
    }
}

/// Whether clients may delete points, and how many.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Delete {
    /// Default no: nobody has to log in yet.
    pub enabled: bool,
    /// Most points that go without `confirm`. Default 10,000.
    pub confirmation_threshold: u64,
    /// Most points that one request may delete. Default 1,000,000.
    pub max_rows: u64,
}

/// What is logged, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Log {
    /// Shape of the lines. Default text.
    pub format: LogFormat,
    /// Least important lines. Default info.
    pub level: LogLevel,
}

/// Shape of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object for each line.
    Json,
}

/// Importance of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Nothing at all.
    Off,
    /// Something is broken and someone should look.
    Error,
    /// Something went wrong that may need someone.
    Warn,
    /// Starts, stops and the like.
    Info,
    /// Each request.
    Debug,
    /// Everything.
    Trace,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            data_dir: "./arc-data".into(),
            reader: false,
            http: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8000),
            flight: None,
            tls: TlsFiles::default(),
            no_auth: false,
            public_metrics: false,
            sandbox: true,
            cors_origin: None,
            allowed_hosts: Vec::new(),
            backup_dir: None,
            object_store: ObjectStore::default(),
            cluster: ClusterSettings::default(),
            delete: Delete { enabled: false, confirmation_threshold: 10_000, max_rows: 1_000_000 },
            engine: Options::default(),
            max_resident: None,
            limits: Limits::default(),
            log: Log { format: LogFormat::Text, level: LogLevel::Info },
            slow_query: Some(Duration::from_secs(5)),
            shutdown_timeout: Duration::from_secs(30),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 100 << 20,
            decompressed_bytes: 100 << 20,
            import_bytes: 500 << 20,
            connections: 10_000,
            queries: 32,
            query_rows: u64::MAX,
            read_timeout: Duration::from_secs(30),
            send_timeout: Duration::from_secs(300),
        }
    }
}

impl Config {
    /// Returns whether this server reads an object store from a folder that is not the writer's: tokens are its own then.
    pub(crate) fn reads_from_afar(&self) -> bool {
        self.reader && self.object_store.url.is_some() && !arc_core::is_data_directory(&self.data_dir)
    }

    /// Returns the settings of the engine, with what follows from others filled in.
    pub(crate) fn engine_options(&self) -> Options {
        let mut options = self.engine.clone();
        // Half of what there is, is the default of the budget: so this is all of it, unless the budget was set.
        let twice = options.max_resident_bytes.min(options.memory_bytes.saturating_mul(2));
        options.max_resident_bytes = self.max_resident.unwrap_or(twice);
        options
    }
}

impl LogFormat {
    fn parse(text: &str) -> Result<Self, String> {
        [Self::Text, Self::Json].into_iter().find(|f| f.name() == text).ok_or_else(|| "text or json".to_owned())
    }

    /// Returns the name as in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

impl LogLevel {
    fn parse(text: &str) -> Result<Self, String> {
        let all = [Self::Off, Self::Error, Self::Warn, Self::Info, Self::Debug, Self::Trace];
        let found = all.into_iter().find(|level| level.name() == text);
        found.ok_or_else(|| "off, error, warn, info, debug or trace".to_owned())
    }

    /// Returns the name as in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}
