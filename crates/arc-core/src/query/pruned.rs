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

impl fmt::Display for Pruned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left_out = self.deleted + self.by_time + self.by_values;
        let (files, read) = (self.files, self.files.saturating_sub(left_out));
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
        assert_eq!(all.to_string(), "9 data files, 2 to read; left out: 4 by time, 2 by other columns, 1 deleted");
    }
}
