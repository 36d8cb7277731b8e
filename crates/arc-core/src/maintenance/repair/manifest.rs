//! The best state that a damaged manifest still leads to.

use std::path::Path;

use super::log;
use crate::{
    Result, SequenceNumber,
    catalog::{ManifestState, ManifestSurvey},
    datafile::open_data_file,
    model::{DataFile, WAL_DIR},
    vfs::Vfs,
};

/// A state to go on with.
#[derive(Debug)]
pub(super) struct Mended {
    pub(super) state: ManifestState,
    pub(super) commit: u64,
    pub(super) lost_commits: Vec<u64>,
    pub(super) in_log: bool,
}

/// Returns the state to go on with, or `None` if nothing is left to begin with.
///
/// After a commit that is damaged there are two ways. To stop before it, and replay the log from
/// there, gives up nothing if the log still reaches back so far and no file of that moment has been
/// removed since. Otherwise the later commits are applied as far as they fit.
pub(super) fn mend(vfs: &dyn Vfs, root: &Path, survey: ManifestSurvey) -> Result<Option<Mended>> {
    let ManifestSurvey { state, mut reached, mut unreachable, damage, .. } = survey;
    if reached == 0 {
        // Commits that are missing were removed because a snapshot had what they say, and no
        // snapshot is left.
        if damage.iter().any(|damage| !damage.is_there) {
            return Ok(None);
        }
        // The first commit changes nothing, so its loss is none.
        unreachable.retain(|(number, _)| *number != 1);
        reached = 1;
    }
    if unreachable.is_empty() {
        return Ok(Some(Mended { state, commit: reached, lost_commits: Vec::new(), in_log: true }));
    }
    let all: Vec<u64> = unreachable.iter().map(|(number, _)| *number).collect();
    let is_there = |file: &DataFile| open_data_file(vfs, &root.join(&file.path)).is_ok();
    // Segments are given up oldest first: where the log has the frame after `flushed`, it has all
    // later ones.
    let flushed = unreachable.iter().filter_map(|(_, edit)| edit.as_ref()?.flushed).max().unwrap_or_default();
    let reaches_back = |end: SequenceNumber| end > state.flushed && end >= flushed;
    let log = log::end_if_reaching_back(vfs, &root.join(WAL_DIR), &state)?;
    if log.is_some_and(reaches_back) && state.files().all(|file| is_there(file)) {
        return Ok(Some(Mended { state, commit: reached, lost_commits: all, in_log: true }));
    }
    let mut mended = Mended { state, commit: reached, lost_commits: Vec::new(), in_log: false };
    for (number, edit) in unreachable {
        match edit.filter(|edit| mended.state.check(edit).is_ok()) {
            Some(edit) => {
                mended.state.apply(edit);
                mended.commit = number;
            }
            None => mended.lost_commits.push(number),
        }
    }
    Ok(Some(mended))
}
