//! Round trips through every writer. Inconsistent rows are refused and leave the file unchanged.
#![no_main]

use std::path::Path;

use arbitrary::Arbitrary;
use half::{bf16, f16};
use libfuzzer_sys::fuzz_target;
use shafer_data::{Dtype, ModelFile, SparseRows, Values, create};
use shafer_fuzz::files::{as_f32, at, bits, folder, line, read};
use shafer_fuzz::laws::Bits;
use shafer_fuzz::{Number, Type};

#[derive(Arbitrary, Debug)]
struct Input {
    of: Type,
    classes: u8,
    blocks: Vec<Block>,
}

#[derive(Arbitrary, Debug)]
enum Block {
    /// Valid rows: classes and values.
    Sparse(Vec<Vec<(u8, Number)>>),
    /// Dense rows, and a remainder that makes no complete row.
    Dense(Vec<Number>, bool),
    /// Unchecked parts.
    Parts { indptr: Vec<u8>, indices: Vec<u8>, values: Vec<Number> },
}

/// The accepted rows: classes and the bits of their values.
type Rows = Vec<Vec<(u32, u64)>>;

fuzz_target!(|input: Input| {
    let dtype = input.of.dtype();
    let classes = usize::from(input.classes % 50);
    let folder = folder();
    for ending in ["npy", "npz", "safetensors", "csv", "parquet"] {
        let path = folder.path().join(format!("a.{ending}"));
        let writer = create(&path, classes, dtype);
        assert_eq!(writer.is_ok(), classes > 0);
        let Ok(mut writer) = writer else { return };
        let mut rows = Rows::new();
        for block in &input.blocks {
            let (indptr, indices, numbers) = block.parts(classes);
            let values = values(&numbers, dtype);
            let bits = bits(&values);
            if let Block::Dense(..) = block {
                let taken = writer.write_dense(values.view());
                assert_eq!(taken.is_ok(), numbers.len() % classes == 0, "{taken:?}");
                if let Err(error) = taken {
                    line(&error);
                    continue;
                }
                // Sparse files drop zeros; dense files keep their signs.
                let kept = |(class, bits): (usize, &u64)| {
                    let zero = bits << (65 - 8 * dtype.size()) == 0;
                    (ending == "npy" || !zero).then_some((class as u32, *bits))
                };
                rows.extend(
                    bits.chunks(classes)
                        .map(|row| row.iter().enumerate().filter_map(kept).collect()),
                );
                continue;
            }
            let taken = writer.write(SparseRows::new(&indptr, &indices, values.view()));
            let fit = indptr.first() == Some(&0)
                && indptr.is_sorted()
                && indptr.last() == Some(&indices.len())
                && indices.len() == bits.len()
                && indices.iter().all(|&class| (class as usize) < classes);
            assert_eq!(taken.is_ok(), fit, "{taken:?}");
            if let Err(error) = taken {
                line(&error);
                continue;
            }
            let pairs: Vec<(u32, u64)> = indices.into_iter().zip(bits).collect();
            rows.extend(indptr.windows(2).map(|ends| pairs[ends[0]..ends[1]].to_vec()));
        }
        writer.finish().unwrap();
        match ending {
            "npy" => check_npy(&path, classes, dtype, &rows),
            "csv" => check_csv(&path, dtype, &rows),
            "parquet" => check_parquet(&path, dtype, &rows),
            _ => check_values(&path, ending, dtype, &rows),
        }
    }
    assert_eq!(folder.path().read_dir().unwrap().count(), 5, "something is left beside the files");
});

impl Block {
    fn parts(&self, classes: usize) -> (Vec<usize>, Vec<u32>, Vec<Number>) {
        match self {
            Self::Sparse(rows) => {
                let mut ends = vec![0];
                let (mut indices, mut values) = (Vec::new(), Vec::new());
                for row in rows {
                    for &(class, value) in row {
                        indices.push(u32::from(class) % classes as u32);
                        values.push(value);
                    }
                    ends.push(indices.len());
                }
                (ends, indices, values)
            }
            Self::Dense(values, whole) => {
                let mut values = values.clone();
                if *whole {
                    values.truncate(values.len() / classes * classes);
                }
                (Vec::new(), Vec::new(), values)
            }
            Self::Parts { indptr, indices, values } => {
                let wide = |bytes: &[u8]| bytes.iter().map(|&n| u32::from(n)).collect();
                (indptr.iter().map(|&n| n.into()).collect(), wide(indices), values.clone())
            }
        }
    }
}

fn values(numbers: &[Number], dtype: Dtype) -> Values {
    fn all<E: Bits>(numbers: &[Number]) -> Vec<E> {
        numbers.iter().map(|number| number.get()).collect()
    }
    match dtype {
        Dtype::F16 => Values::F16(all(numbers)),
        Dtype::Bf16 => Values::Bf16(all(numbers)),
        Dtype::F32 => Values::F32(all(numbers)),
        Dtype::F64 => Values::F64(all(numbers)),
    }
}

fn check_npy(path: &Path, classes: usize, dtype: Dtype, rows: &Rows) {
    let array = read(&at(path, None)).unwrap();
    assert_eq!(array.info.shape, [rows.len(), classes]);
    let mut expected = vec![0; rows.len() * classes];
    for (row, kept) in rows.iter().enumerate() {
        for &(class, bits) in kept {
            // NumPy has no bf16.
            let wide = dtype == Dtype::Bf16;
            let bits = if wide { as_f32(bits, dtype).into() } else { bits };
            expected[row * classes + class as usize] = bits;
        }
    }
    assert_eq!(array.bits, expected);
}

fn check_csv(path: &Path, dtype: Dtype, rows: &Rows) {
    let text = std::fs::read_to_string(path).unwrap();
    let fields = text.lines().skip(1).flat_map(|line| line.split(','));
    let numbers: Vec<f64> = fields.map(|field| field.parse().unwrap()).collect();
    let kept = rows.iter().enumerate().flat_map(|(row, kept)| kept.iter().map(move |k| (row, k)));
    let expected: Vec<(usize, u32, u64)> =
        kept.map(|(row, &(class, bits))| (row, class, bits)).collect();
    assert_eq!(numbers.len(), expected.len() * 3);
    for (found, (row, class, bits)) in numbers.chunks(3).zip(expected) {
        let [found_row, found_class, value] = [0, 1, 2].map(|i| found[i]);
        assert_eq!((found_row, found_class), (row as f64, f64::from(class)));
        let (same, nan) = match dtype {
            Dtype::F16 => (
                f16::from_f64(value).to_bits() == bits as u16,
                f16::from_bits(bits as u16).is_nan(),
            ),
            Dtype::Bf16 => {
                let own = bf16::from_bits(bits as u16);
                (bf16::from_f64(value).to_bits() == bits as u16, own.is_nan())
            }
            Dtype::F32 => {
                ((value as f32).to_bits() == bits as u32, f32::from_bits(bits as u32).is_nan())
            }
            Dtype::F64 => (value.to_bits() == bits, f64::from_bits(bits).is_nan()),
        };
        assert!(same || nan && value.is_nan(), "{value} of {bits:#x}");
    }
}

/// Lists are read as rows if they have equal lengths.
fn check_parquet(path: &Path, dtype: Dtype, rows: &Rows) {
    let array = read(&at(path, Some("values")));
    let length = rows.first().map_or(0, Vec::len);
    let even = rows.is_empty() || length > 0 && rows.iter().all(|row| row.len() == length);
    assert_eq!(array.is_ok(), even, "{array:?} of {rows:?}");
    let Ok(array) = array else { return };
    assert_eq!(array.info.shape, [rows.len(), length]);
    // Tables have no bf16.
    let wide = dtype == Dtype::Bf16;
    let expected =
        rows.iter().flatten().map(|&(_, b)| if wide { as_f32(b, dtype).into() } else { b });
    assert!(array.bits.iter().copied().eq(expected), "{array:?} of {rows:?}");
}

/// Of the tensors of a sparse matrix, only the values are read as an array.
fn check_values(path: &Path, ending: &str, dtype: Dtype, rows: &Rows) {
    let npz = ending == "npz";
    let name = if npz { "data" } else { "values" };
    let array = read(&at(path, Some(name))).unwrap();
    let wide = npz && dtype != Dtype::F64;
    let expected =
        rows.iter().flatten().map(|&(_, b)| if wide { as_f32(b, dtype).into() } else { b });
    assert!(array.bits.iter().copied().eq(expected), "{array:?} of {rows:?}");
    if !npz {
        let model = ModelFile::open(path).unwrap();
        let mut shapes: Vec<_> =
            model.tensors().iter().map(|tensor| (&tensor.name[..], tensor.shape[0])).collect();
        shapes.sort_unstable();
        let n = array.bits.len();
        assert_eq!(shapes, [("indices", n), ("indptr", rows.len() + 1), ("values", n)]);
    }
}
