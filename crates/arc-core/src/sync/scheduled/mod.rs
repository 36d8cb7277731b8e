//! The doubles: each asks the scheduler of its thread before it does what it is asked to.

mod future;
mod locks;
pub mod mpsc;
mod order;
pub mod schedule;
pub mod thread;
mod time;
mod world;

pub use future::block_on;
pub use locks::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard};
pub use time::Instant;
