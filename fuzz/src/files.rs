//! Temporary files with given bytes, and the invariants of reading them: no panic, errors of one line, results of the
//! announced size.

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Once;

use half::{bf16, f16};
use shafer_data::{
    ArrayInfo, Dtype, Error, HeadWeights, Location, ModelFile, Orientation, Result, TensorInfo,
    Values, heads, list, load_head, open,
};
use tempfile::{Builder, NamedTempFile, TempDir};

/// The longest error message; names and shapes in it are shortened.
const LONGEST_LINE: usize = 2000;

/// The largest number of arrays to read from a file.
const ARRAYS: usize = 20;

/// Puts all temporary files, also those of the library, into shared memory.
fn in_memory() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let folder = Path::new("/dev/shm");
        if folder.is_dir() {
            let _ = tempfile::env::override_temp_dir(folder);
        }
    });
}

/// A temporary file with these bytes and this extension, removed on drop.
pub fn file(ending: &str, bytes: &[u8]) -> NamedTempFile {
    in_memory();
    let mut file = Builder::new().suffix(ending).tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file
}

/// A temporary folder, removed on drop.
pub fn folder() -> TempDir {
    in_memory();
    tempfile::tempdir().unwrap()
}

pub fn at(path: &Path, name: Option<&str>) -> Location {
    Location { path: Some(path.to_owned()), name: name.map(str::to_owned) }
}

/// The message of an error, checked to be one line.
pub fn line(error: &Error) -> String {
    let line = error.to_string();
    assert!(!line.chars().any(char::is_control), "not one line: {line:?}");
    assert!(line.len() <= LONGEST_LINE, "{} bytes: {line}", line.len());
    line
}

/// An array that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    pub info: ArrayInfo,
    /// The elements as bits, to compare NaN; at most [`ELEMENTS`].
    pub bits: Vec<u64>,
}

/// The largest number of elements to read: in some formats, a few bytes can announce any number.
const ELEMENTS: usize = 1 << 20;

pub fn bits(values: &Values) -> Vec<u64> {
    match values {
        Values::F16(v) => v.iter().map(|x| x.to_bits().into()).collect(),
        Values::Bf16(v) => v.iter().map(|x| x.to_bits().into()).collect(),
        Values::F32(v) => v.iter().map(|x| x.to_bits().into()).collect(),
        Values::F64(v) => v.iter().map(|x| x.to_bits()).collect(),
    }
}

/// Converts the bits of an element to the bits of an `f32`.
pub fn as_f32(bits: u64, dtype: Dtype) -> u32 {
    match dtype {
        Dtype::F16 => f16::from_bits(bits as u16).to_f32(),
        Dtype::Bf16 => bf16::from_bits(bits as u16).to_f32(),
        Dtype::F32 => f32::from_bits(bits as u32),
        Dtype::F64 => f64::from_bits(bits) as f32,
    }
    .to_bits()
}

/// Decodes the elements in these bytes.
pub fn elements(bytes: &[u8], dtype: Dtype, big_endian: bool) -> Vec<u64> {
    let element = |bytes: &[u8]| {
        let shift = |bits: u64, byte: &u8| bits << 8 | u64::from(*byte);
        if big_endian { bytes.iter().fold(0, shift) } else { bytes.iter().rev().fold(0, shift) }
    };
    bytes.chunks_exact(dtype.size()).map(element).collect()
}

/// Reads an array in blocks of this size.
pub fn read_in_blocks(location: &Location, block: usize) -> Result<Array> {
    let mut reader = open(location)?;
    let info = reader.info().clone();
    let (mut all, mut values) = (Vec::new(), Values::default());
    loop {
        reader.read(block, &mut values)?;
        assert_eq!(values.dtype(), info.dtype);
        assert!(values.len() <= block);
        all.extend(bits(&values));
        if all.len() > ELEMENTS {
            all.truncate(ELEMENTS);
            return Ok(Array { info, bits: all });
        }
        if values.len() < block {
            break;
        }
    }
    // Reading past the end stays empty.
    reader.read(block, &mut values)?;
    assert!(values.is_empty(), "{} more of {info}", values.len());
    match info.elements() {
        Some(n) => assert_eq!(all.len(), n, "{info}"),
        None => assert_eq!(all.len() % info.shape[0], 0, "{info}"),
    }
    Ok(Array { info, bits: all })
}

/// Reads an array in large and in small blocks; the result or the error must be the same.
pub fn read(location: &Location) -> Result<Array> {
    let whole = read_in_blocks(location, 1 << 16);
    // A few bytes can decompress to millions; larger blocks keep that fast.
    let block = if whole.as_ref().is_ok_and(|array| array.bits.len() < 1000) { 3 } else { 997 };
    let parts = read_in_blocks(location, block);
    match (&whole, &parts) {
        (Ok(whole), Ok(parts)) => assert_eq!(whole, parts),
        (Err(whole), Err(parts)) => assert_eq!(line(whole), line(parts)),
        _ => panic!("{whole:?} in one, {parts:?} in blocks of {block}"),
    }
    whole
}

/// All listed arrays of a file, with the results of opening them.
pub fn arrays(path: &Path) -> Vec<(ArrayInfo, Result<Array>)> {
    let listed = list(path);
    let only = read(&at(path, None));
    let listed = listed.unwrap_or_else(|error| {
        line(&error);
        Vec::new()
    });
    if let Ok(only) = &only {
        assert!(listed.contains(&only.info), "{only:?} of {listed:?}");
    }
    if let [info @ ArrayInfo { name: None, .. }] = &listed[..] {
        return vec![(info.clone(), only)];
    }
    // A name refers to the first tensor of that name.
    let mut names = HashSet::new();
    let first = listed.iter().take(ARRAYS).filter(|info| names.insert(&info.name));
    let read = |info: &ArrayInfo| {
        let array = read(&at(path, info.name.as_deref()));
        match &array {
            Ok(array) => assert_eq!(array.info, *info),
            Err(Error::Request { .. }) => panic!("{array:?} of {listed:?}"),
            Err(_) => {}
        }
        (info.clone(), array)
    };
    first.map(read).collect()
}

/// Checks everything in a model whose files have `bytes` bytes in total. In a file with a graph, weights may be
/// scaled.
pub fn model(path: &Path, bytes: usize, graph: bool) {
    let (opened, candidates) = (ModelFile::open(path), heads(path));
    let chosen = load_head(path, None);
    let mut model = match opened {
        Ok(model) => model,
        Err(error) => {
            let line = line(&error);
            assert_eq!(candidates.unwrap_err().to_string(), line);
            assert_eq!(chosen.unwrap_err().to_string(), line);
            return;
        }
    };
    // A model without heads is an error, too.
    let candidates = candidates.unwrap_or_else(|error| {
        line(&error);
        Vec::new()
    });
    let tensors = model.tensors().to_vec();
    let find = |name: &str| tensors.iter().find(|tensor| tensor.name == name).unwrap();
    let size = |tensor: &TensorInfo| {
        let empty = tensor.shape.contains(&0);
        if empty { 0 } else { tensor.shape.iter().product::<usize>() }
    };
    for tensor in tensors.iter().take(ARRAYS) {
        assert!(tensor.shape.len() <= 32, "{tensor:?}");
        // A name refers to the first tensor of that name.
        let tensor = find(&tensor.name);
        match model.load(&tensor.name) {
            Ok(values) => {
                assert_eq!(values.len(), size(tensor), "{tensor:?}");
                assert!(values.len() <= bytes, "{tensor:?} in {bytes} bytes");
            }
            Err(error) => drop(line(&error)),
        }
    }
    match chosen {
        Ok(head) => {
            check_head(&head);
            let named = candidates.iter().any(|candidate| {
                (candidate.features, candidate.classes) == (head.features, head.classes)
            });
            assert!(named, "{head:?} is none of {candidates:?}");
        }
        Err(error) => drop(line(&error)),
    }
    for candidate in candidates.iter().take(ARRAYS) {
        let weight = find(&candidate.weight);
        let (features, classes) = (candidate.features, candidate.classes);
        let sides = match candidate.orientation {
            Orientation::ClassesByFeatures => [classes, features],
            Orientation::FeaturesByClasses => [features, classes],
        };
        assert_eq!(weight.shape[..2], sides, "{candidate:?}");
        assert!(features > 0 && classes > 0, "{candidate:?}");
        if let Some(bias) = &candidate.bias {
            let count = size(find(bias));
            assert!(count == classes || graph && count == 1, "{candidate:?} with {count}");
        }
        let head = match load_head(path, Some(&candidate.weight)) {
            Ok(head) => head,
            Err(error) => {
                line(&error);
                continue;
            }
        };
        check_head(&head);
        if !graph {
            let loaded = model.load(&candidate.weight).unwrap();
            for feature in 0..features {
                for class in 0..classes {
                    let place = match candidate.orientation {
                        Orientation::ClassesByFeatures => class * features + feature,
                        Orientation::FeaturesByClasses => feature * classes + class,
                    };
                    let weight = head.weights[feature * classes + class];
                    assert_eq!(weight.to_bits(), loaded[place].to_bits(), "{candidate:?}");
                }
            }
        }
    }
}

fn check_head(head: &HeadWeights) {
    assert_eq!(head.weights.len(), head.features * head.classes);
    assert!(head.bias.as_ref().is_none_or(|bias| bias.len() == head.classes));
}

/// Reads an array through a pipe.
pub fn read_piped(bytes: &[u8], name: Option<&str>, block: usize) -> Result<Array> {
    use std::os::fd::AsRawFd;

    in_memory();
    let (reader, mut writer) = io::pipe().unwrap();
    // Fits into the buffer of the pipe, so that writing does not block.
    assert!(bytes.len() <= PIPE);
    writer.write_all(bytes).unwrap();
    drop(writer);
    let path = format!("/proc/self/fd/{}", reader.as_raw_fd());
    read_in_blocks(&at(path.as_ref(), name), block)
}

/// The buffer size of a pipe.
pub const PIPE: usize = 1 << 16;
