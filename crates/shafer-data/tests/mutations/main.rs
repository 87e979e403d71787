//! Mutation tests: damages files in one place. Readers must not panic or use much memory, and the numbers of a
//! damaged file that is accepted must match those of an independent reader.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../bytes/mod.rs"]
mod bytes;
#[path = "../copies/mod.rs"]
mod copies;
mod oracle;

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::types::Float32Type;
use arrow_array::{ArrayRef, Float32Array, ListArray, RecordBatch};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use bytes::{Member, npy, zip};
use oracle::Numbers;
use shafer_data::{Dtype, Location, Values, create, load_head, open};

/// The mutations per file, of 17 files. `SHAFER_MUTATIONS` overrides it, and `SHAFER_SEED` chooses others.
const MUTATIONS: u64 = 200;

/// More than any of these files needs, and far less than their headers can claim.
const MOST_MEMORY: u64 = 400_000_000;

/// A file, its reader, and its oracle.
struct Case {
    name: String,
    bytes: Vec<u8>,
    read: fn(&Path) -> Result<Numbers, String>,
    oracle: Oracle,
}

enum Oracle {
    /// The format has checksums: the numbers must be those of the undamaged file.
    Checksums,
    /// An independent reader: whether the damaged file contains these numbers.
    Reader(fn(&[u8], &Numbers) -> bool),
}

/// Weyl sequence and mixer of `SplitMix64`.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }

    /// A mutation, of one of eight kinds.
    fn damage(&mut self, good: &[u8]) -> Vec<u8> {
        let mut bytes = good.to_vec();
        let at = self.below(bytes.len());
        let length = 1 + self.below(16);
        let end = bytes.len().min(at + length);
        match self.below(8) {
            0 => bytes[at] ^= 1 << self.below(8),
            1 => bytes[at] = self.below(256) as u8,
            2 => bytes[at..end].iter_mut().for_each(|byte| *byte = self.below(256) as u8),
            3 => bytes[at..end].fill(0),
            4 => bytes[at..end].fill(0xff),
            5 => bytes.truncate(at),
            6 => drop(bytes.splice(at..at, (0..length).map(|_| self.below(256) as u8))),
            _ => {
                let chunk = bytes[at..end].to_vec();
                let to = self.below(bytes.len());
                drop(bytes.splice(to..to, chunk));
            }
        }
        bytes
    }
}

/// The array of a file, or `b` of an archive of two.
fn read_array(path: &Path) -> Result<Numbers, String> {
    let archive = path.extension().is_some_and(|ending| ending == "npz");
    let name = archive.then(|| "b".to_owned());
    let mut reader = open(&Location { path: Some(path.to_owned()), name }).map_err(text)?;
    let (mut values, mut block) = (Vec::new(), Values::default());
    loop {
        reader.read(7, &mut block).map_err(text)?;
        if block.is_empty() {
            break;
        }
        match &block {
            Values::F16(v) => values.extend(v.iter().map(|v| v.to_f64())),
            Values::Bf16(v) => values.extend(v.iter().map(|v| v.to_f64())),
            Values::F32(v) => values.extend(v.iter().map(|&v| f64::from(v))),
            Values::F64(v) => values.extend(v),
        }
    }
    let info = reader.info();
    let rows = info.open_ended.then(|| values.len() / info.shape[0].max(1));
    let shape = rows.into_iter().chain(info.shape.iter().copied()).collect();
    Ok(Numbers { shape, values, bias: None })
}

/// The weights of a model's head and its bias.
fn read_head(path: &Path) -> Result<Numbers, String> {
    let head = load_head(path, None).map_err(text)?;
    let wide = |values: Vec<f32>| values.into_iter().map(f64::from).collect();
    let shape = vec![head.features, head.classes];
    Ok(Numbers { shape, values: wide(head.weights), bias: head.bias.map(wide) })
}

#[allow(clippy::needless_pass_by_value, reason = "it maps errors")]
fn text(error: shafer_data::Error) -> String {
    let text = error.to_string();
    assert!(!text.contains('\n') && text.len() < 2000, "not a line: {text}");
    text
}

fn logits() -> Vec<f32> {
    (0..30).map(|i| (i * 7 % 30) as f32 / 4.0 - 3.0).collect()
}

fn npy_of(descr: &str, order: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': (6, 5), }}\n");
    npy(header, data)
}

fn npys() -> [Vec<u8>; 3] {
    let single: Vec<u8> = logits().iter().flat_map(|v| v.to_le_bytes()).collect();
    let double: Vec<u8> = logits().iter().flat_map(|&v| f64::from(v).to_be_bytes()).collect();
    let half = logits().into_iter().flat_map(|v| half::f16::from_f32(v).to_le_bytes());
    [
        npy_of("<f4", "False", &single),
        npy_of(">f8", "True", &double),
        npy_of("<f2", "False", &half.collect::<Vec<u8>>()),
    ]
}

fn tables() -> [RecordBatch; 2] {
    let logits = logits();
    let rows = logits.chunks(5).map(|row| Some(row.iter().copied().map(Some)));
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(rows));
    let columns = (0..5).map(|column| {
        let numbers = logits.iter().copied().skip(column).step_by(5);
        (format!("c{column}"), Arc::new(Float32Array::from_iter_values(numbers)) as ArrayRef)
    });
    [
        RecordBatch::try_from_iter([("logits", lists)]).unwrap(),
        RecordBatch::try_from_iter(columns).unwrap(),
    ]
}

fn arrow_file(batch: &RecordBatch) -> Vec<u8> {
    let mut writer = FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(batch).unwrap();
    writer.into_inner().unwrap()
}

fn arrow_stream(batch: &RecordBatch) -> Vec<u8> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(batch).unwrap();
    writer.write(batch).unwrap();
    writer.into_inner().unwrap()
}

/// A file written by [`create`].
fn parquet() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    let mut writer = create(&path, 5, Dtype::F32).unwrap();
    let all: Vec<f32> = logits().iter().map(|v| v + 10.0).collect();
    writer.write_dense(all[..].into()).unwrap();
    writer.finish().unwrap();
    fs::read(path).unwrap()
}

fn safetensors() -> Vec<u8> {
    let header = r#"{"logits":{"dtype":"F32","shape":[6,5],"data_offsets":[0,120]}}"#;
    let mut bytes = bytes::safetensors(header, 0);
    bytes.extend(logits().iter().flat_map(|v| v.to_le_bytes()));
    bytes
}

fn csv() -> Vec<u8> {
    let mut text = "a,b,c,d,e\n".to_owned();
    for row in logits().chunks(5) {
        let row: Vec<String> = row.iter().map(f32::to_string).collect();
        text += &(row.join(",") + "\n");
    }
    text.into_bytes()
}

fn fixture(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    fs::read(folder.join(name)).unwrap()
}

fn arrays() -> Vec<Case> {
    let case = |name: &str, bytes, oracle| Case {
        name: name.to_owned(),
        bytes,
        read: read_array as fn(&Path) -> _,
        oracle,
    };
    let [plain, fortran, half] = npys();
    let stored = zip(&[Member::deflated("a.npy", &half), Member::stored("b.npy", &fortran)]);
    let deflated = zip(&[Member::stored("a.npy", &half), Member::deflated("b.npy", &plain)]);
    let [lists, columns] = tables();
    vec![
        case("plain.npy", plain, Oracle::Reader(oracle::npy)),
        case("fortran.npy", fortran, Oracle::Reader(oracle::npy)),
        case("half.npy", half, Oracle::Reader(oracle::npy)),
        case("deflated.npz", deflated, Oracle::Checksums),
        case("stored.npz", stored, Oracle::Checksums),
        case("a.safetensors", safetensors(), Oracle::Reader(oracle::safetensors)),
        case("a.csv", csv(), Oracle::Reader(oracle::csv)),
        case("written.parquet", parquet(), Oracle::Reader(oracle::parquet)),
        case("lists.parquet", fixture("tables/list-none.parquet"), Oracle::Reader(oracle::parquet)),
        case("lists.arrow", arrow_file(&lists), Oracle::Reader(oracle::arrow)),
        case("columns.arrow", arrow_file(&columns), Oracle::Reader(oracle::arrow)),
        case("lists.arrows", arrow_stream(&lists), Oracle::Reader(oracle::arrow)),
    ]
}

fn models() -> Vec<Case> {
    let case = |name: &str, oracle| Case {
        name: name.to_owned(),
        bytes: fixture(name),
        read: read_head as fn(&Path) -> _,
        oracle,
    };
    vec![
        case("tiny.pt", Oracle::Checksums),
        case("module.pt", Oracle::Checksums),
        case("tiny.safetensors", Oracle::Reader(oracle::safetensors)),
        case("tiny.onnx", Oracle::Reader(oracle::onnx)),
        case("matmul.onnx", Oracle::Reader(oracle::onnx)),
    ]
}

/// A number in an environment variable.
fn variable(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.map_or(default, |n| n.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// Keeps a damaged file and the numbers that were read, for `tests/interop/mutations.py`, which reads it by pyarrow.
fn keep(name: &str, bytes: &[u8], found: &Numbers) {
    let Some(folder) = std::env::var_os("SHAFER_MUTATIONS_KEEP").map(PathBuf::from) else { return };
    let numbers: Vec<u8> = found.values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let shape = &found.shape;
    let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape:?}, }}\n");
    let header = header.replace('[', "(").replace(']', ",)");
    fs::write(folder.join(name), bytes).unwrap();
    fs::write(folder.join(format!("{name}.npy")), npy(header, &numbers)).unwrap();
}

/// Damages each file many times, and returns all failures.
fn findings(cases: Vec<Case>) -> Vec<String> {
    let count = variable("SHAFER_MUTATIONS", MUTATIONS);
    let seed = variable("SHAFER_SEED", 0) << 40;
    let folder = tempfile::tempdir().unwrap();
    let mut findings = Vec::new();
    for case in cases {
        let path = folder.path().join(&case.name);
        let read = |bytes: &[u8]| {
            // Some file systems flush a file to disk when it is overwritten.
            let _ = fs::remove_file(&path);
            fs::write(&path, bytes).unwrap();
            catch_unwind(|| (case.read)(&path))
        };
        let good = read(&case.bytes).unwrap().unwrap();
        // The oracle accepts the undamaged file, and rejects other numbers.
        if let Oracle::Reader(holds) = case.oracle {
            assert!(holds(&case.bytes, &good), "{}", case.name);
            let mut other = good.clone();
            other.values[3] += 0.5;
            assert!(!holds(&case.bytes, &other), "{}", case.name);
        }
        let (mut accepted, mut changed) = (0, 0);
        for number in 0..count {
            let mut random = Random(seed | number << 8 | case.name.len() as u64);
            let bytes = random.damage(&case.bytes);
            let problem = match read(&bytes) {
                Err(_) => "a panic",
                Ok(Err(_)) => continue,
                Ok(Ok(found)) => {
                    accepted += 1;
                    if found.same(&good) {
                        continue;
                    }
                    changed += 1;
                    keep(&format!("{number}-{}", case.name), &bytes, &found);
                    match case.oracle {
                        // Other readers panic on unsupported input.
                        Oracle::Reader(holds)
                            if catch_unwind(|| holds(&bytes, &found)).is_ok_and(|holds| holds) =>
                        {
                            continue;
                        }
                        Oracle::Reader(_) => "numbers that another reader does not find",
                        Oracle::Checksums => "other numbers in spite of checksums",
                    }
                }
            };
            let keep = std::env::temp_dir().join(format!("mutation-{number}-{}", case.name));
            findings.push(format!("{} {number}: {problem}; {}", case.name, keep.display()));
            fs::write(keep, &bytes).unwrap();
        }
        // Enough mutations are accepted, and enough are refused.
        assert!(accepted > 0 && accepted < count, "{}: {accepted} of {count}", case.name);
        if matches!(case.oracle, Oracle::Reader(_)) {
            assert!(changed > 0, "{}: no damage changed a number", case.name);
        }
    }
    findings
}

#[test]
fn damaged_arrays() {
    let findings = findings(arrays());
    assert!(findings.is_empty(), "{}", findings.join("\n"));
    check_memory();
}

#[test]
fn damaged_models() {
    let findings = findings(models());
    assert!(findings.is_empty(), "{}", findings.join("\n"));
    check_memory();
}

/// Damaged tables with columns of many types: what is still read can be copied.
#[test]
fn damaged_tables() {
    let count = variable("SHAFER_MUTATIONS", MUTATIONS);
    let seed = variable("SHAFER_SEED", 0) << 40;
    let folder = tempfile::tempdir().unwrap();
    let mut findings = Vec::new();
    for name in
        ["pages.parquet", "polars.parquet", "polars.arrow", "duckdb.parquet", "spark.parquet"]
    {
        let good = fixture(&format!("tables/{name}"));
        let (path, copy) = (folder.path().join(name), folder.path().join("copy"));
        let read = |bytes: &[u8]| {
            let (_, _) = (fs::remove_file(&path), fs::remove_file(&copy));
            fs::write(&path, bytes).unwrap();
            catch_unwind(|| copies::check(&path, &copy).map_err(text))
        };
        read(&good).unwrap().unwrap();
        let mut accepted = 0;
        for number in 0..count {
            let mut random = Random(seed | number << 8 | name.len() as u64);
            let bytes = random.damage(&good);
            if let Ok(done) = read(&bytes) {
                accepted += u64::from(done.is_ok());
            } else {
                let keep = std::env::temp_dir().join(format!("mutation-{number}-{name}"));
                findings.push(format!("{name} {number}: {}", keep.display()));
                fs::write(keep, &bytes).unwrap();
            }
        }
        assert!(accepted > 0 && accepted < count, "{name}: {accepted} of {count}");
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
    check_memory();
}

fn check_memory() {
    if let Some(bytes) = shafer_testing::peak_memory() {
        assert!(bytes < MOST_MEMORY, "{bytes} bytes");
    }
}
