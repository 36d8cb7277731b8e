//! The tour: stores this machine's own measurements over HTTP, queries them over HTTP, shows the files.
//!
//! Everything goes the way a client's request goes, through the socket; only the flush, which has no endpoint, and the
//! list of files come from the engine directly. Never does anything that `serve` does not do as well.

mod client;
mod hints;
mod sample;

use std::{
    io::{self, Write as _},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::Path,
    time::Duration,
};

use arc_core::Engine;
use arrow::util::pretty::pretty_format_batches;

use crate::{
    config::{Config, Log, LogLevel},
    logging,
    server::{ServeError, Server, signals},
};
use client::Client;
use sample::Sampler;

/// Database of the tour.
const DATABASE: &str = "machine";
/// Samples taken before the first query, and the time between two.
const SAMPLES: u32 = 12;
const SAMPLE_PAUSE: Duration = Duration::from_millis(250);
/// Time between two samples once the tour is over.
const LATER_PAUSE: Duration = Duration::from_secs(1);

const QUERIES: [(&str, &str); 3] = [
    (
        "How busy was each core?",
        "SELECT core, count(*) AS samples, round(avg(usage), 1) AS avg_percent, round(max(usage), 1) AS max_percent
FROM cpu
WHERE time > now() - INTERVAL '1 minute'
GROUP BY core
ORDER BY avg_percent DESC, core
LIMIT 5",
    ),
    (
        "How did memory change, second by second?",
        "SELECT date_bin(INTERVAL '1 second', time) AS second, max(used) / 1048576 AS used_mib, max(total) / 1048576 AS total_mib
FROM mem
WHERE time > now() - INTERVAL '1 minute'
GROUP BY second
ORDER BY second DESC
LIMIT 5",
    ),
    (
        "How much did each network interface carry?",
        "SELECT interface, max(received) - min(received) AS received_bytes, max(sent) - min(sent) AS sent_bytes
FROM net
WHERE time > now() - INTERVAL '1 minute'
GROUP BY interface
ORDER BY received_bytes DESC, interface
LIMIT 5",
    ),
];

/// Why a command did not do what it should.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error("cannot {action}")]
    Engine {
        action: &'static str,
        #[source]
        source: arc_core::Error,
    },
    #[error("the request to {url} failed: {reason}")]
    Request { url: String, reason: String },
    #[error("cannot write to standard output")]
    Output(#[from] io::Error),
    #[error("cannot read this machine's measurements: {reason}")]
    Sample { reason: String },
    #[error("a thread of the server died")]
    Died,
}

/// Takes the tour; goes on sampling and serving until a signal comes, unless `once`.
pub(crate) async fn run(config: &Config, once: bool) -> Result<(), Error> {
    // The tour itself says what happens; of the log only what went wrong is of interest.
    logging::init(Log { level: config.log.level.min(LogLevel::Warn), ..config.log });
    say("Arc: a tour with this machine's own measurements\n")?;
    let server = Server::start(config).await?;
    let (url, engine) = (base_url(server.address()), server.engine());
    say(&format!("1. Opened {} and serve it on {url}", config.data_dir.display()))?;
    say("   To programs on this machine alone, without a token; `arc-server serve` asks for one")?;
    let signal = signals()?;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(server.run(async {
        // A sender that is gone says the same.
        let _ = stopped.await;
    }));
    let tour = async {
        let (client, mut sampler) = (Client::new(url), Sampler::new()?);
        tour(&client, &mut sampler, &engine, config, once).await?;
        if !once {
            go_on(&client, &mut sampler).await?;
        }
        Ok(())
    };
    let result = tokio::select! {
        result = tour => result,
        () = signal => say("\nStopping: flushing what is in memory"),
    };
    // The server may be gone already, if it failed; its result says so.
    let _ = stop.send(());
    serving.await.map_err(|_| Error::Died)??;
    result
}

async fn tour(
    client: &Client,
    sampler: &mut Sampler,
    engine: &Engine,
    config: &Config,
    once: bool,
) -> Result<(), Error> {
    take_samples(client, sampler, config).await?;
    say(&format!("3. Asking SQL, with POST {}/api/v1/query/arrow\n", client.url()))?;
    for (question, sql) in QUERIES {
        ask(client, question, sql).await?;
    }
    let files = flush(engine, &config.data_dir).await?;
    let hints = hints::Hints { url: client.url(), database: DATABASE, files: &files, data_dir: &config.data_dir, once };
    say(&hints.to_string())
}

async fn take_samples(client: &Client, sampler: &mut Sampler, config: &Config) -> Result<(), Error> {
    say(&format!(
        "2. Sampling CPU, memory, disks and network for {} s, as line protocol",
        (SAMPLES * SAMPLE_PAUSE).as_secs()
    ))?;
    let mut points = 0;
    for n in 0..SAMPLES {
        tokio::time::sleep(SAMPLE_PAUSE).await;
        let lines = sampler.take();
        client.write(DATABASE, lines.clone()).await?;
        points += lines.lines().count();
        if n == 0 {
            say(&format!("   POST {}/write?db={DATABASE}", client.url()))?;
            for line in lines.lines().take(1).chain(lines.lines().filter(|line| line.starts_with("mem"))) {
                say(&format!("     {line}"))?;
            }
        }
    }
    let promise = match config.engine.durability {
        arc_core::Durability::Remote => "each of them in the object store before its answer",
        arc_core::Durability::Disk => "each of them on disk before its answer",
        arc_core::Durability::Process => "each of them with the operating system before its answer",
        _ => "in memory only, as asked for",
    };
    say(&format!("   {SAMPLES} requests, {points} points stored, {promise}\n"))
}

async fn ask(client: &Client, question: &str, sql: &str) -> Result<(), Error> {
    let batches = client.query(DATABASE, sql).await?;
    let table = pretty_format_batches(&batches)
        .map_err(|e| Error::Request { url: client.url().to_owned(), reason: e.to_string() })?;
    say(&format!("   {question}\n{}\n{}\n", indent(sql, "     "), indent(&table.to_string(), "   ")))
}

/// Flushes; returns the tour's data files, relative to the data directory, with their sizes and rows.
async fn flush(engine: &Engine, data_dir: &Path) -> Result<Vec<hints::File>, Error> {
    let owned = engine.clone();
    let listed = tokio::task::spawn_blocking(move || {
        let report = owned.flush()?;
        let mut files = Vec::new();
        for table in owned.tables(DATABASE)? {
            let name = table.schema.table.to_string();
            let of_table = owned.data_files(DATABASE, &name)?;
            files.extend(of_table.iter().map(|file| hints::File::new(&name, file)));
        }
        Ok((report, files))
    });
    let failed = |source| Error::Engine { action: "flush", source };
    let (report, files) = listed.await.map_err(|_| Error::Died)?.map_err(failed)?;
    say(&format!(
        "4. Flushed {} rows to {} Parquet files below {}",
        report.rows,
        report.files.len(),
        data_dir.display()
    ))?;
    Ok(files)
}

async fn go_on(client: &Client, sampler: &mut Sampler) -> Result<(), Error> {
    say("\nSampling once a second and serving, until Ctrl-C")?;
    loop {
        tokio::time::sleep(LATER_PAUSE).await;
        if let Err(error) = client.write(DATABASE, sampler.take()).await {
            // A full queue passes, and one sample less is no reason to stop serving.
            tracing::warn!(%error, "a sample was not stored");
        }
    }
}

/// Returns where a client on this machine finds the server.
fn base_url(address: SocketAddr) -> String {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    format!("http://{}", SocketAddr::new(ip, address.port()))
}

fn indent(text: &str, by: &str) -> String {
    text.lines().map(|line| format!("{by}{line}")).collect::<Vec<_>>().join("\n")
}

fn say(text: &str) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    Ok(out.flush()?)
}
