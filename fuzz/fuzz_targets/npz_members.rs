//! Archives with valid members, invalid members, and false entries in the directory: valid members are read, false
//! entries are detected.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use shafer_data::Dtype;
use shafer_fuzz::Count;
use shafer_fuzz::bytes::{Member, npy, zip};
use shafer_fuzz::files::{arrays, at, elements, file, read};

#[derive(Arbitrary, Debug)]
struct Input {
    name: Name,
    contents: Contents,
    deflated: bool,
    lie: Lie,
}

#[derive(Arbitrary, Clone, Debug)]
enum Name {
    Usual(u8),
    Any(String),
}

impl Name {
    fn text(&self) -> String {
        const USUAL: [&str; 8] =
            ["a", "b.npy", "data.npy", "indices.npy", "indptr.npy", "format.npy", "c.npy.npy", ""];
        match self {
            Self::Usual(n) => USUAL[usize::from(*n) % USUAL.len()].to_owned(),
            Self::Any(text) => text.chars().take(300).collect(),
        }
    }
}

#[derive(Arbitrary, Debug)]
enum Contents {
    Array { fortran: bool, rows: u8, columns: u8, data: Vec<u8> },
    Header { text: String, data: Vec<u8> },
    Bytes(Vec<u8>),
}

impl Contents {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Array { fortran, rows, columns, .. } => {
                let order = if *fortran { "True" } else { "False" };
                let shape = format!("({}, {})", rows % 32, columns % 32);
                let header =
                    format!("{{'descr': '<f4', 'fortran_order': {order}, 'shape': {shape}, }}\n");
                npy(header, &self.data())
            }
            Self::Header { text, data } => npy(text.get(..60_000).unwrap_or(text), data),
            Self::Bytes(bytes) => bytes.clone(),
        }
    }

    fn data(&self) -> Vec<u8> {
        let Self::Array { rows, columns, data, .. } = self else { return Vec::new() };
        let size = usize::from(rows % 32) * usize::from(columns % 32) * 4;
        let one = [1];
        let data = if data.is_empty() { &one[..] } else { data };
        data.iter().copied().cycle().take(size).collect()
    }
}

/// A false entry in the directory.
#[derive(Arbitrary, Debug)]
enum Lie {
    None,
    Crc(u32),
    Size(Count),
    Method(u16),
    Flags(u16),
    Packed(Vec<u8>),
    Cut(u8),
}

fuzz_target!(|inputs: Vec<Input>| {
    let members: Vec<(String, Vec<u8>)> =
        inputs.iter().map(|input| (input.name.text(), input.contents.bytes())).collect();
    let archived = inputs.iter().zip(&members).map(|(input, (name, contents))| {
        let make = if input.deflated { Member::deflated } else { Member::stored };
        let mut member = make(name, contents);
        match &input.lie {
            Lie::None => {}
            Lie::Crc(crc) => member.crc = *crc,
            Lie::Size(size) => member.size = size.0 as u64,
            Lie::Method(method) => member.method = *method,
            Lie::Flags(flags) => member.flags = *flags,
            Lie::Packed(bytes) => member.packed = bytes.clone(),
            Lie::Cut(n) => {
                let left = member.packed.len().saturating_sub(usize::from(*n));
                member.packed.truncate(left);
            }
        }
        member
    });
    let file = file(".npz", &zip(&archived.collect::<Vec<_>>()));
    arrays(file.path());
    // With a single member, the result is known.
    let ([input], [(_, contents)]) = (&inputs[..], &members[..]) else { return };
    let Contents::Array { fortran, rows, columns, .. } = input.contents else { return };
    let only = read(&at(file.path(), None));
    let told = match &input.lie {
        Lie::None => true,
        Lie::Crc(crc) => *crc == crc32fast::hash(contents),
        Lie::Size(size) => size.0 == contents.len(),
        _ => return,
    };
    assert_eq!(only.is_ok(), told, "{only:?}");
    let Ok(only) = only else { return };
    let (rows, columns) = (usize::from(rows % 32), usize::from(columns % 32));
    assert_eq!(only.info.shape, [rows, columns]);
    let stored = elements(&input.contents.data(), Dtype::F32, false);
    let place = |row, column| if fortran { column * rows + row } else { row * columns + column };
    let expected = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
    assert!(only.bits.iter().copied().eq(expected.map(|(r, c)| stored[place(r, c)])));
});
