//! Looking through a whole manifest, past any damage: which objects are whole, and how far they
//! lead.
//!
//! Judges as opening does, and looks at what opening needs only in an emergency as well: the older
//! of the two snapshots and the commits between them. Never changes a file.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
};

use super::{
    KeptFiles, ManifestEdit, ManifestState,
    manifest::{Listing, decode_payload, read_kept, read_snapshot},
    object::{ObjectId, PAYLOAD_OFFSET, PREVIOUS_OFFSET, decode},
};
use crate::{
    Error, Result,
    store::{FolderLocation, ObjectLocation},
    vfs::Vfs,
};

/// What is in one writer's folder.
#[derive(Debug, Default)]
pub(crate) struct ManifestSurvey {
    /// What the manifest says at [`Self::reached`].
    pub(crate) state: ManifestState,
    /// Number of the last commit that can be reached; 0 if none can.
    pub(crate) reached: u64,
    /// Highest number of any object; 0 in a folder that has none.
    pub(crate) newest: u64,
    /// Objects looked into, and their bytes.
    pub(crate) objects: u64,
    pub(crate) bytes: u64,
    pub(crate) damage: Vec<ObjectDamage>,
    /// Commits after the break: those that are whole, with what they change.
    pub(crate) unreachable: Vec<(u64, Option<ManifestEdit>)>,
    /// Files of objects that were never put.
    pub(crate) temporary: Vec<PathBuf>,
}

/// One object that is missing, damaged or does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObjectDamage {
    pub(crate) path: PathBuf,
    pub(crate) offset: u64,
    pub(crate) reason: String,
    /// Whether the file is there.
    pub(crate) is_there: bool,
    /// Whether opening fails over it.
    pub(crate) blocks: bool,
}

/// A snapshot, or the state before the first commit.
struct Base {
    number: u64,
    checksum: u32,
    state: ManifestState,
}

/// Looks through the manifest in a folder, which may be missing.
///
/// # Errors
///
/// As of [`survey_at`].
pub(crate) fn survey(vfs: &dyn Vfs, dir: &Path) -> Result<ManifestSurvey> {
    survey_at(&FolderLocation::new(vfs, dir))
}

/// Reads the state that has a name, as it was after the commit of this number.
///
/// # Errors
///
/// [`Error::Corrupt`] if it is missing or damaged, [`Error::Io`].
pub(crate) fn named_state(vfs: &dyn Vfs, dir: &Path, number: u64) -> Result<ManifestState> {
    read_snapshot(&FolderLocation::new(vfs, dir), number).map(|(state, _)| state)
}

/// Reads the list of the files that states with names have, if there is one, and returns also where it is.
///
/// # Errors
///
/// [`Error::Io`] if it cannot be said which objects there are. The inner one says why the list cannot be read.
pub(crate) fn listed_files(vfs: &dyn Vfs, dir: &Path) -> Result<Option<(PathBuf, Result<KeptFiles>)>> {
    let location = FolderLocation::new(vfs, dir);
    let newest = Listing::read(&location)?.kept.last().copied();
    Ok(newest.map(|number| (location.path(&ObjectId::kept(number).name()), read_kept(&location, number))))
}

/// Looks through the manifest in `location`, which may be missing.
///
/// # Errors
///
/// [`Error::Io`] where a file cannot be read, [`Error::NewerFormat`].
pub(super) fn survey_at(location: &dyn ObjectLocation) -> Result<ManifestSurvey> {
    let listing = Listing::read(location)?;
    let newest = listing.commits.last().max(listing.snapshots.last()).copied().unwrap_or(0);
    let temporary = listing.temporary.iter().map(|name| location.path(name)).collect();
    let survey = ManifestSurvey { newest, temporary, ..ManifestSurvey::default() };
    let mut surveyor = ManifestSurveyor { location, survey };
    surveyor.run(&listing)?;
    Ok(surveyor.survey)
}

struct ManifestSurveyor<'a> {
    location: &'a dyn ObjectLocation,
    survey: ManifestSurvey,
}

impl ManifestSurveyor<'_> {
    fn run(&mut self, listing: &Listing) -> Result<()> {
        // The newest whole snapshot is where opening begins; the one before it is where it would
        // begin otherwise.
        let mut newest = None;
        let mut base = None;
        for (tried, number) in listing.snapshots.iter().rev().enumerate() {
            // Those before the two newest are read only if nothing knows better; they wait to be
            // removed.
            if tried >= 2 && newest.is_some() || base.is_some() {
                break;
            }
            let Some(found) = self.snapshot(*number)? else { continue };
            // A stream that was begun anew with a whole state has nothing before it.
            let is_beginning = found.checksum == 0;
            match newest {
                None if is_beginning => base = Some(found),
                None => newest = Some(found),
                Some(_) => base = Some(found),
            }
        }
        let start = || Base { number: 0, checksum: 0, state: ManifestState::default() };
        let base = match (base, &newest) {
            (Some(base), _) => base,
            // With one snapshot all commits are kept. With a damaged second one, those before the
            // first may be gone.
            (None, Some(_)) if listing.snapshots.len() == 1 => start(),
            (None, Some(_)) => return self.replay_from_newest(newest),
            (None, None) => start(),
        };
        self.replay(base, newest)
    }

    fn replay_from_newest(&mut self, newest: Option<Base>) -> Result<()> {
        match newest {
            Some(base) => self.replay(base, None),
            None => Ok(()),
        }
    }

    /// Follows the commits from `base` on; where they break before `snapshot`, from there.
    fn replay(&mut self, base: Base, mut snapshot: Option<Base>) -> Result<()> {
        let Base { mut number, mut checksum, mut state } = base;
        while number < self.survey.newest {
            let next = number + 1;
            let blocks = snapshot.is_none();
            match self.commit(next, Some((checksum, &state)), blocks)? {
                Some((edit, found)) => {
                    state.apply(edit);
                    (number, checksum) = (next, found);
                    if let Some(known) = snapshot.take_if(|known| known.number == next) {
                        self.compare(&known, checksum, &state);
                    }
                }
                None => match snapshot.take() {
                    Some(known) => {
                        for number in next + 1..=known.number {
                            self.commit(number, None, false)?;
                        }
                        Base { number, checksum, state } = known;
                    }
                    None => {
                        self.survey.unreachable.push((next, None));
                        for number in next + 1..=self.survey.newest {
                            let edit = self.commit(number, None, true)?.map(|(edit, _)| edit);
                            self.survey.unreachable.push((number, edit));
                        }
                        break;
                    }
                },
            }
        }
        (self.survey.reached, self.survey.state) = (number, state);
        Ok(())
    }

    fn compare(&mut self, snapshot: &Base, checksum: u32, state: &ManifestState) {
        let id = ObjectId::snapshot(snapshot.number);
        if snapshot.checksum != checksum {
            self.damaged(id, PREVIOUS_OFFSET, "it does not follow the commit of its number".into(), true, true);
        } else if snapshot.state != *state {
            self.damaged(id, PAYLOAD_OFFSET, "it says something else than the commits".into(), true, true);
        }
    }

    /// Reads a snapshot; `None` if it is damaged.
    fn snapshot(&mut self, number: u64) -> Result<Option<Base>> {
        self.object(ObjectId::snapshot(number), false, |bytes, id, path| {
            let object = decode(id, path, bytes)?;
            let state: ManifestState = decode_payload(object.payload, path)?;
            state.check_all().map_err(|reason| Error::corrupt(path, PAYLOAD_OFFSET, reason))?;
            Ok(Base { number, checksum: object.previous, state })
        })
    }

    /// Reads a commit, and checks that it follows if `after` says what; `None` if it is damaged.
    fn commit(
        &mut self,
        number: u64,
        after: Option<(u32, &ManifestState)>,
        blocks: bool,
    ) -> Result<Option<(ManifestEdit, u32)>> {
        self.object(ObjectId::commit(number), blocks, |bytes, id, path| {
            let object = decode(id, path, bytes)?;
            let edit: ManifestEdit = decode_payload(object.payload, path)?;
            if let Some((checksum, state)) = after {
                if object.previous != checksum {
                    return Err(Error::corrupt(path, PREVIOUS_OFFSET, "it does not follow the commit before it"));
                }
                state.check(&edit).map_err(|reason| Error::corrupt(path, PAYLOAD_OFFSET, reason))?;
            }
            Ok((edit, object.checksum))
        })
    }

    fn object<T>(
        &mut self,
        id: ObjectId,
        blocks: bool,
        take: impl FnOnce(&[u8], ObjectId, &Path) -> Result<T>,
    ) -> Result<Option<T>> {
        let path = self.location.path(&id.name());
        let bytes = match self.location.get(&id.name()) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == ErrorKind::NotFound => {
                self.damaged(id, 0, "it is missing".into(), false, blocks);
                return Ok(None);
            }
            Err(e) => return Err(Error::io("read", path, e)),
        };
        self.survey.objects += 1;
        self.survey.bytes += bytes.len() as u64;
        match take(&bytes, id, &path) {
            Ok(taken) => Ok(Some(taken)),
            Err(Error::Corrupt { offset, reason, .. }) => {
                self.damaged(id, offset, reason, true, blocks);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn damaged(&mut self, id: ObjectId, offset: u64, reason: String, is_there: bool, blocks: bool) {
        let path = self.location.path(&id.name());
        self.survey.damage.push(ObjectDamage { path, offset, reason, is_there, blocks });
    }
}
