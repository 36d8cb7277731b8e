//! The log's part of a backup: copied under temporary names first, so that the log is held for no
//! longer than that takes, and given its names once the manifest that it goes on from is there.

use std::path::{Path, PathBuf};

use crate::{
    Error, Result,
    datafile::{copy_to_temporary, temporary_of},
    vfs::Vfs,
    wal::LogPart,
};

/// Copies the beginnings of segments to the folder `wal`, durably but for their names. Returns
/// their bytes.
pub(super) fn stage(vfs: &dyn Vfs, log: &[LogPart], wal: &Path) -> Result<u64> {
    for part in log {
        copy_to_temporary(vfs, &part.path, &staged(wal, part), part.bytes, |bytes, _| {
            if bytes == part.bytes {
                return Ok(());
            }
            Err(Error::corrupt(&part.path, bytes, format!("it ends before byte {}", part.bytes)))
        })?;
    }
    Ok(log.iter().map(|part| part.bytes).sum())
}

/// Gives them their names, each durable before the next: one that comes later is of no use alone.
pub(super) fn publish(vfs: &dyn Vfs, log: &[LogPart], wal: &Path) -> Result<()> {
    log.iter().try_for_each(|part| {
        let to = staged(wal, part);
        let temporary = temporary_of(&to);
        vfs.rename(&temporary, &to).map_err(|e| Error::io("rename", &temporary, e))?;
        vfs.sync_dir(wal).map_err(|e| Error::io("sync folder", wal, e))
    })
}

fn staged(wal: &Path, part: &LogPart) -> PathBuf {
    wal.join(part.path.file_name().unwrap_or_default())
}
