//! Detects files that change while they are read.

use std::fs::File;
use std::io;
use std::time::SystemTime;

use crate::{ArrayInfo, ArrayReader, Columns, Error, Result, Values};

/// The size and modification time of a file when it was opened. Renaming another file over it is no change:
/// the open file stays intact.
#[derive(Debug)]
pub(crate) struct Opened {
    label: String,
    file: File,
    stamp: (u64, Option<SystemTime>),
}

impl Opened {
    pub(crate) fn new(label: &str, file: &File) -> Result<Self> {
        let io = |e| Error::io(label, "read", e);
        let file = file.try_clone().map_err(io)?;
        let stamp = stamp(&file).map_err(io)?;
        Ok(Self { label: label.to_owned(), file, stamp })
    }

    /// Fails if the size or the modification time has changed since.
    pub(crate) fn check(&self) -> Result<()> {
        let now = stamp(&self.file).map_err(|e| Error::io(&self.label, "read", e))?;
        if now == self.stamp {
            return Ok(());
        }
        let problem = "was modified while it was read";
        Err(Error::format(&self.label, problem, "run again when no program writes to it"))
    }

    /// Wraps a reader to fail once the file has changed.
    pub(crate) fn watch(self, reader: Box<dyn ArrayReader>) -> Box<dyn ArrayReader> {
        Box::new(Watched { opened: self, reader })
    }
}

fn stamp(file: &File) -> io::Result<(u64, Option<SystemTime>)> {
    let metadata = file.metadata()?;
    // Some file systems have no modification time.
    Ok((metadata.len(), metadata.modified().ok()))
}

struct Watched {
    opened: Opened,
    reader: Box<dyn ArrayReader>,
}

impl ArrayReader for Watched {
    fn info(&self) -> &ArrayInfo {
        self.reader.info()
    }

    fn read(&mut self, elements: usize, block: &mut Values) -> Result<()> {
        let read = self.reader.read(elements, block);
        // Before other errors: a changing file also looks truncated or damaged.
        self.opened.check()?;
        read
    }

    fn share_read(&self) -> Option<f64> {
        self.reader.share_read()
    }

    fn columns(&self) -> Option<&Columns> {
        self.reader.columns()
    }
}
