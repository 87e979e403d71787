//! Writes what the fuzzing of files begins with, to `corpus/TARGET`: the models that the tests of
//! `shafer-data` have, files that its writers make, and some that only others make.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

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
    written()?;
    models()
}

fn seed(target: &str, name: &str, bytes: &[u8]) -> Outcome {
    let folder = Path::new(FUZZ).join("corpus").join(target);
    fs::create_dir_all(&folder)?;
    Ok(fs::write(folder.join(format!("seed-{name}")), bytes)?)
}

/// What the writers make of two rows.
fn written() -> Outcome {
    let folder = tempfile::tempdir()?;
    for (ending, target) in
        [("npy", "npy"), ("npz", "npz"), ("safetensors", "safetensors"), ("csv", "csv")]
    {
        let path = folder.path().join(format!("rows.{ending}"));
        let mut writer = create(&path, 3, Dtype::F32)?;
        writer.write(SparseRows::new(&[0, 1, 3], &[2, 0, 1], ValuesRef::F32(&[1.0, 0.5, 0.5])))?;
        writer.finish()?;
        let bytes = fs::read(&path)?;
        seed(target, "written", &bytes)?;
        seed("stream", &format!("written.{ending}"), &bytes)?;
    }
    Ok(())
}

/// The models, and the pickles in them.
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
                // One of them is from before there was an archive.
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
