//! Opens files: recognises the format and selects the array.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::Path;

use crate::array::Purpose;
use crate::columns::{self, FILE_MAGIC, PARQUET_MAGIC, STREAM_MAGIC};
use crate::npy::{self, BFLOAT16, Header};
use crate::npz::{self, Archive};
use crate::raw::fill;
use crate::safetensors::Tensors;
use crate::text::TextReader;
use crate::unchanged::Opened;
use crate::{ArrayInfo, ArrayReader, Error, Location, Result, TableOptions};

/// The supported formats.
#[derive(Clone, Copy)]
enum Kind {
    Npy,
    Npz,
    Safetensors,
    Parquet,
    Arrow,
    /// Plain or compressed with gzip.
    Text,
}

impl Kind {
    fn by_ending(path: &Path) -> Option<Self> {
        let mut ending = path.extension()?.to_str()?;
        let packed = ending.eq_ignore_ascii_case("gz");
        if packed {
            ending = Path::new(path.file_stem()?).extension()?.to_str()?;
        }
        let kind = match ending.to_ascii_lowercase().as_str() {
            "npy" => Self::Npy,
            "npz" => Self::Npz,
            "safetensors" => Self::Safetensors,
            "parquet" => Self::Parquet,
            "arrow" | "arrows" | "feather" | "ipc" => Self::Arrow,
            "csv" | "tsv" | "txt" | "dat" => Self::Text,
            _ => return None,
        };
        (!packed || matches!(kind, Self::Text)).then_some(kind)
    }

    /// Recognises a format by its first nine bytes. Anything unknown is text.
    fn by_contents(start: &[u8]) -> Self {
        if start.starts_with(npy::MAGIC) {
            Self::Npy
        } else if start.starts_with(npz::MAGIC) {
            Self::Npz
        } else if start.starts_with(PARQUET_MAGIC) {
            Self::Parquet
        } else if start.starts_with(FILE_MAGIC) || start.starts_with(STREAM_MAGIC) {
            Self::Arrow
        } else if start.len() == 9 && start[8] == b'{' && start[5..8] == [0; 3] {
            Self::Safetensors
        } else {
            Self::Text
        }
    }
}

/// Opens an array for reading. The format is recognised by the file extension, or by the first bytes of
/// standard input and other pipes. A location without a name means the only array of floating-point type.
///
/// ```
/// use shafer_data::{Location, Values, open};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("logits.csv");
/// std::fs::write(&path, "cat,dog\n0.5,-1\n2,0\n")?;
/// let mut reader = open(&Location { path: Some(path), name: None })?;
/// assert_eq!(reader.info().shape, [2]);
/// let mut block = Values::default();
/// reader.read(100, &mut block)?;
/// assert_eq!(block, Values::F64(vec![0.5, -1.0, 2.0, 0.0]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn open(location: &Location) -> Result<Box<dyn ArrayReader>> {
    open_with(location, &TableOptions::default())
}

/// Like [`open`], with options for tables. Fails if columns are selected in a file without columns, or a
/// delimiter is given for a file that is not text.
pub fn open_with(location: &Location, options: &TableOptions) -> Result<Box<dyn ArrayReader>> {
    open_for(Purpose::Numbers, location, options)
}

pub(crate) fn open_for(
    purpose: Purpose,
    location: &Location,
    options: &TableOptions,
) -> Result<Box<dyn ArrayReader>> {
    let label = location.label();
    let name = location.name.as_deref();
    let Some(path) = &location.path else {
        return open_stream(&label, Box::new(io::stdin()), purpose, name, options);
    };
    let (mut file, regular) = open_path(&label, path)?;
    if !regular {
        return open_stream(&label, Box::new(file), purpose, name, options);
    }
    let opened = Opened::new(&label, &file)?;
    let kind = kind(&label, path, &mut file)?;
    check_options(&label, kind, options)?;
    let reader = match kind {
        Kind::Npy => open_npy(&label, file, purpose, name),
        Kind::Npz => Archive::open(&label, file)?.array(purpose, name),
        Kind::Safetensors => Tensors::open(&label, file)?.array(purpose, name),
        Kind::Parquet => columns::open_parquet(&label, file, purpose, name, options),
        Kind::Arrow => columns::open_arrow(&label, file, purpose, name, options),
        Kind::Text => open_text_file(&label, file, purpose, name, options),
    }?;
    Ok(opened.watch(reader))
}

/// Opens an array of integers or floating-point numbers, such as the true classes of rows. Integers are
/// converted to floating point.
///
/// ```
/// use shafer_data::{Location, Values, open_labels};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("labels.csv");
/// std::fs::write(&path, "label\n3\n0\n")?;
/// let mut reader = open_labels(&Location { path: Some(path), name: None })?;
/// let mut block = Values::default();
/// reader.read(100, &mut block)?;
/// assert_eq!(block, Values::F64(vec![3.0, 0.0]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn open_labels(location: &Location) -> Result<Box<dyn ArrayReader>> {
    open_for(Purpose::Labels, location, &TableOptions::default())
}

fn check_options(label: &str, kind: Kind, options: &TableOptions) -> Result<()> {
    let table = matches!(kind, Kind::Parquet | Kind::Arrow | Kind::Text);
    if options.choose() && !table {
        let problem = "has no columns to choose from; --columns and --exclude are for text, .parquet \
                       and .arrow";
        return Err(Error::request(label, problem));
    }
    if options.delimiter.is_some() && !matches!(kind, Kind::Text) {
        return Err(Error::request(label, "is not text; --delimiter is for text only"));
    }
    Ok(())
}

/// Lists the arrays of floating-point type in a file.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("logits.csv");
/// std::fs::write(&path, "0.5,-1\n2,0\n")?;
/// let arrays = shafer_data::list(&path)?;
/// assert_eq!(arrays[0].to_string(), "f64 rows of (2,)");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn list(path: &Path) -> Result<Vec<ArrayInfo>> {
    let label = path.display().to_string();
    let (mut file, regular) = open_path(&label, path)?;
    if !regular {
        return Err(Error::request(&label, "is not a file; arrays are only listed of files"));
    }
    Ok(match kind(&label, path, &mut file)? {
        Kind::Npy => {
            // Only untyped bytes need a type to be given.
            let header = Header::read(&label, &mut file)?;
            let dtype = header.elements(&label, Purpose::Numbers, false)?.dtype();
            vec![ArrayInfo { name: None, dtype, shape: header.shape, open_ended: false }]
        }
        Kind::Npz => Archive::open(&label, file)?.list()?,
        Kind::Safetensors => Tensors::open(&label, file)?.list(),
        Kind::Parquet => columns::list_parquet(&label, file)?,
        Kind::Arrow => columns::list_arrow(&label, file)?,
        Kind::Text => {
            let options = TableOptions::default();
            vec![open_text_file(&label, file, Purpose::Numbers, None, &options)?.info().clone()]
        }
    })
}

/// The open file, and whether it is a regular file. Pipes have no length and are not seekable.
fn open_path(label: &str, path: &Path) -> Result<(File, bool)> {
    let io = |e| Error::io(label, "open", e);
    // Checked first: the error of opening a folder differs between systems.
    if path.is_dir() {
        return Err(Error::request(label, "is a folder; name a file in it"));
    }
    let file = File::open(path).map_err(io)?;
    let regular = file.metadata().map_err(io)?.is_file();
    Ok((file, regular))
}

fn kind(label: &str, path: &Path, file: &mut File) -> Result<Kind> {
    let io = |e| Error::io(label, "read", e);
    if file.metadata().map_err(io)?.len() == 0 {
        return Err(Error::format(label, "is empty", "write the file again"));
    }
    if let Some(kind) = Kind::by_ending(path) {
        return Ok(kind);
    }
    let mut start = [0; 9];
    let n = fill(file, &mut start).map_err(io)?;
    file.seek(SeekFrom::Start(0)).map_err(io)?;
    match Kind::by_contents(&start[..n]) {
        // Almost any file could be text, so text is recognised by its extension only.
        Kind::Text => Err(Error::request(
            label,
            "has an unknown format; file names end in .npy, .npz, .safetensors, .parquet, \
             .arrow, .csv, .tsv, .txt or .dat, and of text in .gz after that",
        )),
        kind => Ok(kind),
    }
}

fn open_stream(
    label: &str,
    mut source: Box<dyn Read + Send>,
    purpose: Purpose,
    name: Option<&str>,
    options: &TableOptions,
) -> Result<Box<dyn ArrayReader>> {
    let mut start = [0; 9];
    let n = fill(&mut *source, &mut start).map_err(|e| Error::io(label, "read", e))?;
    if n == 0 {
        return Err(Error::format(label, "is empty", "is the program before it running?"));
    }
    let start = &start[..n];
    let kind = Kind::by_contents(start);
    let source: Box<dyn Read + Send> = Box::new(Cursor::new(start.to_vec()).chain(source));
    check_options(label, kind, options)?;
    match kind {
        Kind::Npy => {
            let bfloat16 = npy_name(label, name)?;
            Ok(Box::new(npy::open(label, None, purpose, bfloat16, source, None, None)?))
        }
        // The directory of these formats is at a position that only a seekable file can reach.
        Kind::Npz => Archive::open(label, spill(label, source)?)?.array(purpose, name),
        Kind::Safetensors => Tensors::open(label, spill(label, source)?)?.array(purpose, name),
        Kind::Parquet => {
            columns::open_parquet(label, spill(label, source)?, purpose, name, options)
        }
        Kind::Arrow => columns::open_arrow(label, spill(label, source)?, purpose, name, options),
        Kind::Text => open_text(label, source, None, purpose, name, options),
    }
}

fn spill(label: &str, mut source: Box<dyn Read + Send>) -> Result<File> {
    let keep = |e| Error::io(label, "keep a temporary copy of the file", e);
    let mut copy = tempfile::tempfile().map_err(keep)?;
    io::copy(&mut source, &mut copy).map_err(keep)?;
    Ok(copy)
}

fn open_npy(
    label: &str,
    file: File,
    purpose: Purpose,
    name: Option<&str>,
) -> Result<Box<dyn ArrayReader>> {
    let bfloat16 = npy_name(label, name)?;
    let io = |e| Error::io(label, "read", e);
    let length = file.metadata().map_err(io)?.len();
    let again = file.try_clone().map_err(io)?;
    let (source, again) = (Box::new(file), Some((again, 0)));
    Ok(Box::new(npy::open(label, None, purpose, bfloat16, source, Some(length), again)?))
}

/// The only array of a .npy file has no name: after the colon there can be its type.
fn npy_name(label: &str, name: Option<&str>) -> Result<bool> {
    match name {
        None => Ok(false),
        Some(BFLOAT16) => Ok(true),
        Some(name) => Err(unnamed(label, name)),
    }
}

fn open_text_file(
    label: &str,
    file: File,
    purpose: Purpose,
    name: Option<&str>,
    options: &TableOptions,
) -> Result<Box<dyn ArrayReader>> {
    let length = file.metadata().map_err(|e| Error::io(label, "read", e))?.len();
    open_text(label, Box::new(file), Some(length), purpose, name, options)
}

fn open_text(
    label: &str,
    source: Box<dyn Read + Send>,
    length: Option<u64>,
    purpose: Purpose,
    name: Option<&str>,
    options: &TableOptions,
) -> Result<Box<dyn ArrayReader>> {
    match name {
        None => Ok(Box::new(TextReader::new(label, source, length, purpose, options)?)),
        Some(name) => Err(unnamed(label, name)),
    }
}

fn unnamed(label: &str, name: &str) -> Error {
    Error::request(label, format!("holds one array without a name; leave `:{name}` out"))
}
