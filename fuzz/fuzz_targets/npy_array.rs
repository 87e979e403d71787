//! Valid NumPy arrays in C and Fortran order, in a file, a pipe, and stored and deflated archives. Every element must
//! be where a plain loop over the indices finds it.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use shafer_data::Dtype;
use shafer_fuzz::Type;
use shafer_fuzz::bytes::{Member, zip};
use shafer_fuzz::files::{Array, PIPE, at, elements, file, read, read_in_blocks, read_piped};

#[derive(Arbitrary, Debug)]
struct Input {
    of: Type,
    big_endian: bool,
    fortran: bool,
    version: u8,
    shape: Vec<u8>,
    /// The elements, repeated as needed.
    data: Vec<u8>,
    style: [bool; 6],
    block: u8,
}

impl Input {
    fn dtype(&self) -> Dtype {
        self.of.dtype()
    }

    /// Up to seven axes and a thousand elements.
    fn shape(&self) -> Vec<usize> {
        let mut room = 1000;
        let axis = |byte: &u8| {
            let n = match byte {
                200.. => usize::from(byte - 200) * 7,
                _ => usize::from(byte % 6),
            }
            .min(room);
            room /= n.max(1);
            n
        };
        self.shape.iter().take(7).map(axis).collect()
    }

    fn data(&self) -> Vec<u8> {
        let size = self.shape().iter().product::<usize>() * self.dtype().size();
        let one = [0x3c];
        let data = if self.data.is_empty() { &one[..] } else { &self.data };
        data.iter().copied().cycle().take(size).collect()
    }

    fn bytes(&self) -> Vec<u8> {
        let [quotes, long, spaces, reversed, comma, named] = self.style;
        let kind = match self.dtype() {
            Dtype::F16 => "f2",
            Dtype::F32 => "f4",
            Dtype::F64 => "f8",
            Dtype::Bf16 if named => "bfloat16",
            Dtype::Bf16 => "V2",
        };
        let axes: Vec<String> =
            self.shape().iter().map(|n| format!("{n}{}", if long { "L" } else { "" })).collect();
        let single = if axes.len() == 1 || comma && !axes.is_empty() { "," } else { "" };
        let mut keys = [
            format!("'descr': '{}{kind}'", if self.big_endian { '>' } else { '<' }),
            format!("'fortran_order': {}", if self.fortran { "True" } else { "False" }),
            format!("'shape': ({}{single})", axes.join(", ")),
        ];
        if reversed {
            keys.reverse();
        }
        let mut text = format!("{{{}{}}}", keys.join(", "), if comma { ", " } else { "" });
        if quotes {
            text = text.replace('\'', "\"");
        }
        if spaces {
            text = text.replace(' ', "  ") + " \n";
        }
        let version = self.version % 3 + 1;
        let mut bytes = [b"\x93NUMPY", &[version, 0][..]].concat();
        if version == 1 {
            bytes.extend((text.len() as u16).to_le_bytes());
        } else {
            bytes.extend((text.len() as u32).to_le_bytes());
        }
        bytes.extend(text.as_bytes());
        bytes.extend(self.data());
        bytes
    }

    /// The elements in C order.
    fn expected(&self) -> Vec<u64> {
        let stored = elements(&self.data(), self.dtype(), self.big_endian);
        let shape = self.shape();
        let place = |c: usize| {
            let (mut left, mut place, mut stride) = (c, 0, stored.len());
            for &n in shape.iter().rev() {
                stride /= n;
                place += left % n * stride;
                left /= n;
            }
            place
        };
        (0..stored.len()).map(|c| stored[if self.fortran { place(c) } else { c }]).collect()
    }
}

fuzz_target!(|input: Input| {
    let bytes = input.bytes();
    let expected = input.expected();
    let check = |array: Array| {
        assert_eq!((array.info.dtype, array.info.shape), (input.dtype(), input.shape()));
        assert_eq!(array.bits, expected);
    };
    let bfloat16 = (input.dtype() == Dtype::Bf16).then_some("bfloat16");
    let alone = file(".npy", &bytes);
    check(read(&at(alone.path(), bfloat16)).unwrap());
    if bytes.len() <= PIPE {
        check(read_piped(&bytes, bfloat16, usize::from(input.block) + 1).unwrap());
    }
    for member in [Member::stored("a.npy", &bytes), Member::deflated("a.npy", &bytes)] {
        let archive = file(".npz", &zip(&[member]));
        check(read_in_blocks(&at(archive.path(), bfloat16), 1 << 16).unwrap());
        let name = if bfloat16.is_some() { "a:bfloat16" } else { "a" };
        let block = usize::from(input.block) + 1;
        check(read_in_blocks(&at(archive.path(), Some(name)), block).unwrap());
    }
});
