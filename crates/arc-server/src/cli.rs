//! The command line: which command, with which settings, and what the process ends with.
//!
//! Ends with 0 after a stop in good order, 1 if something failed, 2 if it was told something it cannot do.

use std::{ffi::OsString, fmt::Display, io::Write as _, process::ExitCode, time::Duration};

use clap::{Arg, ArgAction, Command};

use crate::{
    allocator,
    config::{self, Config, ConfigError, Taker},
    errors::chain,
    import, logging, maintenance, push, query, quickstart,
    sandbox::{self, Sandbox},
    server::{ServeError, Server, signals},
    store_probe, tls, token,
};

const USAGE_ERROR: u8 = 2;
/// How long a thread that decodes writes waits for work before it ends, and gives its memory back.
pub(crate) const WORKER_IDLE: Duration = Duration::from_millis(500);
const AFTER_HELP: &str = "\
A flag beats its environment variable, which beats the file named by --config, which beats the default.
Unknown keys of the file are errors, and so are ARC_ variables that are called much like a setting.";

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
    let environment: Vec<_> = environment.into_iter().collect();
    let (name, chosen) = matches.subcommand().unwrap_or(("serve", &matches));
    if name == "cert" {
        return tls::run(chosen);
    }
    if name == "token" {
        return token::run(chosen, &environment);
    }
    let (flags, file) = config::given(&matches);
    if name == "config" {
        if chosen.get_flag("markdown") {
            return print(&config::reference());
        }
        return match config::describe(flags, file.as_deref(), environment) {
            Ok(text) => print(&text),
            Err(error) => fail(USAGE_ERROR, &chain(&error)),
        };
    }
    let config = config::load(flags, file.as_deref(), environment.iter().cloned());
    let config = match config.and_then(|config| if name == "quickstart" { open_to_all(config) } else { Ok(config) }) {
        Ok(config) => config,
        Err(error) => return fail(USAGE_ERROR, &chain(&error)),
    };
    if let Some(code) = maintenance::run(name, chosen, &config) {
        return code;
    }
    if name == "store" {
        return store_probe::run(chosen, &config);
    }
    if name == "sql" {
        return query::command::run(chosen, &config);
    }
    if name == "import" {
        return import::run(chosen, &config, &environment);
    }
    if name == "push" {
        return push::run(chosen, &config, &environment);
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
    // Its own client asks without.
    config.tls = config::TlsFiles::default();
    config::check_exposed(&config)?;
    Ok(config)
}

fn command() -> Command {
    let markdown = Arg::new("markdown").long("markdown").action(ArgAction::SetTrue);
    let markdown = markdown.help("Print a page about all settings instead");
    let once = Arg::new("once").long("once").action(ArgAction::SetTrue).help("End after the tour");
    Command::new("arc-server")
        .version(env!("CARGO_PKG_VERSION"))
        .about("A time-series store: line protocol and MessagePack in over HTTP, durable when acknowledged, SQL out")
        .after_help(AFTER_HELP)
        .args(config::arguments(Taker::Server))
        .subcommand(
            Command::new("serve")
                .about("Serve a data directory until stopped (the default command)")
                .args(config::arguments(Taker::Server)),
        )
        .subcommand(
            Command::new("quickstart")
                .about("Take a tour: store this machine's own measurements and query them")
                .after_help(
                    "Takes the other settings of serve as well. Lets in programs on this machine, without a token.",
                )
                .arg(once)
                .args(config::arguments(Taker::Tour)),
        )
        .subcommand(token::command())
        .subcommand(tls::command())
        .subcommand(
            Command::new("config")
                .about("Print the settings in force, and where each is from")
                .after_help("Takes the settings of serve.")
                .arg(markdown)
                .args(config::arguments(Taker::Viewer)),
        )
        .subcommand(store_probe::command())
        .subcommand(query::command::command().args(config::arguments(Taker::Directory)))
        .subcommand(import::command().args(config::arguments(Taker::Engine)))
        .subcommand(push::command().args(config::arguments(Taker::Engine)))
        .subcommands(maintenance::commands())
}

fn start(config: &Config, command: &str, once: bool) -> Result<(), quickstart::Error> {
    // Before there are threads, which it would not hold for.
    let sandbox = (command != "quickstart").then(|| sandbox::enter(config));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_keep_alive(WORKER_IDLE)
        .on_thread_park(allocator::give_back)
        .build()
        .map_err(|source| ServeError::Io { action: "start the threads that serve", source })?;
    runtime.block_on(run_command(config, (command, once), sandbox))
}

async fn run_command(
    config: &Config,
    (command, once): (&str, bool),
    sandbox: Option<Sandbox>,
) -> Result<(), quickstart::Error> {
    if command == "quickstart" {
        return quickstart::run(config, once).await;
    }
    logging::init(config.log);
    if let Some(sandbox) = sandbox {
        sandbox.log();
    }
    warn(config);
    // From here on no signal ends the process but those that ask it to stop.
    let mut stop = Box::pin(signals()?);
    let server = tokio::select! {
        started = Server::start(config) => started?,
        () = &mut stop => {
            tracing::info!("asked to stop before the data was open");
            // What opens it would be waited for. Ended like this it is opened anew the next time, as after a kill.
            std::process::exit(0);
        }
    };
    tracing::info!(
        address = %server.address(),
        flight = server.flight_address().map(tracing::field::display),
        data_dir = %config.data_dir.display(),
        tls = server.is_encrypted(),
        durability = %config.engine.durability,
        version = env!("CARGO_PKG_VERSION"),
        "serving HTTP"
    );
    Ok(server.run(stop).await?)
}

/// Says what a setting does not do, or does more than its reader may think.
fn warn(config: &Config) {
    for variable in config::unused_variables(std::env::vars_os()) {
        tracing::warn!(variable, "this environment variable is no setting, and does nothing");
    }
    if sandbox::is_open_to_all(&config.data_dir) {
        let data_dir = config.data_dir.display();
        tracing::warn!(%data_dir, "every user of this machine can look into the data directory, without a token: chmod 700");
    }
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
        // An option that the engine refuses, or files that cannot be used, are as wrong as one that does not parse.
        quickstart::Error::Serve(ServeError::Option(_) | ServeError::Tls(_)) => USAGE_ERROR,
        _ => 1,
    }
}

fn print(text: &str) -> ExitCode {
    // Whoever reads may have gone; there is nobody to tell then.
    let _ = std::io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
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
        let (name, _) = matches.subcommand().unwrap_or(("serve", &matches));
        (name.to_owned(), config::given(&matches).0)
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

    #[test]
    fn commands_on_a_directory_take_the_words_of_its_server() {
        for (arguments, is_taken) in [
            (&["import", "a.lp", "--memory", "1GiB"][..], true),
            (&["import", "a.lp", "--memory", "1GiB", "--nonsense"], false),
            (&["import", "a.lp", "--database", "x", "--token-file", "t"], true),
            (&["import", "a.lp", "--db", "x"], true),
            (&["verify", "--data-dir", "x"], true),
            (&["verify", "--memory", "1GiB"], true),
            (&["quickstart", "--memory", "1GiB"], true),
            (&["token", "create", "--name", "a", "--data-dir", "x"], false),
            (&["store", "probe", "--object-store-url", "s3://a/b"], true),
            (&["store"], false),
            (&["config", "--max-connections", "1"], true),
        ] {
            let parsed = command().try_get_matches_from([&["arc-server"], arguments].concat());
            assert_eq!(parsed.is_ok(), is_taken, "{arguments:?}");
        }
    }
}
