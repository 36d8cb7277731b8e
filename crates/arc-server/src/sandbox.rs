//! What the process can reach of the file system while it serves: its data, its backups, its certificates, and what the system's
//! own libraries read. The kernel holds it to that (Landlock), whatever a bug in a parser may let somebody try.
//!
//! Has to be entered before there are threads: it holds for the thread that enters, and those that it starts.

use std::path::{Path, PathBuf};

use crate::config::Config;

/// What libraries read: names of hosts, certificates of the system, other libraries, what the kernel tells of the machine.
#[cfg(target_os = "linux")]
const SYSTEM: [&str; 8] = ["/etc", "/usr", "/lib", "/lib64", "/run", "/proc", "/sys", "/dev"];

/// The folder of a data directory in which readers have their leases.
const LEASES: &str = "readers";

/// What became of the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sandbox {
    /// The kernel holds the process to its folders.
    Entered,
    /// It does not, and why.
    Skipped(String),
}

impl Sandbox {
    /// Says in the log what became of it.
    pub(crate) fn log(&self) {
        match self {
            Self::Entered => tracing::debug!("the kernel holds this process to its folders (Landlock)"),
            Self::Skipped(reason) => tracing::info!(reason, "the process is not held to its folders"),
        }
    }
}

/// Enters the sandbox of a server, after making the folders that it is to reach.
pub(crate) fn enter(config: &Config) -> Sandbox {
    let folders: Vec<&Path> = std::iter::once(config.data_dir.as_path()).chain(config.backup_dir.as_deref()).collect();
    if !config.reader {
        // What cannot be made is told by who needs it.
        folders.iter().for_each(|folder| make(folder));
    }
    if !config.sandbox {
        return Sandbox::Skipped("the setting sandbox is off".to_owned());
    }
    if config.reader {
        return enter_to_read(config);
    }
    confine(&folders, &readable(config))
}

/// A reader writes its lease, and what its queries spill; far from the writer it has a folder of its own.
fn enter_to_read(config: &Config) -> Sandbox {
    if config.reads_from_afar() {
        make(&config.data_dir);
        return confine(&[&config.data_dir, &std::env::temp_dir()], &readable(config));
    }
    let leases = config.data_dir.join(LEASES);
    // Where there is no data directory none is made, and where it may not be written to there is no lease.
    if arc_core::is_data_directory(&config.data_dir) {
        make(&leases);
    }
    let mut read = readable(config);
    read.push(config.data_dir.clone());
    confine(&[&leases, &std::env::temp_dir()], &read)
}

/// Returns what may be read beside the system's: where certificates are replaced, and what names the server to an object store.
fn readable(config: &Config) -> Vec<PathBuf> {
    let named = [&config.tls.cert, &config.tls.key, &config.tls.client_ca, &config.cluster.token_file];
    let files = named.into_iter().flatten().cloned();
    let named = ["AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "SSL_CERT_FILE"];
    let named = named.into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    // The folder: a new certificate is another file of the same name, or a link to one.
    let folders = files.chain(named).map(|file| folder_of(&file));
    folders.chain(std::env::var_os("SSL_CERT_DIR").map(PathBuf::from)).collect()
}

fn folder_of(file: &Path) -> PathBuf {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Returns whether who is neither the owner of a folder nor of its group may look into it.
#[cfg(unix)]
#[expect(clippy::disallowed_methods, reason = "it is looked at before there is an engine")]
pub(crate) fn is_open_to_all(folder: &Path) -> bool {
    std::fs::metadata(folder).is_ok_and(|folder| std::os::unix::fs::MetadataExt::mode(&folder) & 0o007 != 0)
}

#[cfg(not(unix))]
pub(crate) fn is_open_to_all(_: &Path) -> bool {
    false
}

/// Makes a folder so that it is there after a power cut, as the engine would have, which cannot reach what is around it any more.
#[expect(clippy::disallowed_methods, reason = "it is made before there is an engine")]
fn make(folder: &Path) {
    let mut builder = std::fs::DirBuilder::new();
    // Who else has a login would read all points without a token.
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    if folder.exists() || builder.recursive(true).create(folder).is_err() {
        return;
    }
    for parent in folder.ancestors().skip(1) {
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        if std::fs::File::open(parent).and_then(|parent| parent.sync_all()).is_err() {
            return;
        }
    }
}

#[cfg(target_os = "linux")]
fn confine(writable: &[&Path], readable: &[PathBuf]) -> Sandbox {
    use landlock::{
        ABI, Access as _, AccessFs, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetStatus,
        path_beneath_rules,
    };
    // What later kernels know beside is held, too, as far as this one knows it.
    let abi = ABI::V5;
    let entered = Ruleset::default()
        .handle_access(AccessFs::from_all(abi))
        .and_then(|ruleset| ruleset.create())
        .and_then(|ruleset| ruleset.add_rules(path_beneath_rules(SYSTEM, AccessFs::from_read(abi))))
        .and_then(|ruleset| ruleset.add_rules(path_beneath_rules(readable, AccessFs::from_read(abi))))
        .and_then(|ruleset| {
            let devices = AccessFs::from_read(abi) | AccessFs::WriteFile;
            ruleset.add_rules(path_beneath_rules(["/dev/null", "/dev/tty"], devices))
        })
        .and_then(|ruleset| ruleset.add_rules(path_beneath_rules(writable, AccessFs::from_all(abi))))
        .and_then(|ruleset| ruleset.restrict_self());
    match entered {
        Ok(status) if status.ruleset != RulesetStatus::NotEnforced => Sandbox::Entered,
        Ok(_) => Sandbox::Skipped("this kernel has no Landlock".to_owned()),
        Err(error) => Sandbox::Skipped(error.to_string()),
    }
}

#[cfg(not(target_os = "linux"))]
fn confine(_writable: &[&Path], _readable: &[PathBuf]) -> Sandbox {
    Sandbox::Skipped("Landlock is of Linux".to_owned())
}

#[cfg(all(test, target_os = "linux"))]
#[expect(clippy::disallowed_methods, reason = "the test is about files")]
mod tests {
    use std::{fs, io::ErrorKind, thread};

    use super::*;

    #[test]
    fn a_thread_reaches_its_folders_and_no_others() {
        let home = tempfile::tempdir().unwrap();
        let path = |name: &str| home.path().join(name);
        fs::create_dir(path("tls")).unwrap();
        fs::write(path("tls/cert.pem"), "old").unwrap();
        fs::write(path("secret"), "7").unwrap();
        let mut config = Config { data_dir: path("new/data"), backup_dir: Some(path("backups")), ..Config::default() };
        config.tls.cert = Some(path("tls/cert.pem"));
        // It holds for the thread that enters, so that the other tests go on.
        let entered = thread::scope(|scope| scope.spawn(|| enter(&config)).join().unwrap());
        if let Sandbox::Skipped(reason) = entered {
            println!("SKIPPED: {reason}");
            return;
        }
        thread::scope(|scope| {
            let inside = scope.spawn(|| {
                assert_eq!(enter(&config), Sandbox::Entered);
                fs::write(path("new/data/file"), "1").unwrap();
                fs::create_dir(path("backups/one")).unwrap();
                fs::rename(path("new/data/file"), path("backups/one/file")).unwrap();
                assert_eq!(fs::read_to_string(path("tls/cert.pem")).unwrap(), "old");
                let refused =
                    |done: std::io::Result<()>| assert_eq!(done.unwrap_err().kind(), ErrorKind::PermissionDenied);
                refused(fs::write(path("tls/cert.pem"), "mine"));
                refused(fs::read(path("secret")).map(drop));
                refused(fs::read_dir(home.path()).map(drop));
                refused(fs::write(path("new/other"), "1"));
                refused(fs::write("/etc/arc", "1"));
                assert!(!fs::read("/proc/self/status").unwrap().is_empty());
            });
            inside.join().unwrap();
        });
        // A certificate is renewed by another file of its name.
        fs::write(path("tls/next"), "new").unwrap();
        fs::rename(path("tls/next"), path("tls/cert.pem")).unwrap();
        config.sandbox = false;
        assert!(matches!(enter(&config), Sandbox::Skipped(reason) if reason.contains("the setting sandbox")));
    }
}
