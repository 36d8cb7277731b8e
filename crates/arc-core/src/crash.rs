//! Named crash points: where the crash tests stop the process, at each numbered step of flush and
//! recovery.
//!
//! Compiled to nothing in a release without the feature `crash-points`. Else the process aborts at the
//! point that the environment variable `ARC_CRASH_POINT` names, at its n-th passage if it says `name:n`.

/// Aborts the process if this is the point asked for.
#[cfg(any(debug_assertions, feature = "crash-points"))]
pub(crate) fn crash_point(name: &str) {
    use std::{
        collections::HashMap,
        sync::{Mutex, PoisonError},
    };
    static PASSED: Mutex<Option<HashMap<String, u64>>> = Mutex::new(None);

    let Ok(wanted) = std::env::var("ARC_CRASH_POINT") else { return };
    let numbered = wanted.rsplit_once(':').and_then(|(point, nth)| Some((point, nth.parse::<u64>().ok()?)));
    let (wanted, nth) = numbered.unwrap_or((&wanted, 1));
    if wanted != name {
        return;
    }
    let mut passed = PASSED.lock().unwrap_or_else(PoisonError::into_inner);
    let count = passed.get_or_insert_default().entry(name.to_owned()).or_insert(0);
    *count += 1;
    if nth == *count {
        std::process::abort();
    }
}

#[cfg(not(any(debug_assertions, feature = "crash-points")))]
pub(crate) fn crash_point(_name: &str) {}
