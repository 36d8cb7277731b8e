//! The secret that nodes of one store know each other by. It is in a file, in a header between nodes, and in no log.

use std::path::Path;

use hyper::{HeaderMap, header::HeaderValue};
use ring::digest::{Digest, SHA256, digest};
use subtle::ConstantTimeEq;

use super::{ClusterError, report::TOKEN};

/// Fewest characters of it: fewer could be guessed.
const MIN_CHARACTERS: usize = 32;
const MAX_CHARACTERS: usize = 512;

/// The secret.
#[derive(Clone)]
pub(super) struct ClusterToken {
    header: HeaderValue,
    hash: Digest,
}

impl std::fmt::Debug for ClusterToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ClusterToken(…)")
    }
}

impl ClusterToken {
    /// Reads the secret from a file, which has nothing else.
    #[expect(clippy::disallowed_methods, reason = "it is a file of its own, beside those of the engine")]
    pub(super) fn read(path: &Path) -> Result<Self, ClusterError> {
        let unusable = |reason: String| ClusterError::Token { path: path.to_owned(), reason };
        let text = std::fs::read_to_string(path).map_err(|error| unusable(error.to_string()))?;
        let text = text.trim();
        let is_plain = text.chars().all(|c| c.is_ascii_graphic());
        if !is_plain || !(MIN_CHARACTERS..=MAX_CHARACTERS).contains(&text.len()) {
            return Err(unusable(format!(
                "expected one line of {MIN_CHARACTERS} to {MAX_CHARACTERS} letters, digits and signs, such as `openssl rand \
                 -hex 32` prints"
            )));
        }
        let mut header = HeaderValue::from_str(text).map_err(|error| unusable(error.to_string()))?;
        header.set_sensitive(true);
        Ok(Self { header, hash: digest(&SHA256, text.as_bytes()) })
    }

    /// Returns the secret as the header of a request to another node has it.
    pub(super) fn header(&self) -> HeaderValue {
        self.header.clone()
    }

    /// Returns whether a request has the secret; takes as long whatever else it has.
    pub(super) fn is_in(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(&TOKEN).map_or(&[][..], HeaderValue::as_bytes);
        digest(&SHA256, given).as_ref().ct_eq(self.hash.as_ref()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_text_is_let_in_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cluster.token");
        let text = "0123456789abcdef0123456789abcdef";
        std::fs::write(&path, format!("{text}\n")).unwrap();
        let token = ClusterToken::read(&path).unwrap();
        let sent = |text: &str| [(TOKEN, HeaderValue::from_str(text).unwrap())].into_iter().collect::<HeaderMap>();
        assert!(token.is_in(&sent(text)));
        for wrong in ["", "0123456789abcdef0123456789abcdeF", "0123456789abcdef0123456789abcdef0", "0123"] {
            assert!(!token.is_in(&sent(wrong)), "{wrong:?}");
        }
        assert!(!token.is_in(&HeaderMap::new()));
        assert_eq!(format!("{token:?}"), "ClusterToken(…)");
    }

    #[test]
    fn a_file_without_a_secret_is_refused_with_what_was_expected() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cluster.token");
        assert!(ClusterToken::read(&path).unwrap_err().to_string().contains("cluster.token"));
        for wrong in ["", "short", "two words of more than thirty-two letters in all", &"x".repeat(513)] {
            std::fs::write(&path, wrong).unwrap();
            let error = ClusterToken::read(&path).unwrap_err().to_string();
            assert!(error.contains("32 to 512") && (wrong.is_empty() || !error.contains(wrong)), "{error}");
        }
    }
}
