//! A state that another directory may begin with, as a reader finds it.

use super::{Reader, past::PastAt};
use crate::{Result, engine::Origin, model::PastMoment};

impl Reader {
    /// Returns the state of now, with all that is acknowledged, or an older one.
    ///
    /// # Errors
    ///
    /// As of a look, and as of [`Self::past_state`].
    pub(in crate::engine) fn origin(&self, moment: Option<&PastMoment>) -> Result<Origin<'static>> {
        let origin = self.origin_at(moment);
        #[cfg(feature = "object-store")]
        let origin = origin.map(|origin| origin.in_store(self.storage.as_ref()));
        origin
    }

    fn origin_at(&self, moment: Option<&PastMoment>) -> Result<Origin<'static>> {
        let place = (&self.vfs, self.root.as_path(), &self.random);
        match moment {
            None => {
                let mut following = self.following.lock();
                let now_ns = self.clock.now_ns();
                let version = following.look(now_ns, &self.options)?;
                *self.seen.lock() = version;
                let (number, state, seen) = (following.number(), following.state().clone(), following.seen());
                let held = following.hold_past(number, now_ns)?;
                Ok(Origin::new(place, number, state, held).up_to(seen, None))
            }
            Some(PastMoment::Snapshot(name)) => {
                drop(self.pin()?);
                let (state, held) = self.state_of_snapshot(name)?;
                Ok(Origin::new(place, held.number, state, held))
            }
            Some(PastMoment::Time(time_ns)) => {
                drop(self.pin()?);
                let PastAt { state, through, held, .. } = self.found_at(*time_ns)?;
                Ok(Origin::new(place, held.number, state, held).up_to(through, Some(*time_ns)))
            }
        }
    }
}
