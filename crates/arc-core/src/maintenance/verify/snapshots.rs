//! The states that have names: their data files, and the list that says which these are.

use std::path::Path;

use hashbrown::HashSet;

use super::{VerifyReport, describe, file::check_bytes};
use crate::{
    Result,
    catalog::{KeptFiles, ManifestState, NamedSnapshot, listed_files, named_state},
    model::{META_DIR, WRITER},
    vfs::Vfs,
};

const SNAPSHOT: &str = "the table is not touched by it; drop the snapshot, or bring the file back from a backup";
const LIST: &str = "remove it while no process has the directory open: the next opening makes it anew";

/// Compares the data files that only snapshots have with their checksums; returns where they lie. Looks
/// whether the list of their files says what they say.
pub(super) fn check(
    vfs: &dyn Vfs,
    root: &Path,
    state: &ManifestState,
    is_there: &dyn Fn(&str) -> bool,
    report: &mut VerifyReport,
) -> Result<HashSet<String>> {
    let dir = root.join(META_DIR).join(WRITER);
    let list = listed_files(vfs, &dir)?;
    let mut lacks = None;
    let mut known: HashSet<String> = state.files().map(|file| file.path.clone()).collect();
    let mut only_named = HashSet::new();
    for (name, named) in &state.snapshots {
        let mut found = Vec::new();
        match named_state(vfs, &dir, named.number) {
            Ok(was) => {
                if let Some((_, Ok(list))) = &list {
                    lacks = lacks.or_else(|| Some((name, lacking(list, *named, &was)?.to_owned())));
                }
                for file in was.files().filter(|file| known.insert(file.path.clone())) {
                    only_named.insert(file.stored_path().to_owned());
                    let path = root.join(&file.path);
                    if let Err((offset, what)) = check_bytes(vfs, &path, file) {
                        found.push((path, offset, what));
                    }
                }
            }
            Err(error) => found.push((
                dir.clone(),
                None,
                format!("its object {} cannot be read: {}", named.number, describe(&error)),
            )),
        }
        if !found.is_empty() && is_there(name) {
            for (path, offset, what) in found {
                report.error(path, offset, format!("snapshot {name}: {what}"), SNAPSHOT);
            }
        }
    }
    match list {
        Some((path, Ok(_))) => {
            if let Some((name, file)) = lacks {
                report.error(path, None, format!("it lacks {file} of snapshot {name}"), LIST);
            }
        }
        // A newer one may have taken its place meanwhile.
        Some((path, Err(error))) if vfs.open(&path).is_ok() => {
            report.error(path, None, describe(&error), "nothing is lost by it: the next opening makes it anew");
        }
        Some(_) | None => {}
    }
    Ok(only_named)
}

/// Returns a file that a list does not know to be of a state, though it knows the state.
fn lacking<'s>(list: &KeptFiles, named: NamedSnapshot, state: &'s ManifestState) -> Option<&'s str> {
    let mut files = state.files().map(|file| file.path.as_str()).filter(|_| list.knows(named));
    files.find(|path| !list.has_at(path, named.number))
}
