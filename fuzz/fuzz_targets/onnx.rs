//! Arbitrary bytes as `.onnx` files, with external data that they may reference and data outside their folder that
//! they may not.
#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use shafer_data::ModelFile;
use shafer_fuzz::files::{folder, model};

const DATA: &[u8] = include_bytes!("../../crates/shafer-data/tests/fixtures/external.onnx.data");

/// A value that no model contains by chance.
const SECRET: f32 = 8.765_432e-21;

fuzz_target!(|bytes: &[u8]| {
    let top = folder();
    let folder = top.path().join("model");
    fs::create_dir(&folder).unwrap();
    fs::write(top.path().join("secret"), SECRET.to_le_bytes().repeat(64)).unwrap();
    std::os::unix::fs::symlink(top.path().join("secret"), folder.join("link")).unwrap();
    fs::write(folder.join("external.onnx.data"), DATA).unwrap();
    let path = folder.join("m.onnx");
    fs::write(&path, bytes).unwrap();

    model(&path, bytes.len() + DATA.len(), true);
    let Ok(mut model) = ModelFile::open(&path) else { return };
    let names: Vec<String> = model.tensors().iter().map(|tensor| tensor.name.clone()).collect();
    for name in names.iter().take(20) {
        let told = model.load(name).is_ok_and(|values| values.contains(&SECRET));
        let own = bytes.windows(4).any(|bytes| bytes == SECRET.to_le_bytes());
        assert!(!told || own, "{name} is read from outside of the folder");
    }
});
