//! The first token: made where nobody could make one, and left where its owner finds it.

use std::path::{Path, PathBuf};

use super::{
    AuthError, Rights,
    file::{decode, write_private},
    grant::Grant,
    limits::TokenLimits,
    store::{NewToken, Store},
};

/// Names below the data directory.
const TOKENS: &str = "tokens.json";
const ADMIN_TOKEN: &str = "admin.token";

/// Opens the tokens of a data directory. Where none of them may make others, as in a new directory, makes one that may do
/// everything, and returns the file that it is in.
pub(super) fn open(data_dir: &Path) -> Result<(Store, Option<PathBuf>), AuthError> {
    let store = Store::open(data_dir.join(TOKENS))?;
    if store.has_admin() {
        return Ok((store, None));
    }
    let (token, secret) = store.create(NewToken {
        name: free_name(&store),
        description: Some("made by the server".to_owned()),
        grants: vec![Grant::everywhere(Rights::named(["admin"]).map_err(AuthError::Invalid)?)],
        expires_ms: None,
        limits: TokenLimits::default(),
    })?;
    let path = data_dir.join(ADMIN_TOKEN);
    if let Err(error) = write_private(&path, format!("{}\n", secret.text()).as_bytes()) {
        // A token that nobody knows would be in the way of the next one.
        store.forget(token.id)?;
        return Err(error);
    }
    Ok((store, Some(path)))
}

/// Opens the tokens of a data directory, and makes none.
pub(super) fn follow(data_dir: &Path) -> Result<Store, AuthError> {
    Store::open(data_dir.join(TOKENS))
}

/// Keeps the tokens of another node, as the text of its file, as those of a data directory that is to be opened.
///
/// # Errors
///
/// [`AuthError`] if the text is not that of such a file, or cannot be kept.
#[expect(clippy::disallowed_methods, reason = "tokens are the server's own files, beside those of the engine")]
pub(crate) fn keep_tokens(data_dir: &Path, text: &[u8]) -> Result<(), AuthError> {
    let path = data_dir.join(TOKENS);
    decode(&path, text)?;
    let failed = |source| AuthError::Io { action: "create the folder of", path: path.clone(), source };
    std::fs::create_dir_all(data_dir).map_err(failed)?;
    write_private(&path, text)
}

fn free_name(store: &Store) -> String {
    let names = (1_u64..).map(|n| if n == 1 { "admin".to_owned() } else { format!("admin-{n}") });
    names.into_iter().find(|name| store.named(name).is_err()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_start_leaves_a_token_and_later_ones_do_not() {
        let dir = tempfile::tempdir().unwrap();
        let (store, path) = open(dir.path()).unwrap();
        let path = path.unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(store.verify(&text).unwrap().may_everywhere(Rights::ADMIN));
        drop(store);
        std::fs::remove_file(&path).unwrap();
        let (store, made) = open(dir.path()).unwrap();
        assert!(made.is_none() && !path.exists());
        assert!(store.verify(&text).is_some());
    }

    #[test]
    fn a_token_that_cannot_be_left_is_not_made() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join(ADMIN_TOKEN)).unwrap();
        std::fs::write(dir.path().join(ADMIN_TOKEN).join("x"), "").unwrap();
        assert!(open(dir.path()).is_err());
        std::fs::remove_dir_all(dir.path().join(ADMIN_TOKEN)).unwrap();
        assert!(open(dir.path()).unwrap().1.is_some());
    }
}
