//! Memory for request bodies, from their first byte until the engine has taken or refused their points.
//!
//! The engine's budget begins where a write is queued. Before that its body is read, decompressed and decoded, by as many
//! connections as there are: this holds back those for whom there is no room. Never looks into a body.

use std::{sync::Arc, time::Duration};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::errors::Failure;

/// Bytes of one permit.
const UNIT: usize = 1 << 10;

/// All the memory for bodies.
#[derive(Debug)]
pub(crate) struct Rooms {
    units: Arc<Semaphore>,
    all: u32,
    patience: Duration,
}

/// The part of it that one request has, until dropped.
#[derive(Debug)]
pub(crate) struct Room {
    rooms: Arc<Rooms>,
    held: Option<OwnedSemaphorePermit>,
}

impl Rooms {
    /// Room for `bytes`, for which a request waits as long as `patience`.
    pub(crate) fn new(bytes: usize, patience: Duration) -> Arc<Self> {
        let all = u32::try_from((bytes / UNIT).clamp(1, Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX);
        Arc::new(Self { units: Arc::new(Semaphore::new(all as usize)), all, patience })
    }

    /// Begins with none of it.
    pub(crate) fn enter(self: &Arc<Self>) -> Room {
        Room { rooms: Arc::clone(self), held: None }
    }
}

impl Room {
    /// Waits until there is room for `bytes` in all. What is larger than all room that there is goes alone.
    pub(crate) async fn grow_to(&mut self, bytes: usize) -> Result<(), Failure> {
        let wanted = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX).min(self.rooms.all);
        let held = self.held.as_ref().map_or(0, |held| u32::try_from(held.num_permits()).unwrap_or(u32::MAX));
        if wanted <= held {
            return Ok(());
        }
        let more = Arc::clone(&self.rooms.units).acquire_many_owned(wanted - held);
        // Nobody closes the semaphore. Requests that each wait for what another one holds end by their patience.
        let Ok(Ok(more)) = tokio::time::timeout(self.rooms.patience, more).await else {
            return Err(Failure::busy("request bodies have filled their share of memory", Duration::from_secs(1)));
        };
        match &mut self.held {
            Some(held) => held.merge(more),
            held => *held = Some(more),
        }
        Ok(())
    }

    /// Gives all of it back.
    pub(crate) fn give_up(&mut self) {
        self.held = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn bodies_share_their_room_and_a_large_one_goes_alone() {
        let rooms = Rooms::new(10 * UNIT, Duration::from_millis(1));
        let (mut first, mut second) = (rooms.enter(), rooms.enter());
        first.grow_to(1).await.unwrap();
        first.grow_to(4 * UNIT).await.unwrap();
        first.grow_to(2 * UNIT).await.unwrap();
        second.grow_to(6 * UNIT).await.unwrap();
        assert_eq!(second.grow_to(6 * UNIT + 1).await.unwrap_err().status.as_u16(), 503);
        drop(first);
        second.grow_to(7 * UNIT).await.unwrap();
        assert!(rooms.enter().grow_to(usize::MAX).await.is_err());
        drop(second);
        rooms.enter().grow_to(usize::MAX).await.unwrap();
    }
}
