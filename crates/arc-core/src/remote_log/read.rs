//! Reading the remote log: what is there, and the frames after one.
//!
//! Only reads. The listing tells the newest number; that no object in the middle is missing is
//! checked by the numbers, and that no frame is by theirs.

use std::{
    collections::{BTreeSet, VecDeque},
    io::ErrorKind,
};

use super::{Bytes, DecodedGroup, HEADER_BYTES, KeptObject, RemoteLog, name, parse};
use crate::{Error, Result, SequenceNumber, store::FoundObject, sync::thread::scope, wal::ReplayedFrame};

/// Objects that are fetched at the same time: each takes some 10 to 100 ms, and there may be
/// hundreds.
const AT_ONCE: u64 = 16;

impl RemoteLog {
    /// Lists the objects, ascending. A fence is told by its size: nothing else has no frames.
    pub(super) fn list(&self) -> Result<VecDeque<KeptObject>> {
        let listed = self.location.list().map_err(|e| Error::io("list", self.location.path(""), e))?;
        let kept = |FoundObject { name, settled, bytes }: FoundObject| {
            let number = parse(&name)?;
            let stays = bytes == HEADER_BYTES as u64 && !settled;
            Some(KeptObject { number, last_seq: SequenceNumber::default(), stays })
        };
        Ok(listed.into_iter().filter_map(kept).collect())
    }

    /// Hands all frames after `after` to `visit`, in order. Holds the objects that have some in memory:
    /// they are what comes into buffers now.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] where an object is missing, damaged or does not go on where the one before
    /// it ends; [`Error::Io`]; what `visit` returns.
    pub(crate) fn read_after(
        &self,
        after: SequenceNumber,
        visit: &mut dyn FnMut(ReplayedFrame<'_>) -> Result<()>,
    ) -> Result<()> {
        for group in self.needed_after(after)? {
            let path = self.location.path(&name(group.header.number));
            group.visit(&path, &mut |frame| if frame.seq > after { visit(frame) } else { Ok(()) })?;
        }
        Ok(())
    }

    /// Fetches the objects that have frames after `after`, from the newest back; returns them in
    /// order.
    fn needed_after(&self, after: SequenceNumber) -> Result<VecDeque<DecodedGroup>> {
        let known: BTreeSet<u64> = self.objects.kept.lock().iter().map(|kept| kept.number).collect();
        let mut needed: VecDeque<DecodedGroup> = VecDeque::new();
        let mut end = self.next;
        while end > 1 {
            let begin = end.saturating_sub(AT_ONCE).max(1);
            for (number, fetched) in self.fetch(begin, end, &known).into_iter().rev() {
                let path = self.location.path(&name(number));
                let expected = needed.front().map(|next| next.header.first_seq);
                let Some(group) = fetched? else {
                    // All before the first that is there are flushed, which is why they are gone.
                    let is_begun = expected.is_none_or(|first| first <= after.next());
                    return if is_begun { Ok(needed) } else { Err(Error::corrupt(path, 0, "it is missing")) };
                };
                if let Some(first) = expected.filter(|first| group.header.last_seq.next() != *first) {
                    let reason =
                        format!("it ends with frame {}, and the next begins with {first}", group.header.last_seq);
                    return Err(Error::corrupt(path, 40, reason));
                }
                let is_first = group.header.first_seq <= after.next();
                needed.push_front(group);
                if is_first {
                    return Ok(needed);
                }
            }
            end = begin;
        }
        match needed.front() {
            Some(first) if first.header.first_seq > after.next() => {
                let path = self.location.path(&name(1));
                Err(Error::corrupt(path, 32, format!("it does not begin with frame {}", after.next())))
            }
            _ => Ok(needed),
        }
    }

    /// Fetches the objects of these numbers at the same time.
    fn fetch(&self, begin: u64, end: u64, known: &BTreeSet<u64>) -> Vec<(u64, Result<Option<DecodedGroup>>)> {
        let fetch = |number: u64| if known.contains(&number) { self.get(number).map(Some) } else { Ok(None) };
        let panicked = |_| Err(Error::internal("a thread that reads the log in the object store has panicked"));
        scope(|scope| {
            let fetch = &fetch;
            let threads: Vec<_> = (begin..end).map(|number| (number, scope.spawn(move || fetch(number)))).collect();
            threads.into_iter().map(|(number, thread)| (number, thread.join().unwrap_or_else(panicked))).collect()
        })
    }

    /// Fetches an object, which is there.
    pub(super) fn get(&self, number: u64) -> Result<DecodedGroup> {
        let path = self.location.path(&name(number));
        match self.location.get(&name(number)) {
            Ok(bytes) => DecodedGroup::decode(number, &path, Bytes::from(bytes)),
            Err(e) if e.kind() == ErrorKind::NotFound => Err(Error::corrupt(path, 0, "it is missing")),
            Err(e) => Err(Error::io("read", path, e)),
        }
    }
}
