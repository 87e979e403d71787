//! Parquet files.

mod chunk;
mod footer;
mod page;
mod runs;
mod thrift;

use std::fs::File;
use std::sync::Arc;

use self::chunk::{ChunkReader, first_length};
use self::footer::{Footer, Group, Leaf};
use self::page::Pages;
use crate::columns::{Batch, Batches, Column, DAMAGED, Numbers, Place, Table, column_label};
use crate::npy::quoted;
use crate::raw::{read_at, truncated};
use crate::{Error, Result};

pub(crate) const MAGIC: &[u8] = b"PAR1";

/// The longest footer: enough for a million column chunks.
const LONGEST_FOOTER: u64 = 1 << 27;

/// An open file.
pub(super) struct Parquet {
    label: String,
    file: Arc<File>,
    footer: Footer,
    rows: usize,
}

impl Parquet {
    pub(super) fn open(label: &str, file: File) -> Result<Self> {
        let io = |e| Error::io(label, "read", e);
        let length = file.metadata().map_err(io)?.len();
        let mut start = [0; 4];
        let got = read_at(&file, 0, &mut start).map_err(io)?;
        if start != MAGIC {
            let problem =
                format!("begins with {}, not with {}", quoted(&start[..got]), quoted(MAGIC));
            return Err(Error::format(label, problem, "the file is damaged or not of Parquet"));
        }
        // The file ends with the length of the footer and the magic bytes.
        let mut end = [0; 8];
        let Some(before) = length.checked_sub(12) else {
            return Err(truncated(label, 12 - length));
        };
        read_at(&file, before + 4, &mut end).map_err(io)?;
        let [size @ .., _, _, _, _] = end;
        if end[4..] != *MAGIC {
            let problem = format!("ends with {}, not with {}", quoted(&end[4..]), quoted(MAGIC));
            return Err(Error::format(
                label,
                problem,
                "it was not written to its end; write again",
            ));
        }
        let size = u64::from(u32::from_le_bytes(size));
        if size > before || size > LONGEST_FOOTER {
            let problem = format!("claims a footer of {size} bytes in a file of {length}");
            return Err(Error::format(label, problem, DAMAGED));
        }
        let mut bytes = vec![0; size as usize];
        read_at(&file, length - 8 - size, &mut bytes).map_err(io)?;
        let damaged = |problem| Error::format(label, format!("the footer {problem}"), DAMAGED);
        let footer = Footer::parse(&bytes).map_err(damaged)?;
        let rows = footer.groups.iter().try_fold(0, |sum: usize, group| {
            usize::try_from(group.rows).ok().and_then(|rows| sum.checked_add(rows))
        });
        let rows = rows.ok_or_else(|| damaged("claims more rows than there can be"))?;
        Ok(Self { label: label.to_owned(), file: Arc::new(file), footer, rows })
    }
}

impl Table for Parquet {
    fn columns(&self) -> &[Column] {
        &self.footer.columns
    }

    fn rows(&self) -> usize {
        self.rows
    }

    fn first_length(&self, column: usize) -> Result<usize> {
        let group = self.footer.groups.iter().find(|group| group.rows > 0);
        let (Some(group), Some(leaf)) = (group, self.footer.leaves[column]) else { return Ok(0) };
        let label = column_label(&self.label, &self.footer.columns[column].name);
        let place = Place { label, first: 0, length: 1 };
        let pages = Pages::new(place, &self.file, group.chunks[leaf.chunk], 1)?;
        first_length(pages, &leaf)
    }

    fn batches(self: Box<Self>, columns: Vec<usize>, length: usize) -> Box<dyn Batches> {
        let Self { label, file, footer, .. } = *self;
        let columns = columns.into_iter().filter_map(|i| {
            Some((column_label(&label, &footer.columns[i].name), footer.leaves[i]?))
        });
        Box::new(Groups {
            file,
            columns: columns.collect(),
            length,
            left: footer.groups.into_iter(),
        })
    }
}

/// The remaining row groups.
struct Groups {
    file: Arc<File>,
    columns: Vec<(String, Leaf)>,
    length: usize,
    left: std::vec::IntoIter<Group>,
}

impl Batches for Groups {
    fn next(&mut self, first: usize) -> Result<Option<Batch>> {
        let Some(group) = self.left.find(|group| group.rows > 0) else { return Ok(None) };
        // No overflow: the sum was checked when the file was opened.
        let rows = group.rows as usize;
        let together = self.columns.len();
        let columns = self.columns.iter().map(|(label, leaf)| -> Result<Box<dyn Numbers>> {
            let place = Place { label: label.clone(), first, length: self.length };
            let pages = Pages::new(place, &self.file, group.chunks[leaf.chunk], together)?;
            Ok(Box::new(ChunkReader::new(pages, *leaf, rows)))
        });
        Ok(Some(Batch { rows, columns: columns.collect::<Result<_>>()? }))
    }
}
