//! Waiting for a future.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use super::world::{Me, me};

/// Waits for a future.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let Some(me) = me() else { return futures::executor::block_on(future) };
    me.step();
    let told = Arc::new(Told { me: me.clone(), is_told: AtomicBool::new(false) });
    let waker = Waker::from(Arc::clone(&told));
    let (mut context, mut future) = (Context::from_waker(&waker), pin!(future));
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        while !told.is_told.swap(false, Ordering::SeqCst) {
            me.wait(told.address(), None);
        }
    }
}

struct Told {
    me: Me,
    is_told: AtomicBool,
}

impl Told {
    fn address(&self) -> usize {
        &raw const self.is_told as usize
    }
}

impl Wake for Told {
    fn wake(self: Arc<Self>) {
        self.is_told.store(true, Ordering::SeqCst);
        self.me.wake(self.address());
    }
}
