//! Column pages with a correct footer, made of arbitrary bytes or of headers, levels and values that may match. Plain
//! values that match are read back exactly.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use shafer_data::Dtype;
use shafer_fuzz::files::{arrays, elements, file};
use shafer_fuzz::parquet::{Thrift, parquet};

#[derive(Arbitrary, Debug)]
struct Input {
    of: Of,
    optional: bool,
    list: bool,
    codec: u8,
    rows: u8,
    pages: Pages,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Of {
    F16,
    F32,
    F64,
}

#[derive(Arbitrary, Debug)]
enum Pages {
    Bytes(Vec<u8>),
    Made(Vec<Page>),
}

#[derive(Arbitrary, Debug)]
struct Page {
    kind: Kind,
    encoding: u8,
    /// The number of values; `None` for as many as the bytes hold.
    values: Option<u8>,
    repetition: Vec<u8>,
    definition: Vec<u8>,
    data: Vec<u8>,
    /// The uncompressed size, if it differs from the page.
    unpacked: Option<u16>,
    crc: Option<bool>,
}

#[derive(Arbitrary, Clone, Copy, Debug, PartialEq)]
enum Kind {
    Dictionary,
    First,
    Second { is_packed: bool },
}

const PLAIN: i64 = 0;

impl Page {
    fn encoding(&self) -> i64 {
        // PLAIN, PLAIN_DICTIONARY, RLE, RLE_DICTIONARY, BYTE_STREAM_SPLIT, and others.
        [PLAIN, 2, 3, 8, 9, PLAIN, PLAIN, 5][usize::from(self.encoding) % 8]
    }

    fn bytes(&self, size: usize, input: &Input) -> Vec<u8> {
        let mut contents = Vec::new();
        for (levels, there) in
            [(&self.repetition, input.list), (&self.definition, input.optional || input.list)]
        {
            match self.kind {
                Kind::First if there => {
                    contents.extend((levels.len() as u32).to_le_bytes());
                    contents.extend(levels);
                }
                Kind::Second { .. } => contents.extend(levels),
                _ => {}
            }
        }
        contents.extend(&self.data);
        let n = |n: usize| n as i64;
        let values = self.values.map_or(n(self.data.len() / size), i64::from);
        let encoding = self.encoding();
        let mut header = Thrift::default();
        let kind = match self.kind {
            Kind::First => 0,
            Kind::Dictionary => 2,
            Kind::Second { .. } => 3,
        };
        header.i32(1, kind);
        header.i32(2, self.unpacked.map_or(n(contents.len()), i64::from));
        header.i32(3, n(contents.len()));
        if let Some(right) = self.crc {
            header.i32(4, i64::from(crc32fast::hash(&contents) as i32) + i64::from(!right));
        }
        let mut fields = Thrift::default();
        fields.i32(1, values);
        let place = match self.kind {
            Kind::Dictionary => {
                fields.i32(2, encoding);
                7
            }
            Kind::First => {
                // Levels are RLE.
                for (field, encoding) in [(2, encoding), (3, 3), (4, 3)] {
                    fields.i32(field, encoding);
                }
                5
            }
            Kind::Second { is_packed } => {
                let (repetition, definition) = (n(self.repetition.len()), n(self.definition.len()));
                let lengths =
                    [(2, 0), (3, values), (4, encoding), (5, definition), (6, repetition)];
                for (field, length) in lengths {
                    fields.i32(field, length);
                }
                fields.boolean(7, is_packed);
                8
            }
        };
        header.structure(place, fields);
        [header.end(), contents].concat()
    }
}

impl Input {
    fn dtype(&self) -> Dtype {
        match self.of {
            Of::F16 => Dtype::F16,
            Of::F32 => Dtype::F32,
            Of::F64 => Dtype::F64,
        }
    }

    /// The footer of a file with a single column, given the size of its pages.
    fn footer(&self, pages: usize) -> Vec<u8> {
        let mut root = Thrift::default();
        root.binary(4, b"root");
        root.i32(5, 1);
        let mut elements = vec![root];
        let mut leaf = Thrift::default();
        leaf.i32(
            1,
            match self.of {
                Of::F16 => 7,
                Of::F32 => 4,
                Of::F64 => 5,
            },
        );
        leaf.i32(2, 2);
        leaf.i32(3, i64::from(self.optional));
        leaf.binary(4, b"x");
        if matches!(self.of, Of::F16) {
            let mut half = Thrift::default();
            half.structure(15, Thrift::default());
            leaf.structure(10, half);
        }
        if self.list {
            // Both the list and its elements are required.
            for repetition in [0, 2] {
                let mut level = Thrift::default();
                level.i32(3, repetition);
                level.binary(4, b"x");
                level.i32(5, 1);
                elements.push(level);
            }
        }
        elements.push(leaf);
        let mut column = Thrift::default();
        column.i32(
            1,
            match self.of {
                Of::F16 => 7,
                Of::F32 => 4,
                Of::F64 => 5,
            },
        );
        column.list_of_one(2, 5, &[0]);
        column.list_of_one(3, 8, b"\x01x");
        column.i32(4, i64::from(self.codec % 9));
        column.i64(5, self.rows.into());
        column.i64(6, pages as i64);
        column.i64(7, pages as i64);
        column.i64(9, 4);
        let mut chunk = Thrift::default();
        chunk.i64(2, 0);
        chunk.structure(3, column);
        let mut group = Thrift::default();
        group.structures(1, vec![chunk]);
        group.i64(2, pages as i64);
        group.i64(3, self.rows.into());
        let mut footer = Thrift::default();
        footer.i32(1, 2);
        footer.structures(2, elements);
        footer.i64(3, self.rows.into());
        footer.structures(4, vec![group]);
        footer.end()
    }

    /// The values, if they are plain.
    fn expected(&self) -> Option<Vec<u64>> {
        let Pages::Made(pages) = &self.pages else { return None };
        let size = self.dtype().size();
        let plain = |page: &Page| {
            let levels = page.repetition.len() + page.definition.len();
            // Dictionaries are allowed before the first page only.
            page.encoding() == PLAIN
                && page.kind != Kind::Dictionary
                && page.values.is_none()
                && page.unpacked.is_none()
                && page.crc != Some(false)
                && (levels == 0 || page.kind == Kind::First)
        };
        if self.optional || self.list || !self.codec.is_multiple_of(9) || !pages.iter().all(plain) {
            return None;
        }
        let whole = pages.iter().flat_map(|page| page.data.chunks_exact(size));
        let all: Vec<u64> = whole.flat_map(|value| elements(value, self.dtype(), false)).collect();
        (all.len() == usize::from(self.rows)).then_some(all)
    }
}

fuzz_target!(|input: Input| {
    let size = input.dtype().size();
    let pages = match &input.pages {
        Pages::Bytes(bytes) => bytes.clone(),
        Pages::Made(pages) => pages.iter().flat_map(|page| page.bytes(size, &input)).collect(),
    };
    let file = file(".parquet", &parquet(&pages, &input.footer(pages.len())));
    let mut arrays = arrays(file.path());
    if let Some(expected) = input.expected() {
        let (_, array) = arrays.pop().unwrap();
        assert_eq!(array.unwrap().bits, expected);
    }
});
