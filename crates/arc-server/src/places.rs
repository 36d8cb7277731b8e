//! The places that there are for connections: so many in all, a part of them for each address, and the last ones for a moment each,
//! so that a probe of health or an operator still has an answer when the others are taken.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

/// What one address may have of all places, and how many it may have in any case. Behind a proxy all clients are one address.
const SHARE: usize = 2;
const LEAST_SHARE: usize = 16;
/// The last places, and how long one of them may be held: these, or an eighth of all where that is less.
const LAST: usize = 16;
const LAST_SHARE: usize = 8;
pub(crate) const LAST_HELD: Duration = Duration::from_secs(5);
/// How often it is said that there are too many connections.
const SAY_EVERY: Duration = Duration::from_secs(60);

/// All places.
#[derive(Debug)]
pub(crate) struct Places {
    all: Arc<Semaphore>,
    last: Arc<Semaphore>,
    most_of_one: usize,
    taken: Mutex<HashMap<IpAddr, usize>>,
    said: Mutex<Option<Instant>>,
}

/// A place that is free, for whoever comes next.
#[derive(Debug)]
pub(crate) struct FreePlace {
    permit: OwnedSemaphorePermit,
    is_last: bool,
}

/// The place of a connection, while it lives.
#[derive(Debug)]
pub(crate) struct TakenPlace {
    places: Arc<Places>,
    address: IpAddr,
    _permit: OwnedSemaphorePermit,
    /// Whether it is one of those that are held for a moment only.
    pub(crate) is_last: bool,
}

impl Places {
    pub(crate) fn new(all: usize) -> Arc<Self> {
        let last = LAST.min(all / LAST_SHARE);
        Arc::new(Self {
            all: Arc::new(Semaphore::new(all - last)),
            last: Arc::new(Semaphore::new(last)),
            most_of_one: (all / SHARE).max(LEAST_SHARE),
            taken: Mutex::default(),
            said: Mutex::default(),
        })
    }

    /// Waits until there is a place. `None` once there never is one again.
    pub(crate) async fn free(&self) -> Option<FreePlace> {
        let free = |is_last| move |permit| FreePlace { permit, is_last };
        if let Ok(permit) = Arc::clone(&self.all).try_acquire_owned() {
            return Some(free(false)(permit));
        }
        self.say("all places for connections are taken but the last few, for five seconds each (max_connections)");
        tokio::select! {
            biased;
            permit = Arc::clone(&self.all).acquire_owned() => permit.ok().map(free(false)),
            permit = Arc::clone(&self.last).acquire_owned() => permit.ok().map(free(true)),
        }
    }

    /// Gives a place to a connection of an address, unless that has too many.
    pub(crate) fn take(self: &Arc<Self>, free: FreePlace, address: IpAddr) -> Option<TakenPlace> {
        let address = network(address);
        {
            let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
            let of_address = taken.entry(address).or_default();
            if *of_address >= self.most_of_one {
                drop(taken);
                self.say(
                    "an address has as many connections as it may (half of max_connections); its next ones are closed",
                );
                return None;
            }
            *of_address += 1;
        }
        // Meanwhile somebody may have left.
        let (permit, is_last) = match Arc::clone(&self.all).try_acquire_owned() {
            Ok(permit) if free.is_last => (permit, false),
            _ => (free.permit, free.is_last),
        };
        Some(TakenPlace { places: Arc::clone(self), address, _permit: permit, is_last })
    }

    fn say(&self, what: &'static str) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.is_none_or(|said| said.elapsed() >= SAY_EVERY) {
            *said = Some(Instant::now());
            tracing::warn!("{what}; said once a minute");
        }
    }
}

impl Drop for TakenPlace {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(of_address) = taken.get_mut(&self.address) {
            *of_address -= 1;
            if *of_address == 0 {
                taken.remove(&self.address);
            }
        }
    }
}

/// Returns what counts as one address: of version 6 a network, which is what a customer has.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([127, 0, 0, last])
    }

    async fn taken(places: &Arc<Places>, last: u8) -> Option<TakenPlace> {
        let free = places.free().await.unwrap();
        places.take(free, address(last))
    }

    #[tokio::test]
    async fn an_address_has_half_of_the_places_and_others_the_rest() {
        let places = Places::new(64);
        let mut held = Vec::new();
        for (last, count) in [(1, 32), (2, 24)] {
            for _ in 0..count {
                held.push(taken(&places, last).await.unwrap());
            }
        }
        assert!(held.iter().all(|place| !place.is_last));
        assert!(taken(&places, 1).await.is_none());
        // For others there are the last places, and when one leaves, its.
        assert!(taken(&places, 3).await.unwrap().is_last);
        drop(held.pop());
        assert!(!taken(&places, 3).await.unwrap().is_last);
        drop(held);
        assert!(places.taken.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn few_places_are_for_whoever_comes() {
        let places = Places::new(8);
        let mut held = Vec::new();
        for _ in 0..7 {
            held.push(taken(&places, 1).await.unwrap());
        }
        assert!(taken(&places, 1).await.unwrap().is_last);
    }

    #[test]
    fn a_network_of_version_6_is_one_address() {
        let [one, other, far] =
            ["2001:db8::1", "2001:db8::2", "2001:db9::1"].map(|text| network(text.parse().unwrap()));
        assert_eq!(one, other);
        assert_ne!(one, far);
        assert_eq!(network("::ffff:127.0.0.1".parse().unwrap()), address(1));
    }
}
