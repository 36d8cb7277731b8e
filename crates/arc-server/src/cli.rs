//! The command line: which command, with which settings, and what the process ends with.
//!
//! Ends with 0 after a stop in good order, 1 if something failed, 2 if it was told something it cannot do.

use std::{ffi::OsString, fmt::Display, process::ExitCode, time::Duration};

use clap::{Arg, ArgAction, Command};

use crate::{
    allocator,
    config::{self, Config, ConfigError},
    errors::chain,
    import, logging, maintenance, quickstart,
    server::{ServeError, Server, signals},
};

const USAGE_ERROR: u8 = 2;
/// How long a thread that decodes writes waits for work before it ends, and gives its memory back.
pub(crate) const WORKER_IDLE: Duration = Duration::from_millis(500);
const AFTER_HELP: &str = "\
A flag beats its environment variable, which beats the file named by --config, which beats the default.
Unknown keys of the file and unknown ARC_ variables are errors.";

/// Runs `arc-server` with these arguments (the program's name first) and this environment.
pub fn run(
    arguments: impl IntoIterator<Item = OsString>,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> ExitCode {
    let matches = match command().try_get_matches_from(arguments) {
        Ok(matches) => matches,
        // Help and version come here as well; clap knows where to print them and what to end with.
        Err(error) => {
            let code = u8::try_from(error.exit_code()).unwrap_or(USAGE_ERROR);
            return error.print().map_or(ExitCode::FAILURE, |()| ExitCode::from(code));
        }
    };
    let (name, chosen) = matches.subcommand().unwrap_or(("serve", &matches));
    let (flags, file) = config::given(chosen);
    let config = config::load(flags, file.as_deref(), environment);
    let config = match config.and_then(|config| if name == "quickstart" { open_to_all(config) } else { Ok(config) }) {
        Ok(config) => config,
        Err(error) => return fail(USAGE_ERROR, &chain(&error)),
    };
    if let Some(code) = maintenance::run(name, chosen, &config) {
        return code;
    }
    if name == "import" {
        return import::run(chosen, &config);
    }
    let once = name == "quickstart" && chosen.get_flag("once");
    match start(&config, name, once) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(exit_code(&error), &chain(&error)),
    }
}

/// The tour is for a newcomer, who has no token yet; it is for this machine alone.
fn open_to_all(mut config: Config) -> Result<Config, ConfigError> {
    config.no_auth = true;
    config::check_exposed(&config)?;
    Ok(config)
}

fn command() -> Command {
    let once = Arg::new("once").long("once").action(ArgAction::SetTrue).help("End after the tour");
    Command::new("arc-server")
        .version(env!("CARGO_PKG_VERSION"))
        .about("A time-series store: line protocol and MessagePack in over HTTP, durable when acknowledged, SQL out")
        .after_help(AFTER_HELP)
        .args(config::arguments())
        .subcommand(Command::new("serve").about("Serve a data directory until stopped (the default command)"))
        .subcommand(
            Command::new("quickstart")
                .about("Take a tour: store this machine's own measurements and query them")
                .arg(once),
        )
        .subcommand(import::command())
        .subcommands(maintenance::commands())
}

fn start(config: &Config, command: &str, once: bool) -> Result<(), quickstart::Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_keep_alive(WORKER_IDLE)
        .on_thread_park(allocator::give_back)
        .build()
        .map_err(|source| ServeError::Io { action: "start the threads that serve", source })?;
    runtime.block_on(run_command(config, command, once))
}

async fn run_command(config: &Config, command: &str, once: bool) -> Result<(), quickstart::Error> {
    if command == "quickstart" {
        return quickstart::run(config, once).await;
    }
    logging::init(config.log);
    warn(config);
    let server = Server::start(config).await?;
    let stop = signals()?;
    tracing::info!(
        address = %server.address(),
        flight = server.flight_address().map(tracing::field::display),
        data_dir = %config.data_dir.display(),
        durability = %config.engine.durability,
        version = env!("CARGO_PKG_VERSION"),
        "serving HTTP"
    );
    Ok(server.run(stop).await?)
}

/// Says what a setting does not do, or does more than its reader may think.
fn warn(config: &Config) {
    if !config.no_auth {
        return;
    }
    tracing::warn!("no_auth is set: every program on this machine may read and write all data");
    if config.cors_origin.as_deref() == Some("*") {
        tracing::warn!(
            "cors_origin is *, and nobody has to log in: every web page in a browser that reaches this server may read and \
             write all data"
        );
    }
    if config.allowed_hosts.iter().any(|host| host == "*") {
        tracing::warn!(
            "allowed_hosts is *: a web page may give its own name this server's address, and read and write all data"
        );
    }
}

fn exit_code(error: &quickstart::Error) -> u8 {
    match error {
        // An option that the engine refuses is as wrong as one that does not parse.
        quickstart::Error::Serve(ServeError::Option(_)) => USAGE_ERROR,
        _ => 1,
    }
}

fn fail(code: u8, message: &dyn Display) -> ExitCode {
    // Before and beside logging: whoever started the process should see it in any case.
    eprintln!("arc-server: {message}");
    ExitCode::from(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(arguments: &[&str]) -> (String, Vec<(&'static str, String)>) {
        let matches = command().try_get_matches_from(arguments).unwrap();
        let (name, chosen) = matches.subcommand().unwrap_or(("serve", &matches));
        (name.to_owned(), config::given(chosen).0)
    }

    #[test]
    fn serve_is_the_default_command() {
        let expected = ("serve".to_owned(), vec![("data_dir", "x".to_owned())]);
        assert_eq!(flags(&["arc-server", "--data-dir", "x"]), expected);
        assert_eq!(flags(&["arc-server", "serve", "--data-dir", "x"]), expected);
        assert_eq!(flags(&["arc-server", "--data-dir", "x", "serve"]), expected);
        assert_eq!(flags(&["arc-server"]), ("serve".to_owned(), vec![]));
    }

    #[test]
    fn switches_need_no_value() {
        assert_eq!(flags(&["arc-server", "--no-auth"]).1, [("no_auth", "true".to_owned())]);
        assert_eq!(flags(&["arc-server", "--no-auth=false"]).1, [("no_auth", "false".to_owned())]);
    }

    #[test]
    fn the_definition_is_consistent() {
        command().debug_assert();
    }
}
