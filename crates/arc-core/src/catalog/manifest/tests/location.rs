//! The locations over which the manifest's tests run: a folder, and object stores.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use super::super::{Listing, Manifest, ObjectId};
#[cfg(feature = "object-store")]
use crate::store::{DurableLocal, StoreLocation};
use crate::{
    Result,
    store::{FolderLocation, ObjectLocation},
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
pub(super) enum Location {
    /// A folder of the file system.
    Folder,
    /// The same folder as an object store.
    #[cfg(feature = "object-store")]
    Durable,
    /// An object store that has no files.
    #[cfg(feature = "object-store")]
    Memory,
}

/// Makes a test of each function, for each location.
macro_rules! over_all_locations {
    ($($name:ident)*) => {
        over_all_locations!(@ in_a_folder Folder $($name)*);
        #[cfg(feature = "object-store")]
        over_all_locations!(@ in_a_durable_store Durable $($name)*);
        #[cfg(feature = "object-store")]
        over_all_locations!(@ in_a_store_in_memory Memory $($name)*);
    };
    (@ $module:ident $location:ident $($name:ident)*) => {
        mod $module {
            $(#[test] fn $name() { super::$name(super::Location::$location); })*
        }
    };
}
pub(super) use over_all_locations;

/// One stream, and ways around the manifest to look at its objects and to damage them.
#[derive(Debug, Clone)]
pub(super) struct At {
    location: Location,
    /// The disk, where there is one.
    pub(super) fs: CrashFs,
    #[cfg(feature = "object-store")]
    memory: Arc<InMemory>,
}

impl Location {
    /// Returns an empty location.
    pub(super) fn fresh(self) -> At {
        let fs = CrashFs::new();
        fs.create_dir_all(Path::new("store/meta")).unwrap();
        for dir in ["/", "store"] {
            fs.sync_dir(Path::new(dir)).unwrap();
        }
        self.on(&fs.current())
    }

    /// Returns the location on a disk that holds `image`.
    pub(super) fn on(self, image: &Image) -> At {
        At {
            location: self,
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
        Manifest::open_at(self.location(vfs))
    }

    fn location(&self, vfs: &Arc<dyn Vfs>) -> Arc<dyn ObjectLocation> {
        match self.location {
            Location::Folder => Arc::new(FolderLocation::new(Arc::clone(vfs), Path::new(DIR))),
            #[cfg(feature = "object-store")]
            Location::Durable => store_location(Arc::new(DurableLocal::new(Arc::clone(vfs), Path::new("")))),
            #[cfg(feature = "object-store")]
            Location::Memory => store_location(Arc::clone(&self.memory) as _),
        }
    }

    pub(super) fn listing(&self) -> Listing {
        Listing::read(self.location(&(Arc::new(self.fs.clone()) as _)).as_ref()).unwrap()
    }

    /// Returns a copy that goes its own way.
    pub(super) fn fork(&self) -> Self {
        At {
            location: self.location,
            fs: CrashFs::from_image(&self.fs.current()),
            #[cfg(feature = "object-store")]
            memory: Arc::new(self.memory.fork()),
        }
    }

    pub(super) fn read(&self, path: &Path) -> Vec<u8> {
        #[cfg(feature = "object-store")]
        if self.location == Location::Memory {
            return block_on(async { self.memory.get(&key(path)).await.unwrap().bytes().await.unwrap().into() });
        }
        self.fs.read(path).unwrap()
    }

    /// Gives an object other bytes, or makes one.
    pub(super) fn replace(&self, path: &Path, bytes: &[u8]) {
        #[cfg(feature = "object-store")]
        if self.location == Location::Memory {
            block_on(self.memory.put(&key(path), bytes.to_vec().into())).unwrap();
            return;
        }
        let _ = self.fs.remove_file(path);
        self.fs.create_new(path).unwrap().write_all_at(&[bytes], 0).unwrap();
    }

    pub(super) fn remove(&self, path: &Path) {
        #[cfg(feature = "object-store")]
        if self.location == Location::Memory {
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

/// Returns the place of the tests in a store: it waits for nothing, and objects are old enough at
/// once.
#[cfg(feature = "object-store")]
pub(super) fn store_location(store: Arc<dyn ObjectStore>) -> Arc<dyn ObjectLocation> {
    use std::time::Duration;

    let options = crate::store::StoreOptions {
        tries: 3,
        first_pause: Duration::ZERO,
        settled_after: Duration::ZERO,
        ..Default::default()
    };
    Arc::new(StoreLocation::new(store, DIR.into(), options).unwrap())
}
