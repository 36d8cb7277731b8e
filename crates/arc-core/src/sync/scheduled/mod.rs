//! The doubles: each asks the scheduler of its thread before it does what it is asked to.

mod atomic;
mod future;
mod locks;
pub mod mpsc;
mod order;
pub mod schedule;
pub mod thread;
mod time;
mod world;

pub use atomic::{AtomicBool, AtomicU64};
pub use future::block_on;
pub use locks::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard};
pub use time::Instant;
