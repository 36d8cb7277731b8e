//! Where commands have their token from: a file, or the variable `ARC_TOKEN`.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use arc_core::{Error, Result};
use clap::{Arg, ArgMatches, value_parser};
use hyper::header::HeaderValue;

/// The variable that has a token. There is no flag for one: everybody on the machine can read those of a process.
const VARIABLE: &str = "ARC_TOKEN";

/// The token that a command was given, if any, and the certificate that it trusts.
#[derive(Clone, Default)]
pub struct Credentials {
    token: Option<String>,
    authority: Option<PathBuf>,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.token.is_some() { "Credentials(…)" } else { "Credentials(none)" })
    }
}

/// Returns the flags of all commands that are clients.
#[must_use]
pub fn arguments() -> [Arg; 2] {
    let file = |name: &'static str| Arg::new(name).long(name).value_name("PATH").value_parser(value_parser!(PathBuf));
    [
        file("token-file").help(
            "File with the token, such as admin.token in the data directory [env: ARC_TOKEN has the token itself]",
        ),
        file("ca-file")
            .help("Certificate of the server, or of who vouches for it, in PEM; else those the system trusts"),
    ]
}

impl Credentials {
    /// Reads the token that the flag or the environment names.
    ///
    /// # Errors
    ///
    /// A file that cannot be read.
    #[expect(clippy::disallowed_methods, reason = "a token of the caller's own")]
    pub fn read(arguments: &ArgMatches, environment: &[(OsString, OsString)]) -> Result<Self> {
        let authority = arguments.get_one::<PathBuf>("ca-file").cloned();
        if let Some(path) = arguments.get_one::<PathBuf>("token-file") {
            let read = std::fs::read_to_string(path);
            let text = read.map_err(|source| Error::Io { action: "read", path: path.clone(), source })?;
            return Ok(Self { token: Some(text.trim().to_owned()), authority });
        }
        let variable = environment.iter().find(|(name, _)| name == VARIABLE).and_then(|(_, value)| value.to_str());
        Ok(Self { token: variable.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()), authority })
    }

    /// Returns the file of the certificate that is trusted, if not those the system trusts.
    pub(crate) fn authority(&self) -> Option<&Path> {
        self.authority.as_deref()
    }

    /// Returns the header that has the token.
    pub(crate) fn header(&self) -> Result<Option<HeaderValue>> {
        let Some(token) = &self.token else { return Ok(None) };
        let wrong = |_| Error::InvalidPayload { format: "token", reason: "it is no line of text".to_owned() };
        let mut value = HeaderValue::try_from(format!("Bearer {token}")).map_err(wrong)?;
        value.set_sensitive(true);
        Ok(Some(value))
    }
}

#[cfg(test)]
mod tests {
    use clap::Command;

    use super::*;

    fn given(flags: &[&str], variable: Option<&str>) -> Result<Option<String>> {
        let matches = Command::new("x").args(arguments()).try_get_matches_from([&["x"], flags].concat()).unwrap();
        let environment: Vec<_> = variable.iter().map(|value| (VARIABLE.into(), value.into())).collect();
        Ok(Credentials::read(&matches, &environment)?.header()?.map(|value| value.to_str().unwrap().to_owned()))
    }

    #[test]
    fn a_file_beats_the_variable() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.token");
        std::fs::write(&path, "arc_1_file\n").unwrap();
        let path = path.to_str().unwrap();
        assert_eq!(given(&["--token-file", path], Some("arc_1_env")).unwrap().unwrap(), "Bearer arc_1_file");
        assert_eq!(given(&[], Some(" arc_1_env ")).unwrap().unwrap(), "Bearer arc_1_env");
        assert_eq!(given(&[], Some("")).unwrap(), None);
        assert_eq!(given(&[], None).unwrap(), None);
        assert!(given(&["--token-file", "/nowhere/token"], None).unwrap_err().to_string().contains("/nowhere/token"));
        assert!(given(&[], Some("two\nlines")).is_err());
    }
}
