//! The places over which the manifest's tests run: a folder, and object stores.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use super::super::{Listing, Manifest, ObjectId};
#[cfg(feature = "object-store")]
use crate::store::{DurableLocal, StorePlace};
use crate::{
    Result,
    store::{FolderPlace, ObjectPlace},
    vfs::{CrashFs, Image, Vfs},
};

#[cfg(feature = "object-store")]
use {
    futures::executor::block_on,
    object_store::{ObjectStore, ObjectStoreExt, memory::InMemory},
};

pub(super) const DIR: &str = "store/meta/0";

/// What is tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// A folder of the file system.
    Folder,
    /// The same folder as an object store.
    #[cfg(feature = "object-store")]
    Durable,
    /// An object store that has no files.
    #[cfg(feature = "object-store")]
    Memory,
}

/// Makes a test of each function, for each place.
macro_rules! over_all_places {
    ($($name:ident)*) => {
        over_all_places!(@ in_a_folder Folder $($name)*);
        #[cfg(feature = "object-store")]
        over_all_places!(@ in_a_durable_store Durable $($name)*);
        #[cfg(feature = "object-store")]
        over_all_places!(@ in_a_store_in_memory Memory $($name)*);
    };
    (@ $module:ident $place:ident $($name:ident)*) => {
        mod $module {
            $(#[test] fn $name() { super::$name(super::Place::$place); })*
        }
    };
}
pub(super) use over_all_places;

/// One stream, and ways around the manifest to look at its objects and to damage them.
#[derive(Debug, Clone)]
pub(super) struct At {
    place: Place,
    /// The disk, where there is one.
    pub(super) fs: CrashFs,
    #[cfg(feature = "object-store")]
    memory: Arc<InMemory>,
}

impl Place {
    /// Returns an empty place.
    pub(super) fn fresh(self) -> At {
        let fs = CrashFs::new();
        fs.create_dir_all(Path::new("store/meta")).unwrap();
        for dir in ["/", "store"] {
            fs.sync_dir(Path::new(dir)).unwrap();
        }
        self.on(&fs.current())
    }

    /// Returns the place on a disk that holds `image`.
    pub(super) fn on(self, image: &Image) -> At {
        At {
            place: self,
            fs: CrashFs::from_image(image),
            #[cfg(feature = "object-store")]
            memory: Arc::default(),
        }
    }
}

impl At {
    pub(super) fn open(&self) -> Result<Manifest> {
        self.open_through(&(Arc::new(self.fs.clone()) as Arc<dyn Vfs>))
    }

    /// Opens the stream on a disk with faults; in memory there is no disk.
    pub(super) fn open_through(&self, vfs: &Arc<dyn Vfs>) -> Result<Manifest> {
        Manifest::open_at(self.place(vfs))
    }

    fn place(&self, vfs: &Arc<dyn Vfs>) -> Arc<dyn ObjectPlace> {
        match self.place {
            Place::Folder => Arc::new(FolderPlace::new(Arc::clone(vfs), Path::new(DIR))),
            #[cfg(feature = "object-store")]
            Place::Durable => store_place(Arc::new(DurableLocal::new(Arc::clone(vfs), Path::new("")))),
            #[cfg(feature = "object-store")]
            Place::Memory => store_place(Arc::clone(&self.memory) as _),
        }
    }

    pub(super) fn listing(&self) -> Listing {
        Listing::read(self.place(&(Arc::new(self.fs.clone()) as _)).as_ref()).unwrap()
    }

    /// Returns a copy that goes its own way.
    pub(super) fn fork(&self) -> Self {
        At {
            place: self.place,
            fs: CrashFs::from_image(&self.fs.current()),
            #[cfg(feature = "object-store")]
            memory: Arc::new(self.memory.fork()),
        }
    }

    pub(super) fn read(&self, path: &Path) -> Vec<u8> {
        #[cfg(feature = "object-store")]
        if self.place == Place::Memory {
            return block_on(async { self.memory.get(&key(path)).await.unwrap().bytes().await.unwrap().into() });
        }
        self.fs.read(path).unwrap()
    }

    /// Gives an object other bytes, or makes one.
    pub(super) fn replace(&self, path: &Path, bytes: &[u8]) {
        #[cfg(feature = "object-store")]
        if self.place == Place::Memory {
            block_on(self.memory.put(&key(path), bytes.to_vec().into())).unwrap();
            return;
        }
        let _ = self.fs.remove_file(path);
        self.fs.create_new(path).unwrap().write_all_at(&[bytes], 0).unwrap();
    }

    pub(super) fn remove(&self, path: &Path) {
        #[cfg(feature = "object-store")]
        if self.place == Place::Memory {
            block_on(self.memory.delete(&key(path))).unwrap();
            return;
        }
        self.fs.remove_file(path).unwrap();
    }
}

pub(super) fn path(id: ObjectId) -> PathBuf {
    Path::new(DIR).join(id.name())
}

#[cfg(feature = "object-store")]
fn key(path: &Path) -> object_store::path::Path {
    path.to_str().unwrap().into()
}

/// Returns the place of the tests in a store: it waits for nothing, and objects are old enough at once.
#[cfg(feature = "object-store")]
pub(super) fn store_place(store: Arc<dyn ObjectStore>) -> Arc<dyn ObjectPlace> {
    use std::time::Duration;

    let options = crate::store::StoreOptions {
        tries: 3,
        first_pause: Duration::ZERO,
        settled_after: Duration::ZERO,
        ..Default::default()
    };
    Arc::new(StorePlace::new(store, DIR.into(), options).unwrap())
}
