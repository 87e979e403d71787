//! Column chunks: the values of a column in a row group, from its pages.

use super::footer::Leaf;
use super::page::{Page, PageKind, Pages};
use super::runs::Runs;
use crate::columns::{LONGEST_ROW, Numbers, Place};
use crate::{Error, Result};

/// The encodings of fixed-size numbers.
const PLAIN: i64 = 0;
const PLAIN_DICTIONARY: i64 = 2;
const RLE: i64 = 3;
const RLE_DICTIONARY: i64 = 8;
const BYTE_STREAM_SPLIT: i64 = 9;

/// The number of dictionary indices to decode at a time.
const LOOKUPS: usize = 1 << 10;

pub(super) struct ChunkReader {
    pages: Pages,
    leaf: Leaf,
    /// The number of values in the metadata.
    total: usize,
    /// The number of values in the pages so far.
    seen: usize,
    dictionary: Vec<u8>,
    page: Vec<u8>,
    stored: Stored,
    /// The remaining values of the page.
    left: usize,
}

/// The encoding of a page, and the position of the next value.
enum Stored {
    /// PLAIN.
    Plain { at: usize },
    /// Dictionary indices.
    Places(Runs),
    /// `BYTE_STREAM_SPLIT`: the first bytes of all values, then the second bytes, and so on.
    Split { at: usize, values: usize },
}

impl ChunkReader {
    /// A reader of `rows` rows from these pages.
    pub(super) fn new(pages: Pages, leaf: Leaf, rows: usize) -> Self {
        Self {
            leaf,
            total: rows * pages.place.length,
            pages,
            seen: 0,
            dictionary: Vec::new(),
            page: Vec::new(),
            stored: Stored::Plain { at: 0 },
            left: 0,
        }
    }

    /// Advances to the next page with values.
    fn next_page(&mut self) -> Result<()> {
        while self.left == 0 {
            let Some(page) = self.pages.next()? else {
                let place = &self.pages.place;
                return Err(match (self.seen / place.length, self.seen % place.length) {
                    (_, 0) => place.damaged("has fewer rows than it claims"),
                    (row, found) => place.ragged(row, found),
                });
            };
            if page.kind == PageKind::Dictionary {
                if page.encoding != PLAIN && page.encoding != PLAIN_DICTIONARY {
                    return Err(self.unknown(page.encoding));
                }
                self.dictionary = page.bytes;
                continue;
            }
            let at = self.check(&page)?;
            self.stored = self.stored(&page, at)?;
            self.left = page.values;
            self.seen += page.values;
            self.page = page.bytes;
        }
        Ok(())
    }

    /// Checks the levels of a page. Returns the offset of its values.
    fn check(&self, page: &Page) -> Result<usize> {
        let place = &self.pages.place;
        let at = Levels::new(place, &self.leaf, page)?.check(place, &self.leaf, page, self.seen)?;
        if page.values > self.total - self.seen {
            return Err(place.damaged("has more rows than it claims"));
        }
        Ok(at)
    }

    /// The values of a page, from an offset on.
    fn stored(&self, page: &Page, at: usize) -> Result<Stored> {
        let there = page.bytes.len() - at;
        let all = page.values.checked_mul(self.leaf.dtype.size()).is_some_and(|n| n <= there);
        match page.encoding {
            PLAIN if all => Ok(Stored::Plain { at }),
            BYTE_STREAM_SPLIT if all => Ok(Stored::Split { at, values: page.values }),
            PLAIN | BYTE_STREAM_SPLIT => Err(short(&self.pages.place)),
            PLAIN_DICTIONARY | RLE_DICTIONARY => {
                let width = page.bytes.get(at).copied().unwrap_or(0);
                let start = page.bytes.len().min(at + 1);
                Runs::new(start, page.bytes.len(), width.into(), page.bytes.len())
                    .map(Stored::Places)
                    .ok_or_else(|| short(&self.pages.place))
            }
            other => Err(self.unknown(other)),
        }
    }

    fn unknown(&self, encoding: i64) -> Error {
        Error::format(
            &self.pages.place.label,
            format!("has numbers in an unsupported encoding ({encoding})"),
            "write them plain, in a dictionary or split into bytes",
        )
    }
}

impl Numbers for ChunkReader {
    fn read(&mut self, bytes: &mut [u8]) -> Result<()> {
        let size = self.leaf.dtype.size();
        let mut rest = bytes;
        while !rest.is_empty() {
            self.next_page()?;
            let n = self.left.min(rest.len() / size);
            let (now, later) = rest.split_at_mut(n * size);
            let done = match size {
                2 => self.stored.read::<2>(&self.page, &self.dictionary, now),
                4 => self.stored.read::<4>(&self.page, &self.dictionary, now),
                _ => self.stored.read::<8>(&self.page, &self.dictionary, now),
            };
            done.ok_or_else(|| short(&self.pages.place))?;
            self.left -= n;
            rest = later;
        }
        // The last row must not continue in a page that would not be read.
        if self.left == 0 && self.seen == self.total {
            while let Some(page) = self.pages.next()? {
                if page.kind != PageKind::Dictionary {
                    self.check(&page)?;
                }
            }
        }
        Ok(())
    }
}

impl Stored {
    /// Fills `out` with values of `N` bytes. `None` if the page or the dictionary has too few.
    fn read<const N: usize>(
        &mut self,
        page: &[u8],
        dictionary: &[u8],
        out: &mut [u8],
    ) -> Option<()> {
        match self {
            Self::Plain { at } => {
                out.copy_from_slice(page.get(*at..)?.get(..out.len())?);
                *at += out.len();
            }
            Self::Split { at, values } => {
                for (i, value) in out.as_chunks_mut::<N>().0.iter_mut().enumerate() {
                    *value = std::array::from_fn(|byte| page[*at + byte * *values + i]);
                }
                *at += out.len() / N;
            }
            Self::Places(runs) => {
                let dictionary = dictionary.as_chunks::<N>().0;
                let mut places = [0; LOOKUPS];
                for values in out.as_chunks_mut::<N>().0.chunks_mut(LOOKUPS) {
                    let places = &mut places[..values.len()];
                    runs.fill(page, places)?;
                    for (value, &place) in values.iter_mut().zip(&*places) {
                        *value = *dictionary.get(place as usize)?;
                    }
                }
            }
        }
        Some(())
    }
}

/// The repetition and definition levels of a page.
struct Levels {
    repetition: Option<Runs>,
    definition: Option<Runs>,
    /// The offset of the values.
    end: usize,
}

impl Levels {
    fn new(place: &Place, leaf: &Leaf, page: &Page) -> Result<Self> {
        let (mut at, length) = (0, page.bytes.len());
        let damaged = || place.damaged("has a page that is shorter than its levels");
        let mut runs = |wanted: bool, most: u32, stored: Option<usize>| -> Option<Option<Runs>> {
            let size = match stored {
                Some(size) => size,
                None if wanted => {
                    let size = *page.bytes.get(at..)?.first_chunk()?;
                    at += 4;
                    u32::from_le_bytes(size) as usize
                }
                None => 0,
            };
            let start = at;
            at = start.checked_add(size)?;
            let width = (u32::BITS - most.leading_zeros()) as usize;
            let runs = Runs::new(start, at, width, length)?;
            Some(wanted.then_some(runs))
        };
        let (repetition, definition) = match page.kind {
            PageKind::Data { repetition, definition } => {
                let used = [(leaf.in_list, repetition), (leaf.defined, definition)];
                if used.iter().any(|&(most, encoding)| most > 0 && encoding != RLE) {
                    let problem = "has levels in an encoding that is no longer used";
                    let hint = "write it again with a current version of its writer";
                    return Err(Error::format(&place.label, problem, hint));
                }
                (None, None)
            }
            PageKind::DataV2 { repetition, definition } => (Some(repetition), Some(definition)),
            PageKind::Dictionary => return Err(damaged()),
        };
        let repetition = runs(leaf.in_list > 0, 1, repetition).ok_or_else(damaged)?;
        let definition = runs(leaf.defined > 0, leaf.defined, definition).ok_or_else(damaged)?;
        Ok(Self { repetition, definition, end: at })
    }

    /// Checks that no value is null and all rows have the expected length, in a page after `seen` values.
    /// Returns the offset of the values.
    fn check(mut self, place: &Place, leaf: &Leaf, page: &Page, seen: usize) -> Result<usize> {
        let missing = self.first_missing(place, leaf, page)?;
        // An incomplete earlier row is reported first.
        let end = missing.map_or(page.values, |(at, _)| at + 1);
        let mut at = 0;
        while let Some(runs) = &mut self.repetition
            && at < end
        {
            let (level, n) = runs.next(&page.bytes, end - at).ok_or_else(|| short(place))?;
            let (row, in_row) = ((seen + at) / place.length, (seen + at) % place.length);
            match (level, in_row) {
                (0, 0) if n > 1 && place.length > 1 => return Err(place.ragged(row, 1)),
                (0, 0) => {}
                (0, _) => return Err(place.ragged(row, in_row)),
                (_, 0) if row == 0 => return Err(place.damaged("begins within a row")),
                (_, 0) => return Err(place.overlong(row - 1)),
                (_, _) if n > place.length - in_row => return Err(place.overlong(row)),
                (_, _) => {}
            }
            at += n;
        }
        match missing {
            None => Ok(self.end),
            Some((at, level)) if level >= leaf.in_list => Err(place.null(seen + at)),
            Some((at, level)) => {
                let row = (seen + at) / place.length;
                let is_empty = level + 1 == leaf.in_list;
                Err(if is_empty { place.ragged(row, 0) } else { place.null_row(row) })
            }
        }
    }

    /// The first null, and its level.
    fn first_missing(
        &mut self,
        place: &Place,
        leaf: &Leaf,
        page: &Page,
    ) -> Result<Option<(usize, u32)>> {
        let mut at = 0;
        while let Some(runs) = &mut self.definition
            && at < page.values
        {
            let (level, n) =
                runs.next(&page.bytes, page.values - at).ok_or_else(|| short(place))?;
            if level != leaf.defined {
                return Ok(Some((at, level)));
            }
            at += n;
        }
        Ok(None)
    }
}

fn short(place: &Place) -> Error {
    place.damaged("has a page with fewer values than it claims")
}

/// The length of the first row.
pub(super) fn first_length(mut pages: Pages, leaf: &Leaf) -> Result<usize> {
    let mut length = 0;
    while let Some(page) = pages.next()? {
        if page.kind == PageKind::Dictionary || page.values == 0 {
            continue;
        }
        let place = &pages.place;
        let mut levels = Levels::new(place, leaf, &page)?;
        if length == 0
            && let Some((0, level)) = levels.first_missing(place, leaf, &page)?
            && level < leaf.in_list
        {
            let is_empty = level + 1 == leaf.in_list;
            return if is_empty { Ok(0) } else { Err(place.null_row(0)) };
        }
        let mut at = 0;
        while let Some(runs) = &mut levels.repetition
            && at < page.values
        {
            let (level, n) =
                runs.next(&page.bytes, page.values - at).ok_or_else(|| short(place))?;
            at += n;
            match level {
                0 if length > 0 => return Ok(length),
                0 if n > 1 => return Ok(1),
                _ => length += n,
            }
        }
        if length > LONGEST_ROW {
            break;
        }
    }
    Ok(length)
}
