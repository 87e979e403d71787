//! Arbitrary bytes as `.safetensors` files, read as data and as models: as the whole file, and as the part after the
//! header length. Where both readers accept a file, they agree.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shafer_data::ModelFile;
use shafer_fuzz::bytes::safetensors;
use shafer_fuzz::files::{arrays, as_f32, file, model};

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    // JSON contains no zero byte.
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    let (header, data) = bytes.split_at(end);
    check(&[&safetensors(header, 0), data.get(1..).unwrap_or_default()].concat());
});

fn check(bytes: &[u8]) {
    let file = file(".safetensors", bytes);
    model(file.path(), bytes.len(), false);
    let mut model = ModelFile::open(file.path());
    for (info, array) in arrays(file.path()) {
        // The header is complete: every listed tensor can be read.
        let array = array.unwrap();
        let name = info.name.unwrap();
        let Ok(model) = &mut model else { continue };
        let tensor = model.tensors().iter().find(|tensor| tensor.name == name).unwrap();
        assert_eq!((&tensor.shape, &tensor.dtype), (&info.shape, &info.dtype.to_string()));
        let loaded = model.load(&name).unwrap();
        let expected = array.bits.iter().map(|&bits| as_f32(bits, info.dtype));
        assert!(loaded.iter().map(|x| x.to_bits()).eq(expected), "{name}");
    }
}
