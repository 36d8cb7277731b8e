//! What a repair would do, in words that a person can decide by.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use crate::SequenceNumber;

/// What it takes to mend a data directory, and what is given up by it. Prints as text for people.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairPlan {
    /// The data directory.
    pub path: PathBuf,
    /// What would be done, in any order.
    pub steps: Vec<RepairStep>,
    /// What is wrong and cannot be mended here.
    pub hopeless: Vec<String>,
}

/// One thing that a repair does. No file is destroyed: what is taken out is kept under `lost/`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RepairStep {
    /// The marker is written again. Gives up nothing.
    WriteMarker {
        /// The marker.
        path: PathBuf,
    },
    /// The log is gone, though there was one: what was in it and in no data file is given up.
    ForgetLog {
        /// Its folder.
        path: PathBuf,
    },
    /// The manifest is written anew with what it says at one commit.
    RewriteManifest {
        /// Objects that are damaged or missing.
        damaged: Vec<PathBuf>,
        /// The last commit whose changes are kept; later ones are kept as far as they are not in
        /// `lost_commits`.
        commit: u64,
        /// Commits whose changes are given up, because they are damaged or need one that is.
        lost_commits: Vec<u64>,
        /// Whether the log still has all points of these commits.
        in_log: bool,
    },
    /// A data file is taken out of its table.
    DropDataFile {
        /// The file.
        path: PathBuf,
        /// Its database.
        database: String,
        /// Its table.
        table: String,
        /// Rows given up.
        rows: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// A data file that no commit names, and that a lost one may have named, is kept from being
    /// removed.
    KeepUnnamed {
        /// The file.
        path: PathBuf,
    },
    /// The log is written anew with every frame that is whole.
    RewriteLog {
        /// Segments that are replaced.
        segments: Vec<PathBuf>,
        /// Frames kept, and the points in them.
        frames: u64,
        /// Points in the frames that are kept.
        points: u64,
        /// Frames given up.
        given_up: Vec<GivenUp>,
        /// Changes of schema among the lost frames that could be told from the writes after them.
        recreated: u64,
        /// Columns that are given another type because a change of it is among the lost frames.
        widened: Vec<String>,
    },
}

/// Frames of the log, next to each other, that are given up: requests, or changes of schema.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GivenUp {
    /// The first.
    pub first: SequenceNumber,
    /// The last.
    pub last: SequenceNumber,
    /// The segment they are, or should be, in.
    pub path: PathBuf,
    /// Where in the segment.
    pub offset: u64,
    /// What is wrong with them.
    pub reason: String,
}

impl RepairPlan {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), steps: Vec::new(), hopeless: Vec::new() }
    }

    /// Returns whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}

impl fmt::Display for RepairPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.steps.is_empty() && self.hopeless.is_empty() {
            return write!(f, "{}: nothing to repair", self.path.display());
        }
        writeln!(f, "{}:", self.path.display())?;
        self.steps.iter().try_for_each(|step| writeln!(f, "- {step}"))?;
        self.hopeless.iter().try_for_each(|what| writeln!(f, "- cannot be repaired: {what}"))?;
        write!(f, "What is taken out is kept under {}.", self.path.join(crate::model::LOST_DIR).display())
    }
}

impl fmt::Display for RepairStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WriteMarker { path } => write!(f, "write {} again; gives up nothing", path.display()),
            Self::ForgetLog { path } => {
                write!(
                    f,
                    "begin the log in {} anew; gives up all points that were in it and in no data file",
                    path.display()
                )
            }
            Self::RewriteManifest { damaged, commit, lost_commits, in_log } => {
                write!(f, "write the manifest anew from commit {commit}, without {}", list(damaged))?;
                match (lost_commits.first(), lost_commits.last()) {
                    (Some(first), Some(last)) if !*in_log => write!(
                        f,
                        "; GIVES UP what {} of the commits {first} to {last} changed, and so the rows of the files that \
                         they added",
                        lost_commits.len()
                    ),
                    (Some(_), _) => write!(f, "; gives up nothing: the log has all that later commits had flushed"),
                    _ => write!(f, "; gives up nothing: other objects say the same"),
                }
            }
            Self::DropDataFile { path, database, table, rows, reason } => write!(
                f,
                "take {} out of table {table:?} of database {database:?} ({reason}); GIVES UP its {rows} rows",
                path.display()
            ),
            Self::KeepUnnamed { path } => write!(
                f,
                "set aside {}, which no commit that is left names; its rows can be written again from there",
                path.display()
            ),
            Self::RewriteLog { segments, frames, points, given_up, recreated, widened } => {
                write!(
                    f,
                    "write the log anew in place of {}, with {frames} frames of {points} points",
                    list(segments)
                )?;
                if *recreated > 0 {
                    write!(f, " and {recreated} lost changes of schema that later writes tell of")?;
                }
                widened.iter().try_for_each(|what| write!(f, "; changes {what}, which keeps its values"))?;
                given_up.iter().try_for_each(|lost| write!(f, "; {lost}"))
            }
        }
    }
}

impl fmt::Display for GivenUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, last, path, offset, reason } = self;
        match last.0.saturating_sub(first.0) {
            0 => write!(f, "GIVES UP frame {first}")?,
            more => write!(f, "GIVES UP {} frames, {first} to {last}", more.saturating_add(1))?,
        }
        write!(f, " ({}, byte {offset}: {reason})", path.display())
    }
}

fn list(paths: &[PathBuf]) -> String {
    match paths {
        [] => "nothing".to_owned(),
        [one] => one.display().to_string(),
        [first, .., last] => format!("{} files from {} to {}", paths.len(), first.display(), last.display()),
    }
}
