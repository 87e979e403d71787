//! Writes the seed corpus to `corpus/TARGET`: the models of the tests of `shafer-data`, files by its writers, and
//! files that only other programs write.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, FixedSizeListArray, Float32Array, Float64Array, ListArray, RecordBatch, StringArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field};
use parquet::basic::{Compression, Encoding};
use parquet::data_type::{DoubleType, FloatType};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use shafer_data::{Dtype, SparseRows, ValuesRef, create};
use shafer_fuzz::bytes::{Member, npy, safetensors, zip};

type Outcome = Result<(), Box<dyn std::error::Error>>;

const FUZZ: &str = env!("CARGO_MANIFEST_DIR");

const HEADERS: [&str; 4] = [
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n",
    "{'descr': '>f8', 'fortran_order': True, 'shape': (3, 1), }\n",
    "{'descr': '<f2', 'fortran_order': True, 'shape': (2, 3, 2), }\n",
    "{\"shape\": (12L,), 'fortran_order': False, 'descr': '<V2'}\n",
];

const TENSORS: &str = r#"{"__metadata__":{"format":"pt"},
"head.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},
"head.bias":{"dtype":"F64","shape":[2],"data_offsets":[24,40]},
"a":{"dtype":"BF16","shape":[1,2,2],"data_offsets":[40,48]},
"b":{"dtype":"I64","shape":[],"data_offsets":[48,56]}}"#;

const TEXTS: [&str; 5] = [
    "1,2.5\n-3,4e2\n",
    "a,b\r\n1,2.5\r\n-3,inf",
    "\"a, b\",\"c\"\"d\"\n 1 , nan\n\n\"-3\",400.0\n",
    "\u{feff}1,2.5\n-3,4e2\n",
    "0.1\r0.2\r",
];

const LOCATIONS: [&str; 6] = ["a.npz:logits", "-", "-:x", r"C:\a.npz:x", "a:b:c/d", "é:x:y"];

/// IDX files after a byte with the number of labels, and the positions of two pedestrians.
const DATASETS: [(&str, &[u8]); 2] = [
    ("idx", b"\x02\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x02abcd"),
    ("scene", b"780\t1.0\t8.46\t3.59\n790\t1.0\t9.57\t3.79\n790 2 1.5 -2\n"),
];

fn main() -> Outcome {
    let data: Vec<u8> = (0..56).collect();
    let arrays = HEADERS.map(|header| npy(header, &data[..24]));
    for (i, array) in arrays.iter().enumerate() {
        seed("npy", &format!("array{i}"), array)?;
        seed("npy", &format!("header{i}"), &[HEADERS[i].as_bytes(), &data[..24]].concat())?;
        seed("stream", &format!("array{i}"), array)?;
    }
    let archive = zip(&[
        Member::stored("a.npy", &arrays[0]),
        Member::deflated("b.npy", &arrays[1]),
        Member::stored("c.npy", &arrays[2]),
        Member::deflated("notes.txt", b"hello"),
    ]);
    let tensors = [&safetensors(TENSORS, 0), &data[..]].concat();
    for (target, name, bytes) in [
        ("npz", "archive", &archive),
        ("stream", "archive", &archive),
        ("safetensors", "tensors", &tensors),
        ("stream", "tensors", &tensors),
        ("safetensors", "header", &[TENSORS.as_bytes(), b"\0", &data].concat()),
    ] {
        seed(target, name, bytes)?;
    }
    for (i, text) in TEXTS.iter().enumerate() {
        seed("csv", &format!("text{i}"), text.as_bytes())?;
        seed("stream", &format!("text{i}"), text.as_bytes())?;
    }
    for (i, text) in LOCATIONS.iter().enumerate() {
        seed("location", &i.to_string(), text.as_bytes())?;
    }
    for (name, bytes) in DATASETS {
        seed("dataset", name, bytes)?;
    }
    written()?;
    tables()?;
    models()
}

fn seed(target: &str, name: &str, bytes: &[u8]) -> Outcome {
    let folder = Path::new(FUZZ).join("corpus").join(target);
    fs::create_dir_all(&folder)?;
    Ok(fs::write(folder.join(format!("seed-{name}")), bytes)?)
}

/// Two rows in the format of every writer.
fn written() -> Outcome {
    let folder = tempfile::tempdir()?;
    for target in ["npy", "npz", "safetensors", "csv", "parquet"] {
        let path = folder.path().join(format!("rows.{target}"));
        let mut writer = create(&path, 3, Dtype::F32)?;
        writer.write(SparseRows::new(&[0, 1, 2], &[2, 0], ValuesRef::F32(&[1.0, 0.5])))?;
        writer.finish()?;
        let bytes = fs::read(&path)?;
        seed(target, "written", &bytes)?;
        seed("stream", &format!("written.{target}"), &bytes)?;
    }
    Ok(())
}

/// Tables with a column of numbers and one of lists, and those of other programs with columns of many types.
fn tables() -> Outcome {
    for entry in fs::read_dir(Path::new(FUZZ).join("../crates/shafer-data/tests/fixtures/tables"))?
    {
        let path = entry?.path();
        let name = path.file_name().ok_or("no name")?.display().to_string();
        let bytes = fs::read(&path)?;
        seed("table", &name, &bytes)?;
        let target = if name.ends_with(".parquet") { "parquet" } else { "arrow" };
        seed(target, &name, &bytes)?;
    }
    for (name, version, encoding, dictionary) in [
        ("plain", WriterVersion::PARQUET_1_0, Encoding::PLAIN, false),
        ("dictionary", WriterVersion::PARQUET_1_0, Encoding::PLAIN, true),
        ("split", WriterVersion::PARQUET_2_0, Encoding::BYTE_STREAM_SPLIT, false),
    ] {
        let schema = "message rows {
            optional double x;
            required group y (LIST) { repeated group list { optional float element; } }
        }";
        let properties = WriterProperties::builder()
            .set_writer_version(version)
            .set_encoding(encoding)
            .set_dictionary_enabled(dictionary)
            .set_compression(Compression::SNAPPY)
            .set_statistics_enabled(EnabledStatistics::None);
        let schema = Arc::new(parse_message_type(schema)?);
        let mut writer =
            SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties.build()))?;
        let mut group = writer.next_row_group()?;
        let mut numbers = group.next_column()?.ok_or("no column")?;
        numbers.typed::<DoubleType>().write_batch(&[0.5, 0.25, 0.5], Some(&[1; 3]), None)?;
        numbers.close()?;
        let mut lists = group.next_column()?.ok_or("no column")?;
        lists.typed::<FloatType>().write_batch(
            &[1.0, 2.0, 3.0, 1.0, 2.0, 3.0],
            Some(&[2; 6]),
            Some(&[0, 1, 0, 1, 0, 1]),
        )?;
        lists.close()?;
        group.close()?;
        let bytes = writer.into_inner()?;
        seed("parquet", name, &bytes)?;
        // In the format of the target: pages and footer.
        let [.., a, b, c, d, _, _, _, _] = bytes[..] else { continue };
        let footer = bytes.len() - 8 - u32::from_le_bytes([a, b, c, d]) as usize;
        let pages = (footer as u16 - 4).to_le_bytes();
        seed("parquet", &format!("{name}-parts"), &[&pages, &bytes[4..bytes.len() - 8]].concat())?;
    }
    let item = Arc::new(Field::new("item", DataType::Float32, true));
    let lists = FixedSizeListArray::try_new(
        Arc::clone(&item),
        2,
        Arc::new(Float32Array::from(vec![1.0, 2.0, 3.0, 4.0])),
        None,
    )?;
    let ends = OffsetBuffer::new(vec![0, 1, 2].into());
    let values = Arc::new(Float32Array::from(vec![0.5, 0.25]));
    let batch = RecordBatch::try_from_iter([
        ("x", Arc::new(Float64Array::from(vec![0.5, 0.25])) as ArrayRef),
        ("y", Arc::new(ListArray::try_new(item, ends, values, None)?)),
        ("z", Arc::new(lists)),
        ("names", Arc::new(StringArray::from(vec!["a", "b"]))),
    ])?;
    for (name, codec) in [("plain", None), ("lz4", Some(CompressionType::LZ4_FRAME))] {
        let options = IpcWriteOptions::default().try_with_compression(codec)?;
        let mut stream =
            StreamWriter::try_new_with_options(Vec::new(), &batch.schema(), options.clone())?;
        stream.write(&batch)?;
        stream.write(&batch)?;
        seed("arrow", &format!("stream-{name}"), &stream.into_inner()?)?;
        let mut file = FileWriter::try_new_with_options(Vec::new(), &batch.schema(), options)?;
        file.write(&batch)?;
        file.finish()?;
        seed("arrow", &format!("file-{name}"), &file.into_inner()?)?;
    }
    Ok(())
}

/// The models and their pickles.
fn models() -> Outcome {
    for entry in fs::read_dir(Path::new(FUZZ).join("../crates/shafer-data/tests/fixtures"))? {
        let path = entry?.path();
        let (Some(name), Some(ending)) = (path.file_name(), path.extension()) else { continue };
        let name = name.display().to_string();
        let bytes = fs::read(&path)?;
        match ending.to_str() {
            Some("onnx") => seed("onnx", &name, &bytes)?,
            Some("safetensors") => seed("safetensors", &name, &bytes)?,
            Some("pt") => {
                seed("pytorch", &name, &bytes)?;
                // One of them predates the zip format.
                let Ok(mut archive) = zip::ZipArchive::new(File::open(&path)?) else { continue };
                for i in 0..archive.len() {
                    let mut member = archive.by_index(i)?;
                    if member.name()?.ends_with("data.pkl") {
                        let mut pickle = Vec::new();
                        member.read_to_end(&mut pickle)?;
                        seed("pickle", &name, &pickle)?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}
