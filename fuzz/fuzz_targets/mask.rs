//! Masks of any type, in C and Fortran order and in every format: values of 0 and 1 are read, and the error names
//! the first other value.
#![no_main]

use arbitrary::Arbitrary;
use half::f16;
use libfuzzer_sys::fuzz_target;
use shafer_data::{Location, Result, open_mask};
use shafer_fuzz::bytes::{Member, npy, safetensors, zip};
use shafer_fuzz::files::{at, file, line};

#[derive(Arbitrary, Debug)]
struct Input {
    of: Of,
    fortran: bool,
    rows: u8,
    columns: u8,
    values: Vec<u8>,
    block: u8,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Of {
    Bool,
    U8,
    I8,
    F16,
    F32,
    F64,
}

impl Of {
    fn bytes(self, value: i8) -> Vec<u8> {
        match self {
            Self::Bool | Self::U8 | Self::I8 => value.to_le_bytes().to_vec(),
            Self::F16 => f16::from_f64(value.into()).to_le_bytes().to_vec(),
            Self::F32 => f32::from(value).to_le_bytes().to_vec(),
            Self::F64 => f64::from(value).to_le_bytes().to_vec(),
        }
    }

    /// The type in NumPy and in safetensors.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Bool => ("|b1", "BOOL"),
            Self::U8 => ("|u1", "U8"),
            Self::I8 => ("|i1", "I8"),
            Self::F16 => ("<f2", "F16"),
            Self::F32 => ("<f4", "F32"),
            Self::F64 => ("<f8", "F64"),
        }
    }
}

/// All values, read in blocks.
fn read(location: &Location, count: usize, block: usize) -> Result<Vec<bool>> {
    let mut mask = open_mask(location)?;
    let (mut all, mut some) = (Vec::new(), Vec::new());
    while all.len() < count {
        let n = block.min(count - all.len());
        mask.read(n, &mut some)?;
        assert_eq!(some.len(), n);
        all.extend_from_slice(&some);
    }
    mask.finish()?;
    Ok(all)
}

fuzz_target!(|input: Input| {
    let (rows, columns) = (usize::from(input.rows % 40), usize::from(input.columns % 40));
    let count = rows * columns;
    // Mostly 0 and 1.
    let value = |byte: &u8| match byte {
        0..250 => (byte % 2) as i8,
        other => *other as i8,
    };
    let values: Vec<i8> = input.values.iter().map(value).chain([1]).cycle().take(count).collect();
    let (descr, name) = input.of.names();
    let stored = |values: Vec<i8>| -> Vec<u8> {
        values.into_iter().flat_map(|value| input.of.bytes(value)).collect()
    };
    let turned = (0..count).map(|i| values[i % rows * columns + i / rows]).collect();
    let data = stored(if input.fortran { turned } else { values.clone() });
    let order = if input.fortran { "True" } else { "False" };
    let header =
        format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': ({rows}, {columns})}}");
    let array = npy(header, &data);
    let plain = stored(values.clone());
    let length = plain.len();
    let header = format!(
        r#"{{"a":{{"dtype":"{name}","shape":[{rows},{columns}],"data_offsets":[0,{length}]}}}}"#
    );
    let tensors = [safetensors(header, 0), plain].concat();
    for (ending, bytes) in [
        (".npz", zip(&[Member::deflated("a.npy", &array)])),
        (".npz", zip(&[Member::stored("a.npy", &array)])),
        (".npy", array),
        (".safetensors", tensors),
    ] {
        let file = file(ending, &bytes);
        let location = at(file.path(), None);
        let mask = read(&location, count, usize::from(input.block) + 1);
        let wrong = values.iter().position(|value| ![0, 1].contains(value));
        match (mask, wrong) {
            (Ok(mask), None) => assert!(values.iter().map(|&value| value == 1).eq(mask)),
            (Err(error), Some(wrong)) => {
                let place = format!("({}, {})", wrong / columns, wrong % columns);
                let line = line(&error);
                assert!(line.contains(&format!("the value at {place} is ")), "{line}");
            }
            (mask, wrong) => panic!("{mask:?} of {wrong:?}"),
        }
    }
});
