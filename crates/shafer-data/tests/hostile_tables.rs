//! Damaged and hostile tables: each is an error of one line, without a panic, and with little memory.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod refused;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float32Type, TimestampNanosecondType};
use arrow_array::{
    ArrayRef, FixedSizeListArray, Float32Array, Float64Array, Int64Array, ListArray, RecordBatch,
};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use parquet::basic::Compression;
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{Int96, Int96Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use refused::{damage_everywhere, message, read_all, refused};
use shafer_data::{Location, Table, Values, list, open};

type Row = Option<Vec<Option<f32>>>;

/// A row without nulls.
#[allow(clippy::unnecessary_wraps, reason = "others are missing as a whole")]
fn row(values: &[f32]) -> Row {
    Some(values.iter().copied().map(Some).collect())
}

/// A column of lists, written by the crates of both formats.
fn lists(rows: &[Row]) -> [(&'static str, Vec<u8>); 2] {
    let array: ArrayRef =
        Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(rows.iter().cloned()));
    let arrow = arrow(&[("logits", array)]);
    // Definition levels: 0 is a null row, 1 an empty one, 2 a null value, 3 a value.
    let (mut values, mut present, mut goes_on) = (Vec::new(), Vec::new(), Vec::new());
    for row in rows {
        goes_on.push(0);
        match row.as_deref() {
            None => present.push(0),
            Some([]) => present.push(1),
            Some(row) => {
                present.extend(row.iter().map(|value| if value.is_some() { 3 } else { 2 }));
                goes_on.resize(present.len(), 1);
                values.extend(row.iter().flatten());
            }
        }
    }
    let schema = "message m {
        optional group logits (LIST) { repeated group list { optional float element; } }
    }";
    [("parquet", parquet(schema, &[(Numbers::F32(values), present, goes_on)])), ("arrow", arrow)]
}

enum Numbers {
    F32(Vec<f32>),
    F64(Vec<f64>),
    I32(Vec<i32>),
}

/// A Parquet file with one row group: values and levels of each column.
fn parquet(schema: &str, columns: &[(Numbers, Vec<i16>, Vec<i16>)]) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = WriterProperties::builder().set_dictionary_enabled(false);
    let properties = properties.set_compression(Compression::UNCOMPRESSED).build();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for (values, present, goes_on) in columns {
        let present = (!present.is_empty()).then_some(&present[..]);
        let goes_on = (!goes_on.is_empty()).then_some(&goes_on[..]);
        let mut column = group.next_column().unwrap().unwrap();
        match (column.untyped(), values) {
            (ColumnWriter::FloatColumnWriter(column), Numbers::F32(v)) => {
                column.write_batch(v, present, goes_on).unwrap();
            }
            (ColumnWriter::DoubleColumnWriter(column), Numbers::F64(v)) => {
                column.write_batch(v, present, goes_on).unwrap();
            }
            (ColumnWriter::Int32ColumnWriter(column), Numbers::I32(v)) => {
                column.write_batch(v, present, goes_on).unwrap();
            }
            _ => panic!("the schema has another type"),
        }
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.into_inner().unwrap()
}

fn arrow(columns: &[(&str, ArrayRef)]) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter(columns.iter().cloned()).unwrap();
    let mut writer = FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

/// Refused in both formats, for the same reason.
#[track_caller]
fn refused_lists(rows: &[Row], expected: &str) {
    for (ending, bytes) in lists(rows) {
        refused(ending, &bytes, None, expected);
    }
}

#[test]
fn rows_of_different_lengths() {
    let good = [row(&[1.0, 2.0]), row(&[3.0, 4.0]), row(&[5.0, 6.0])];
    let folder = tempfile::tempdir().unwrap();
    for (ending, bytes) in lists(&good) {
        let path = folder.path().join(format!("good.{ending}"));
        fs::write(&path, bytes).unwrap();
        assert_eq!(read_all(&path, None).unwrap(), 6);
    }
    let dense = "logits are dense: write a number for every class of every row";
    let with = |row: Row| [good[0].clone(), good[1].clone(), row, good[2].clone()];
    refused_lists(
        &with(row(&[1.0])),
        &format!("FILE:logits: row 2 has 1 value, the first has 2; {dense}"),
    );
    refused_lists(&with(row(&[])), "FILE:logits: row 2 has 0 values, the first has 2; logits");
    let expected = "FILE:logits: row 2 has 3 values, the first has 2; logits";
    refused_lists(&with(row(&[1.0, 2.0, 3.0])), expected);
    // The last row is too short, or too long.
    let last = |row: Row| [good[0].clone(), good[1].clone(), row];
    refused_lists(&last(row(&[1.0])), "FILE:logits: row 2 has 1 value, the first has 2; logits");
    for (ending, bytes) in lists(&last(row(&[1.0; 5]))) {
        let found = message(ending, &bytes, None);
        assert!(found.starts_with("FILE:logits: row 2 has "), "{found}");
    }
    // With a single class, rows begin at every value.
    let expected = "FILE:logits: row 1 has 0 values, the first has 1; logits are dense";
    refused_lists(&[row(&[1.0]), row(&[])], expected);
}

#[test]
fn what_is_missing() {
    let good = row(&[1.0, 2.0]);
    refused_lists(&[good.clone(), None], "FILE:logits: row 1 is null; logits are dense: write");
    refused_lists(
        &[good.clone(), Some(vec![Some(1.0), None]), good.clone()],
        "FILE:logits: row 1, column 1 is null; logits are dense: write a number for every class",
    );
    refused_lists(&[None, good.clone()], "FILE:logits: row 0 is null; logits are dense");
    refused_lists(&[row(&[]), good.clone()], "FILE:logits: row 0 is empty; logits are dense");
    refused_lists(&[row(&[]), row(&[])], "FILE:logits: row 0 is empty; logits are dense");
    // The first problem is reported.
    let short = row(&[1.0]);
    let expected = "FILE:logits: row 1 has 1 value, the first has 2";
    refused_lists(&[good.clone(), short, None], expected);

    let fixed = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(
        [Some([Some(1.0), Some(2.0)]), None, Some([Some(1.0), None])],
        2,
    );
    let columns: [(&str, ArrayRef); 1] = [("logits", Arc::new(fixed.clone()))];
    refused("arrow", &arrow(&columns), None, "FILE:logits: row 1 is null; logits are dense");
    let columns: [(&str, ArrayRef); 1] = [("logits", Arc::new(fixed.slice(2, 1)))];
    refused("arrow", &arrow(&columns), None, "FILE:logits: row 0, column 1 is null; logits");

    let a: ArrayRef = Arc::new(Float32Array::from(vec![1.0, 2.0, 3.0]));
    let b: ArrayRef = Arc::new(Float32Array::from(vec![Some(1.0), Some(2.0), None]));
    refused("arrow", &arrow(&[("a", a), ("b", b)]), None, "FILE:b: row 2 is null; logits are");
    let schema = "message m { required float a; optional float b; }";
    let columns = [
        (Numbers::F32(vec![1.0, 2.0, 3.0]), vec![], vec![]),
        (Numbers::F32(vec![1.0, 2.0]), vec![1, 1, 0], vec![]),
    ];
    refused("parquet", &parquet(schema, &columns), None, "FILE:b: row 2 is null; logits are");
}

/// Columns a: lists of f32, b: lists of f64, c: integers; d: f64, e: f32.
fn all_kinds() -> [(&'static str, Vec<u8>); 2] {
    let schema = "message m {
        required group a (LIST) { repeated group list { required float element; } }
        required group b (LIST) { repeated group list { required double element; } }
        required int32 c;
        required double d;
        required float e;
        required group f { required float x; required float y; }
        required group g (LIST) { repeated group list { required int32 element; } }
    }";
    let flat = |numbers| (numbers, vec![], vec![]);
    let columns = [
        (Numbers::F32(vec![1.0, 2.0]), vec![1, 1], vec![0, 1]),
        (Numbers::F64(vec![1.0, 2.0]), vec![1, 1], vec![0, 1]),
        flat(Numbers::I32(vec![7])),
        flat(Numbers::F64(vec![1.0])),
        flat(Numbers::F32(vec![1.0])),
        flat(Numbers::F32(vec![1.0])),
        flat(Numbers::F32(vec![1.0])),
        (Numbers::I32(vec![1, 2]), vec![1, 1], vec![0, 1]),
    ];
    let single = |x: ArrayRef| -> ArrayRef {
        let field = arrow_schema::Field::new("item", x.data_type().clone(), true);
        let offsets = arrow_buffer::OffsetBuffer::from_lengths([x.len()]);
        Arc::new(ListArray::new(Arc::new(field), offsets, x, None))
    };
    let (whole, double): (ArrayRef, ArrayRef) =
        (Arc::new(Int64Array::from(vec![7])), Arc::new(Float64Array::from(vec![1.0])));
    let float: ArrayRef = Arc::new(Float32Array::from(vec![1.0]));
    let pair = RecordBatch::try_from_iter([("x", float.clone()), ("y", float.clone())]).unwrap();
    let pair: ArrayRef = Arc::new(arrow_array::StructArray::from(pair));
    let columns_of_arrow = [
        ("a", single(Arc::new(Float32Array::from(vec![1.0, 2.0])))),
        ("b", single(Arc::new(Float64Array::from(vec![1.0, 2.0])))),
        ("c", whole.clone()),
        ("d", double),
        ("e", float),
        ("f", pair),
        ("g", single(whole)),
    ];
    [("parquet", parquet(schema, &columns)), ("arrow", arrow(&columns_of_arrow))]
}

#[test]
fn which_column_is_meant() {
    for (ending, bytes) in all_kinds() {
        let whole = if ending == "parquet" { "int32" } else { "int64" };
        let held = format!(
            "`a` list of f32, `b` list of f64, `c` {whole}, `d` f64, `e` f32, `f` struct, `g` list \
             of {whole}"
        );
        refused(
            ending,
            &bytes,
            None,
            &format!("FILE: holds several columns of lists: {held}; name one, as in `FILE:NAME`"),
        );
        let expected = format!("FILE: has no column `z`; it holds {held}");
        refused(ending, &bytes, Some("z"), &expected);
        for (name, kind) in [("c", whole), ("f", "struct"), ("g", &*format!("list of {whole}"))] {
            let expected = format!(
                "FILE:{name}: is a column of {kind}; those of f16, f32 and f64 can be read, and of \
                 lists of these"
            );
            refused(ending, &bytes, Some(name), &expected);
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("x.{ending}"));
        fs::write(&path, &bytes).unwrap();
        for (name, count) in [("a", 2), ("b", 2), ("d", 1), ("e", 1)] {
            assert_eq!(read_all(&path, Some(name)).unwrap(), count, "{name}");
        }
        assert_eq!(list(&path).unwrap().len(), 4);
    }
}

#[test]
fn no_column_and_columns_of_several_types() {
    let flat = |numbers| (numbers, vec![], vec![]);
    let one = parquet("message m { required int32 id; }", &[flat(Numbers::I32(vec![1]))]);
    let expected =
        "FILE: has no column of f16, f32 or f64, nor of lists of these; it holds `id` int";
    refused("parquet", &one, None, expected);
    let whole: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    refused("arrow", &arrow(&[("id", whole)]), None, expected);
    refused(
        "parquet",
        &parquet("message m { }", &[]),
        None,
        "FILE: has no column of f16, f32 or f64, nor of lists of these; it holds no columns",
    );

    let schema = "message m { required float a; required double b; }";
    let columns = [flat(Numbers::F32(vec![1.0])), flat(Numbers::F64(vec![1.0]))];
    let expected = "FILE: has columns of several types: `a` f32, `b` f64; choose those of \
                    one type with --columns, or write all as one type";
    refused("parquet", &parquet(schema, &columns), None, expected);
    let a: ArrayRef = Arc::new(Float32Array::from(vec![1.0]));
    let b: ArrayRef = Arc::new(Float64Array::from(vec![1.0]));
    refused("arrow", &arrow(&[("a", a.clone()), ("b", b)]), None, expected);

    // Control characters are escaped, and long names shortened.
    let name = format!("\u{1b}[2J{}", "n".repeat(5000));
    let found = message("arrow", &arrow(&[(&name, a)]), Some("b"));
    assert!(found.starts_with(r"FILE: has no column `b`; it holds `\u{1b}[2Jnnn"), "{found}");
    assert!(found.len() < 200, "{found}");
}

#[test]
fn no_rows() {
    let folder = tempfile::tempdir().unwrap();
    for (ending, bytes) in lists(&[]) {
        let path = folder.path().join(format!("x.{ending}"));
        fs::write(&path, bytes).unwrap();
        assert_eq!(read_all(&path, None).unwrap(), 0);
        // The length of a row is unknown.
        assert_eq!(list(&path).unwrap()[0].shape, [0, 0]);
    }
    let none: ArrayRef = Arc::new(Float32Array::from(Vec::<f32>::new()));
    let path = folder.path().join("y.arrow");
    fs::write(&path, arrow(&[("a", none.clone()), ("b", none.clone())])).unwrap();
    assert_eq!(read_all(&path, None).unwrap(), 0);
    // A schema and nothing else.
    let schema = RecordBatch::try_from_iter([("a", none)]).unwrap().schema();
    let bytes = StreamWriter::try_new(Vec::new(), &schema).unwrap().into_inner().unwrap();
    fs::write(&path, bytes).unwrap();
    assert_eq!(read_all(&path, None).unwrap(), 0);
}

#[test]
fn files_of_another_kind_and_files_that_are_cut() {
    refused("parquet", b"", None, "FILE: is empty; write the file again");
    refused(
        "parquet",
        b"PK\x03\x04 this is a zip archive",
        None,
        r#"FILE: begins with "PK\x03\x04", not with "PAR1"; the file is damaged or not of Parquet"#,
    );
    refused("parquet", b"PA", None, r#"FILE: begins with "PA", not with "PAR1""#);
    refused("parquet", b"PAR1\0\0\0", None, "FILE: truncated: 5 bytes missing at the end");
    refused("parquet", b"PAREencrypted...", None, r#"FILE: begins with "PARE", not with"#);
    let [(_, good), (_, arrow)] = lists(&[row(&[1.0, 2.0])]);
    refused("parquet", &good[..good.len() - 1], None, "FILE: ends with ");
    let mut claims = good.clone();
    let n = claims.len();
    claims[n - 8..n - 4].copy_from_slice(&u32::MAX.to_le_bytes());
    let expected =
        format!("FILE: claims a footer of 4294967295 bytes in a file of {n}; the file is");
    refused("parquet", &claims, None, &expected);

    refused("arrow", b"", None, "FILE: is empty");
    for other in [&b"PAR1 this is another table"[..], b"A"] {
        let expected = "FILE: is neither a file nor a stream of Arrow; write it again, as with";
        refused("arrow", other, None, expected);
    }
    refused("feather", b"FEA1 and so on", None, "FILE: is of the first version of Feather; write");
    refused("arrow", b"ARROW1\0\0", None, "FILE: truncated: 10 bytes missing at the end");
    let expected = "FILE: does not end like an Arrow file: it is incomplete";
    refused("arrow", &arrow[..arrow.len() - 1], None, expected);
    let mut claims = arrow.clone();
    let n = claims.len();
    claims[n - 10..n - 6].copy_from_slice(&i32::MAX.to_le_bytes());
    let expected = format!("FILE: claims a directory of 2147483647 bytes in a file of {n}");
    refused("arrow", &claims, None, &expected);

    let stream = fs::read(fixture("stream.arrows")).unwrap();
    refused("arrows", &stream[..4], None, "FILE: truncated: 4 bytes missing at the end");
    refused("arrows", &stream[..2000], None, "FILE: truncated: ");
    let mut claims = stream.clone();
    claims[4..8].copy_from_slice(&i32::MAX.to_le_bytes());
    refused("arrows", &claims, None, "FILE: claims a message of 2147483647 bytes; the file is");
    claims[4..8].copy_from_slice(&(1_i32 << 20).to_le_bytes());
    refused("arrows", &claims, None, "FILE: truncated: ");
}

fn fixture(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tables").join(name)
}

#[test]
fn damage() {
    for (name, column) in [
        ("pages.parquet", Some("logits")),
        ("split.parquet", None),
        ("half.parquet", None),
        ("columns.arrow", None),
        ("fixed.feather", None),
    ] {
        let bytes = fs::read(fixture(name)).unwrap();
        damage_everywhere(name.split_once('.').unwrap().1, &bytes, column);
    }
}

/// Damage to the metadata of a batch never loses rows without an error.
#[test]
fn damaged_batches_lose_no_rows() {
    let rows = (0..6).map(|row| Some((0..5).map(move |column| Some((5 * row + column) as f32))));
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(rows));
    let batch = RecordBatch::try_from_iter([("logits", lists)]).unwrap();
    for batches in [1, 2] {
        let mut stream = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
        let mut file = FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
        for _ in 0..batches {
            stream.write(&batch).unwrap();
            file.write(&batch).unwrap();
        }
        for good in [stream.into_inner().unwrap(), file.into_inner().unwrap()] {
            let mut messages = good.windows(4).enumerate().filter(|(_, bytes)| *bytes == [0xff; 4]);
            // The first is the schema.
            let (last, _) = messages.nth(batches).unwrap();
            let length = i32::from_le_bytes(*good[last + 4..].first_chunk().unwrap()) as usize;
            damage_of_a_batch(&good, 30 * batches, last + 8..last + 8 + length);
        }
    }
}

/// Damages the metadata of a batch of a file with this many numbers.
fn damage_of_a_batch(good: &[u8], numbers: usize, metadata: std::ops::Range<usize>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.arrow");
    let read = |bytes: &[u8]| {
        // Some file systems flush a file to disk when it is overwritten.
        let _ = fs::remove_file(&path);
        fs::write(&path, bytes).unwrap();
        let location = Location { path: Some(path.clone()), name: None };
        let (mut values, mut block) = (Vec::new(), Values::default());
        let mut reader = open(&location)?;
        loop {
            reader.read(60, &mut block)?;
            let Values::F32(more) = &block else { panic!("another type") };
            if more.is_empty() {
                return shafer_data::Result::Ok(values);
            }
            values.extend_from_slice(more);
        }
    };
    let expected: Vec<f32> = (0..numbers).map(|i| (i % 30) as f32).collect();
    assert_eq!(read(good).unwrap(), expected);
    let mut refused = 0;
    for at in metadata.step_by(4) {
        // Zeros, and other offsets of tables.
        let zeros = [1, 4, 8, 12].map(|length| {
            let mut bytes = good.to_vec();
            bytes[at..at + length].fill(0);
            bytes
        });
        let others = (1..20).map(|more| 4 * more).chain([2, u8::MAX]).map(|more| {
            let mut bytes = good.to_vec();
            bytes[at] = if more == 2 { bytes[at] ^ 2 } else { bytes[at].wrapping_add(more) };
            bytes
        });
        for bytes in zeros.into_iter().chain(others) {
            match read(&bytes) {
                // The offset of a buffer can lead to other numbers.
                Ok(found) => assert_eq!(found.len(), expected.len(), "byte {at}"),
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 200, "{refused}");
}

/// An offset of 0 leads to itself. The type of the values would be that of 16 bits.
#[test]
fn offsets_of_zero() {
    let [_, (_, file)] = lists(&[row(&[1.0, 2.0])]);
    let array = ListArray::from_iter_primitive::<Float32Type, _, _>([row(&[1.0, 2.0])]);
    let batch = RecordBatch::try_from_iter([("logits", Arc::new(array) as ArrayRef)]).unwrap();
    let mut stream = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    stream.write(&batch).unwrap();
    for good in [stream.into_inner().unwrap(), file] {
        // The offsets of the name and the type of the values, before their kind.
        let offsets = [0x18, 0, 0, 0, 0x1c, 0, 0, 0, 0, 0, 1, 3];
        let places = good.windows(12).enumerate().filter(|(_, bytes)| *bytes == offsets);
        let places: Vec<usize> = places.map(|(at, _)| at).collect();
        assert!(!places.is_empty());
        for zeros in [0..4, 4..8, 0..8] {
            let mut bytes = good.clone();
            for at in &places {
                bytes[at + zeros.start..at + zeros.end].fill(0);
            }
            let expected =
                "FILE: has a schema whose parts do not fit together; the file is damaged";
            refused("arrow", &bytes, None, expected);
        }
    }
}

/// The body of a batch begins after its message, whose length is in the directory of a file, too.
#[test]
fn messages_of_another_length() {
    let lists: ArrayRef = Arc::new(Float32Array::from(vec![1.0, 2.0, 3.0]));
    let bytes = arrow(&[("a", lists)]);
    let mut messages = bytes.windows(4).enumerate().filter(|(_, bytes)| *bytes == [0xff; 4]);
    let (batch, _) = messages.nth(1).unwrap();
    let length = i32::from_le_bytes(*bytes[batch + 4..].first_chunk().unwrap());
    for other in [length - 8, length + 8] {
        let mut bytes = bytes.clone();
        bytes[batch + 4..batch + 8].copy_from_slice(&other.to_le_bytes());
        let expected = "FILE: has a message of another length than its directory says; the file";
        refused("arrow", &bytes, None, expected);
    }
}

/// The directory of a file says where its batches are. A shorter one would lose the last ones.
#[test]
fn directories_that_lie() {
    let batch = RecordBatch::try_from_iter([("a", Arc::new(Float32Array::from(vec![1.0])) as _)]);
    let batch = batch.unwrap();
    let file = |batches: usize| {
        let mut writer = FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
        (0..batches).for_each(|_| writer.write(&batch).unwrap());
        writer.into_inner().unwrap()
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.arrow");
    for count in [0, 1, 2] {
        fs::write(&path, file(count)).unwrap();
        assert_eq!(read_all(&path, None).unwrap(), count);
    }
    let bytes = file(2);
    let messages = bytes.windows(4).enumerate().filter(|(_, bytes)| *bytes == [0xff; 4]);
    let first = messages.map(|(at, _)| at as u64).nth(1).unwrap();
    // The number of batches, and the offset of the first.
    let entries = [&2_u32.to_le_bytes()[..], &first.to_le_bytes()].concat();
    let at = bytes.windows(12).rposition(|part| part == entries).unwrap();
    for shorter in [0, 1] {
        let mut bytes = bytes.clone();
        bytes[at] = shorter;
        refused("arrow", &bytes, None, "FILE: has a batch that its directory lacks; the file is");
    }
    // Without a field of its own, in the table whose offset the footer begins with.
    let footer = bytes.len() - 10;
    let length = u32::from_le_bytes(*bytes[footer..].first_chunk().unwrap()) as usize;
    let footer = footer - length;
    let table = footer + bytes[footer] as usize;
    let fields = table - bytes[table] as usize;
    let mut none = bytes.clone();
    none[fields + 10..fields + 12].fill(0);
    refused("arrow", &none, None, "FILE: has a directory without batches; the file is damaged");
}

/// A writer of Thrift's compact protocol, for invalid metadata.
#[derive(Clone, Default)]
struct Thrift(Vec<u8>);

impl Thrift {
    fn varint(mut self, mut n: u64) -> Self {
        while n >= 0x80 {
            self.0.push(n as u8 | 0x80);
            n >>= 7;
        }
        self.0.push(n as u8);
        self
    }

    /// A field with an id `more` than the last.
    fn field(mut self, more: u8, kind: u8) -> Self {
        self.0.push(more << 4 | kind);
        self
    }

    fn integer(self, more: u8, kind: u8, n: i64) -> Self {
        self.field(more, kind).varint((n << 1 ^ n >> 63) as u64)
    }

    fn i32(self, more: u8, n: i64) -> Self {
        self.integer(more, 5, n)
    }

    fn i64(self, more: u8, n: i64) -> Self {
        self.integer(more, 6, n)
    }

    fn text(self, more: u8, text: &str) -> Self {
        let mut this = self.field(more, 8).varint(text.len() as u64);
        this.0.extend(text.as_bytes());
        this
    }

    /// A list of structs with a claimed length.
    fn list(mut self, more: u8, count: u64, structs: &[Thrift]) -> Self {
        self = self.field(more, 9);
        self.0.push(0xfc);
        self = self.varint(count);
        for each in structs {
            self.0.extend(&each.0);
            self.0.push(0);
        }
        self
    }

    fn structs(self, more: u8, structs: &[Thrift]) -> Self {
        self.list(more, structs.len() as u64, structs)
    }

    fn inner(mut self, more: u8, inner: &Thrift) -> Self {
        self = self.field(more, 12);
        self.0.extend(&inner.0);
        self.0.push(0);
        self
    }

    /// A list of one element, of a type that is not a struct.
    fn one(mut self, more: u8, kind: u8, element: &[u8]) -> Self {
        self = self.field(more, 9);
        self.0.push(1 << 4 | kind);
        self.0.extend(element);
        self
    }
}

fn thrift() -> Thrift {
    Thrift::default()
}

/// A schema element with children.
fn group(children: i64) -> Thrift {
    thrift().i32(3, 0).text(1, "g").i32(1, children)
}

/// A required column of numbers.
fn floats() -> Thrift {
    thrift().i32(1, 4).i32(2, 0).text(1, "x")
}

/// A column chunk that starts after the magic bytes.
fn chunk(codec: i64, length: usize) -> Thrift {
    // Type, encodings, path, compression, values, lengths before and after it, and place.
    let column = thrift().i32(1, 4).one(1, 5, &[0]).one(1, 8, b"\x01x").i32(1, codec);
    let column = column.i64(1, 2).i64(1, length as i64).i64(1, length as i64).i64(2, 4);
    thrift().i64(2, 0).inner(1, &column)
}

/// A row group: its columns, length and rows.
fn rows(chunks: &[Thrift], rows: i64) -> Thrift {
    thrift().structs(1, chunks).i64(1, 8).i64(1, rows)
}

/// A footer: its version, schema, rows and row groups.
fn footer(schema: &[Thrift], groups: &[Thrift]) -> Thrift {
    thrift().i32(1, 2).structs(1, schema).i64(1, 0).structs(1, groups)
}

/// A file whose footer has a schema, row groups and the given bytes.
fn file(pages: &[u8], footer: &Thrift) -> Vec<u8> {
    let mut bytes = b"PAR1".to_vec();
    bytes.extend(pages);
    bytes.extend(&footer.0);
    bytes.push(0);
    bytes.extend((footer.0.len() as u32 + 1).to_le_bytes());
    bytes.extend(b"PAR1");
    bytes
}

/// A file of one column of numbers with these pages.
fn one_column(rows: i64, codec: i64, pages: &[u8]) -> Vec<u8> {
    let all = self::rows(&[chunk(codec, pages.len())], rows);
    file(pages, &footer(&[group(1), floats()], &[all]))
}

/// A page of numbers, compressed or not.
fn page(values: i64, unpacked: i64, encoding: i64, contents: &[u8]) -> Vec<u8> {
    let data = thrift().i32(1, values).i32(1, encoding).i32(1, 3).i32(1, 3);
    let header = thrift().i32(1, 0).i32(1, unpacked).i32(1, contents.len() as i64).inner(2, &data);
    [&header.0[..], &[0], contents].concat()
}

fn dictionary(values: i64, contents: &[u8]) -> Vec<u8> {
    let data = thrift().i32(1, values).i32(1, 0);
    let length = contents.len() as i64;
    let header = thrift().i32(1, 2).i32(1, length).i32(1, length).inner(4, &data);
    [&header.0[..], &[0], contents].concat()
}

#[test]
fn the_files_of_these_tests_are_right() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.parquet");
    fs::write(&path, one_column(2, 0, &page(2, 8, 0, &[0; 8]))).unwrap();
    assert_eq!(read_all(&path, None).unwrap(), 2);
    // Three times the second of two numbers.
    let pages = [dictionary(2, &[0; 8]), page(3, 3, 8, &[1, 3 << 1, 1])].concat();
    fs::write(&path, one_column(3, 0, &pages)).unwrap();
    assert_eq!(read_all(&path, None).unwrap(), 3);
}

#[test]
fn footers_that_lie() {
    let check = |footer: &Thrift, expected: &str| {
        refused("parquet", &file(&[], footer), None, &format!("FILE: {expected}"));
    };
    let schema = || thrift().i32(1, 2).structs(1, &[group(1), floats()]).i64(1, 0);
    let damaged = "; the file is damaged; copy or write it again";
    check(&thrift(), &format!("the footer has no schema{damaged}"));
    let longer = "the footer has a list that is longer than all that follows";
    check(&schema().list(1, i32::MAX as u64, &[]), longer);
    check(&schema().list(1, u64::MAX, &[]), longer);
    // Trusting this aborts the program, whose stack overflows.
    let mut deep = vec![group(1); 100_000];
    deep.push(floats());
    let chunks = rows(&[chunk(0, 0)], 1);
    let expected = "the footer has a schema that is nested too deeply";
    check(&footer(&deep, std::slice::from_ref(&chunks)), expected);
    for schema in [
        &[group(2), floats()][..],
        &[group(i64::from(i32::MAX)), floats()],
        // Each group could have them alone.
        &[group(2), group(2), floats(), floats()],
    ] {
        check(&footer(schema, &[]), "the footer has a schema that lacks columns");
    }
    for schema in [&[group(-1), floats()][..], &[group(1), floats(), floats()]] {
        check(&footer(schema, &[]), "cannot be decoded (");
    }
    check(&thrift().i32(1, 2).list(1, 3, &[group(1)]), "the footer ends too early");
    let many = vec![thrift(); (1 << 20) + 1];
    check(&footer(&many, &[]), "the footer has more columns than are read");
    let nested = (0..100).fold(thrift(), |inner, _| thrift().inner(1, &inner));
    check(&nested, "the footer is nested too deeply");
    check(&Thrift(vec![0x1f]), "the footer has a field of an unknown type");
    check(&Thrift([&[0x15][..], &[0xff; 10]].concat()), "the footer has a number that is too long");
    check(&Thrift(vec![0x18, 0xff, 0xff, 0xff, 0x7f]), "the footer ends too early");

    let groups = |rows: Thrift| footer(&[group(1), floats()], &[rows]);
    check(&groups(rows(&[], 1)), "cannot be decoded (");
    check(&groups(thrift().structs(1, &[chunk(0, 0)])), "cannot be decoded (");
    check(&groups(rows(&[thrift()], 1)), "cannot be decoded (");
    let negative = rows(&[chunk(0, 0)], -1);
    check(&groups(negative), "the footer claims more rows than there can be");
    let many = rows(&[chunk(0, 0)], i64::MAX);
    let three = footer(&[group(1), floats()], &[many.clone(), many.clone(), many.clone()]);
    check(&three, "the footer claims more rows than there can be");
    let shape = "no file can hold the shape (9223372036854775807, 1) of f32; the header is damaged";
    check(&groups(many), shape);
    // Claimed rows that are missing.
    let claimed = groups(rows(&[chunk(0, 0)], 1 << 40));
    check(&claimed, "ends after 0 of 1099511627776 rows; the file is damaged");
    // The path, field 1, before the other fields of the chunk, whose first is then one further.
    let mut elsewhere = thrift().text(1, "y");
    elsewhere.0.push(chunk(0, 0).0[0] - (1 << 4));
    elsewhere.0.extend(&chunk(0, 0).0[1..]);
    let expected = "x: has values in another file; write the table into one file";
    refused(
        "parquet",
        &file(&[], &groups(rows(&[elsewhere], 1))),
        None,
        &format!("FILE:{expected}"),
    );
}

#[test]
fn pages_that_lie() {
    let check = |rows: i64, codec: i64, pages: &[u8], expected: &str| {
        refused("parquet", &one_column(rows, codec, pages), None, &format!("FILE{expected}"));
    };
    let eight = [0; 8];
    check(3, 0, &page(2, 8, 0, &eight), ": ends after 2 of 3 rows; the file is damaged");
    check(1, 0, &page(2, 8, 0, &eight), ": has more rows than it claims");
    let two = [page(1, 4, 0, &eight[..4]), page(1, 4, 0, &eight[..4])].concat();
    check(1, 0, &two, ": has more rows than it claims");
    check(3, 0, &page(3, 8, 0, &eight), ":x: cannot be decoded (");
    check(3, 0, &page(3, 8, 9, &eight), ":x: cannot be decoded (");
    check(2, 0, &page(2, 8, 5, &eight), ":x: cannot be decoded (");
    check(2, 0, &page(2, 8, 8, &eight), ":x: cannot be decoded (");
    check(
        2,
        3,
        &page(2, 8, 0, &eight),
        ":x: is compressed with LZO, which is not supported; write it",
    );
    check(2, 99, &page(2, 8, 0, &eight), ": cannot be decoded (");
    check(2, 0, &[0xff; 20], ":x: the header of a page ");
    check(2, 0, &page(2, 8, 0, &eight)[..6], ":x: the header of a page ends too early");
    let cut = page(2, 8, 0, &eight);
    check(2, 0, &cut[..cut.len() - 1], ":x: has a page that is longer than its column");

    // Two gigabytes from eight bytes, and two billion numbers from four.
    for codec in [1, 2, 4, 5, 6, 7] {
        let huge = page(2, i64::from(i32::MAX), 0, &eight);
        let expected =
            ":x: has a page of 2147483647 bytes, more than the 268435456 that are supported; write";
        check(2, codec, &huge, expected);
        check(2, codec, &page(2, 1 << 20, 0, &[0xff; 8]), ":x: cannot be decoded (");
    }
    let many = i64::from(i32::MAX);
    let expected = ":x: has rows or a page of more than 67108864 values; write shorter rows";
    check(many, 0, &page(many, 8, 0, &eight), expected);
    check(2, 0, &page(-1, 8, 0, &eight), ":x: the header of a page lacks a length");
    check(2, 0, &page(2, -1, 0, &eight), ":x: the header of a page lacks a length");

    // A dictionary of two numbers that claims more, and indices out of bounds.
    let pages = |claimed: i64, places: &[u8]| {
        [dictionary(claimed, &eight), page(3, places.len() as i64, 8, places)].concat()
    };
    let expected = ":x: has a dictionary with fewer values than it claims";
    check(3, 0, &pages(many, &[2, 3 << 1, 1]), expected);
    check(3, 0, &pages(2, &[2, 3 << 1, 2]), ":x: cannot be decoded (");
    check(3, 0, &pages(2, &[33, 3 << 1, 1]), ":x: cannot be decoded (");
    check(3, 0, &pages(2, &[]), ":x: cannot be decoded (");
}

/// A few bytes of these decompress to more than the page has, without a limit in the library.
#[test]
fn pages_that_grow() {
    use std::io::Write as _;

    let zeros = vec![0; 1 << 20];
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&zeros).unwrap();
    let mut brotli = brotli::CompressorWriter::new(Vec::new(), 4096, 1, 22);
    brotli.write_all(&zeros).unwrap();
    let mut lz4 = lz4_flex::frame::FrameEncoder::new(Vec::new());
    lz4.write_all(&zeros).unwrap();
    let packed =
        [(2, gzip.finish().unwrap()), (4, brotli.into_inner()), (5, lz4.finish().unwrap())];
    for (codec, packed) in packed {
        let expected = "FILE:x: has a page that decompresses to more than it claims";
        refused("parquet", &one_column(2, codec, &page(2, 8, 0, &packed)), None, expected);
    }
}

/// A few bytes can claim a row of any length, for which no memory is allocated.
#[test]
fn a_row_that_is_too_long() {
    // One row: its first value, and all others as one run; then as many places in a dictionary.
    for (values, expected) in [
        (i64::from(i32::MAX), "has rows or a page of more than 67108864 values; write"),
        (1 << 25, "has rows of 33554432 values, more than 16777216; the file is damaged"),
    ] {
        let contents = [
            prefixed(&[run(1, 0), run(values as u64 - 1, 1)].concat()),
            prefixed(&run(values as u64, 1)),
            vec![1],
            run(values as u64, 1),
        ]
        .concat();
        let pages =
            [dictionary(2, &[0; 8]), page(values, contents.len() as i64, 8, &contents)].concat();
        refused("parquet", &one_list(0, 1, &pages), None, &format!("FILE:lists: {expected}"));
    }
}

/// A file of one column of lists, which are required (0) or optional (1), of required numbers.
fn one_list(optional: i64, rows: i64, pages: &[u8]) -> Vec<u8> {
    let schema = [
        group(1),
        thrift().i32(3, optional).text(1, "lists").i32(1, 1).i32(1, 3),
        thrift().i32(1, 4).i32(2, 2).text(1, "element"),
    ];
    let all = self::rows(&[chunk(0, pages.len())], rows);
    file(pages, &footer(&schema, &[all]))
}

/// Levels of a page of version 1 have their length before them.
fn prefixed(runs: &[u8]) -> Vec<u8> {
    [&(runs.len() as u32).to_le_bytes()[..], runs].concat()
}

/// Levels that are all the same.
fn run(n: u64, value: u8) -> Vec<u8> {
    [thrift().varint(n << 1).0, vec![value]].concat()
}

/// A page of version 2 with levels and plain numbers.
fn page_2(values: i64, rows: i64, repetition: &[u8], definition: &[u8], data: &[u8]) -> Vec<u8> {
    let contents = [repetition, definition, data].concat();
    let levels = [definition, repetition].map(|levels| levels.len() as i64);
    let kind = thrift().i32(1, values).i32(1, 0).i32(1, rows).i32(1, 0).i32(1, levels[0]);
    // Not compressed.
    let kind = kind.i32(1, levels[1]).field(1, 2);
    let length = contents.len() as i64;
    let header = thrift().i32(1, 3).i32(1, length).i32(1, length).inner(5, &kind);
    [&header.0[..], &[0], &contents].concat()
}

/// A level above the largest of its column is no other level. The library would take it for one.
#[test]
fn levels_that_lie() {
    let good = (vec![3, 0b1010], run(4, 2));
    let data: Vec<u8> = [1.0_f32, 2.0, 3.0, 4.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    let files = |(repetition, definition): &(Vec<u8>, Vec<u8>)| {
        let contents = [prefixed(repetition), prefixed(definition), data.clone()].concat();
        [page(4, contents.len() as i64, 0, &contents), page_2(4, 2, repetition, definition, &data)]
            .map(|page| one_list(1, 2, &page))
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.parquet");
    // What fills the last group of bit-packed levels is none.
    let padded = (good.0.clone(), vec![3, 0b1010_1010, 0xff]);
    let shortened = (good.0.clone(), vec![3, 0b1010_1010]);
    for levels in [good.clone(), padded, shortened] {
        for bytes in files(&levels) {
            fs::write(&path, &bytes).unwrap();
            assert_eq!(read_all(&path, None).unwrap(), 4, "{levels:?}");
        }
    }
    let above = "has a level above the largest of its column; the file is damaged";
    let fewer = "has a page with fewer levels than values; the file is damaged";
    let many = [thrift().varint(1 << 40).0, vec![2]].concat();
    for (repetition, definition, expected) in [
        (vec![2, 0, 2, 1, 2, 0, 2, 2], good.1.clone(), above),
        (vec![2, 0, 2, 1, 2, 0, 2, 255], good.1.clone(), above),
        (vec![2, 0, 2, 1, 2, 2, 2, 1], good.1.clone(), above),
        (good.0.clone(), run(4, 3), above),
        (good.0.clone(), run(4, 255), above),
        (good.0.clone(), [run(3, 2), run(1, 6)].concat(), above),
        (good.0.clone(), vec![3, 0b1011_1010, 0], above),
        (good.0.clone(), run(3, 2), fewer),
        (good.0.clone(), [run(3, 2), vec![0, 2]].concat(), fewer),
        (run(3, 0), good.1.clone(), fewer),
        (good.0.clone(), vec![3], fewer),
        (good.0.clone(), vec![], fewer),
        (good.0.clone(), many, "has a page with more levels than can be; the file is damaged"),
    ] {
        let levels = (repetition, definition);
        for bytes in files(&levels) {
            refused("parquet", &bytes, None, &format!("FILE:lists: {expected}"));
        }
    }
}

/// A page of texts has their number twice. The library would allocate the second one.
#[test]
fn texts_that_lie() {
    let text = || thrift().i32(1, 6).i32(2, 0).text(1, "x");
    let varint = |n: u64| thrift().varint(n).0;
    // Blocks of 128 in one miniblock, the number of values, and the first.
    let deltas = |n: u64| [varint(128), varint(1), varint(n), vec![0]].concat();
    let huge = 1 << 40;
    for (encoding, contents) in [
        (6, deltas(huge)),
        (7, deltas(huge)),
        // Two prefixes of length 0: a block with a delta of 0 and a width of 0. Then the suffixes.
        (7, [deltas(2), vec![0, 0], deltas(huge)].concat()),
    ] {
        let pages = page(2, contents.len() as i64, encoding, &contents);
        let schema = [group(2), text(), floats()];
        let mut column = chunk(0, pages.len());
        // The type of the first column.
        let kind = column.0.iter().position(|&byte| byte == 0x15).unwrap() + 1;
        column.0[kind] = 6 << 1;
        let all = rows(&[column, chunk(0, 0)], 2);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.parquet");
        fs::write(&path, file(&pages, &footer(&schema, &[all]))).unwrap();
        let table = Table::open(&path).unwrap();
        let error = table.batches(&[0]).unwrap().next().unwrap_err().to_string();
        let expected = ":x: has a page of texts with more lengths than values; the file is damaged";
        assert!(error.contains(expected), "{error}");
    }
}

/// The lengths of buffers in a compressed batch are claims, too.
#[test]
fn batches_that_lie() {
    let numbers: ArrayRef = Arc::new(Float32Array::from(vec![0.0; 1000]));
    let batch = RecordBatch::try_from_iter([("a", numbers)]).unwrap();
    for (compression, claimed, expected) in [
        (CompressionType::LZ4_FRAME, 1 << 50, "FILE:a: has a batch of more than the 4294967296 "),
        (CompressionType::ZSTD, 1 << 50, "FILE:a: has a batch of more than the 4294967296 bytes"),
        (CompressionType::LZ4_FRAME, 16, "FILE:a: has a buffer that does not decompress to the"),
        (CompressionType::LZ4_FRAME, 1 << 30, "FILE:a: has a buffer that does not decompress to"),
        (CompressionType::ZSTD, 1 << 30, "FILE:a: has a buffer that does not decompress to the"),
        (CompressionType::ZSTD, 16, "FILE:a: cannot be decoded ("),
        (CompressionType::ZSTD, 8000, "FILE:a: cannot be decoded ("),
        (CompressionType::ZSTD, -7, "FILE:a: cannot be decoded ("),
    ] {
        let options = IpcWriteOptions::default().try_with_compression(Some(compression)).unwrap();
        let mut writer =
            FileWriter::try_new_with_options(Vec::new(), &batch.schema(), options).unwrap();
        writer.write(&batch).unwrap();
        let mut bytes = writer.into_inner().unwrap();
        // The only place with the length of the values as 64 bits before compressed bytes.
        let length = 4000_i64.to_le_bytes();
        let at = bytes.windows(8).rposition(|part| part == length).unwrap();
        bytes[at..at + 8].copy_from_slice(&i64::to_le_bytes(claimed));
        refused("arrow", &bytes, None, expected);
    }
}

/// A file that ends before the place where its first batch would be.
#[test]
fn a_directory_without_a_schema_before_it() {
    let numbers: ArrayRef = Arc::new(Float32Array::from(vec![0.0; 0]));
    let batch = RecordBatch::try_from_iter([("a", numbers)]).unwrap();
    let bytes = FileWriter::try_new(Vec::new(), &batch.schema()).unwrap().into_inner().unwrap();
    let end = bytes.len() - 10;
    let length = u32::from_le_bytes(bytes[end..end + 4].try_into().unwrap()) as usize;
    let short = [&bytes[..8], &bytes[end - length..]].concat();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.arrow");
    fs::write(&path, short).unwrap();
    assert_eq!(read_all(&path, None).unwrap(), 0);
}

/// Arrow has no times of 96 bits, and the library wraps around: the year 9999 would be 1816.
#[test]
fn times_of_96_bits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.parquet");
    let read = |days: &[u32], dictionary: bool| {
        let schema = Arc::new(parse_message_type("message m { required int96 x; }").unwrap());
        let properties = WriterProperties::builder().set_dictionary_enabled(dictionary).build();
        let file = fs::File::create(&path).unwrap();
        let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties)).unwrap();
        let mut group = writer.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let times = days.iter().map(|&day| {
            let mut time = Int96::new();
            time.set_data(7, 0, day);
            time
        });
        let times: Vec<Int96> = times.collect();
        column.typed::<Int96Type>().write_batch(&times, None, None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
        writer.close().unwrap();
        let table = Table::open(&path).unwrap();
        let batch = table.batches(&[0]).unwrap().next();
        batch.map(|batch| {
            let batch = batch.unwrap();
            batch.column(0).as_primitive::<TimestampNanosecondType>().values().to_vec()
        })
    };
    // 1 January 1970, the day before it, and the first and last days that fit: 2,440,588 and 106,751 around it.
    let day = 86_400_000_000_000_i64;
    for dictionary in [true, false] {
        let found = read(&[2_440_588, 2_440_587, 2_547_339, 2_333_837], dictionary).unwrap();
        assert_eq!(found, [7, 7 - day, 106_751 * day + 7, 7 - 106_751 * day]);
        // 31 December 9999, and 1 January 1.
        for far in [5_373_484, 1_721_426, 2_547_340] {
            let error = read(&[2_440_588, far], dictionary).unwrap_err().to_string();
            let expected =
                ":x: has times before 1678 or after 2261 in 96 bits; write them as micro";
            assert!(error.contains(expected), "{error}");
        }
    }
}
