//! What `EXPLAIN` says of data files: how many a scan reads, and why it leaves the others out.

use std::fmt;

/// The data files of one table in one scan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Pruned {
    /// All of them.
    pub(super) files: usize,
    /// Those of which deletes have left nothing.
    pub(super) deleted: usize,
    /// Those without a time that meets the conditions.
    pub(super) by_time: usize,
    /// Those without another value that does.
    pub(super) by_values: usize,
}

/// How many data files a statement reads, and how many it leaves out; a table that it scans twice
/// counts twice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScannedFiles {
    /// Those in which rows may be that meet the conditions.
    pub read: usize,
    /// Those of which it is known that no row does, or that deletes have left nothing.
    pub left_out: usize,
}

impl Pruned {
    fn left_out(&self) -> usize {
        self.deleted + self.by_time + self.by_values
    }
}

impl FromIterator<Pruned> for ScannedFiles {
    fn from_iter<T: IntoIterator<Item = Pruned>>(scans: T) -> Self {
        scans.into_iter().fold(Self::default(), |sum, scan| Self {
            read: sum.read + scan.files.saturating_sub(scan.left_out()),
            left_out: sum.left_out + scan.left_out(),
        })
    }
}

impl fmt::Display for Pruned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (files, read) = (self.files, self.files.saturating_sub(self.left_out()));
        write!(f, "{files} data files, {read} to read")?;
        let reasons = [(self.by_time, "by time"), (self.by_values, "by other columns"), (self.deleted, "deleted")];
        for (at, (count, reason)) in reasons.into_iter().filter(|(count, _)| *count > 0).enumerate() {
            write!(f, "{}{count} {reason}", if at == 0 { "; left out: " } else { ", " })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_why_files_are_left_out() {
        let none = Pruned { files: 3, ..Pruned::default() };
        assert_eq!(none.to_string(), "3 data files, 3 to read");
        let all = Pruned { files: 9, deleted: 1, by_time: 4, by_values: 2 };
        assert_eq!([none, all].into_iter().collect::<ScannedFiles>(), ScannedFiles { read: 5, left_out: 7 });
        assert_eq!(all.to_string(), "9 data files, 2 to read; left out: 4 by time, 2 by other columns, 1 deleted");
    }
}
