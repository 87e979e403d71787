//! Arbitrary bytes as `.npy` files: as the whole file, and as the part after the header length.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shafer_data::{Dtype, NpyWriter, RowWriter, Values, open};
use shafer_fuzz::bytes::npy;
use shafer_fuzz::files::{Array, arrays, as_f32, at, elements, file, folder, read};

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    // Headers end in a newline.
    let end = bytes.iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |end| end + 1);
    let (header, data) = bytes.split_at(end);
    if header.len() <= usize::from(u16::MAX) {
        check(&npy(header, data));
    }
});

fn check(bytes: &[u8]) {
    let file = file(".npy", bytes);
    for (_, array) in arrays(file.path()) {
        if let Ok(array) = array {
            check_array(bytes, &array);
        }
    }
    // Untyped elements of two bytes, which are not listed.
    if let Ok(array) = read(&at(file.path(), Some("bfloat16"))) {
        check_array(bytes, &array);
    }
    assert!(open(&at(file.path(), Some("other"))).is_err());
}

fn check_array(bytes: &[u8], array: &Array) {
    // The elements are the last bytes of the file; `npy_array` checks their order.
    let dtype = array.info.dtype;
    let data = &bytes[bytes.len() - array.bits.len() * dtype.size()..];
    let sorted = |mut bits: Vec<u64>| {
        bits.sort_unstable();
        bits
    };
    let found = sorted(array.bits.clone());
    let stored = [false, true].map(|big_endian| sorted(elements(data, dtype, big_endian)));
    assert!(stored.contains(&found), "{array:?} of {data:?}");
    rewrite(bytes, array);
}

/// Round trip through the writer.
fn rewrite(bytes: &[u8], array: &Array) {
    let shape = &array.info.shape;
    let (Some(&classes), 0..=8) = (shape.last(), shape.len()) else { return };
    if classes == 0 || i32::try_from(classes).is_err() {
        return;
    }
    let dtype = array.info.dtype;
    let source = file(".npy", bytes);
    let name = (dtype == Dtype::Bf16).then_some("bfloat16");
    let folder = folder();
    let path = folder.path().join("a.npy");
    let writer = NpyWriter::create(&path, classes, dtype).unwrap().shaped(shape).unwrap();
    let mut writer = Box::new(writer);
    let mut reader = open(&at(source.path(), name)).unwrap();
    let mut values = Values::default();
    loop {
        reader.read(classes * (100 / classes).max(1), &mut values).unwrap();
        if values.is_empty() {
            break;
        }
        writer.write_dense(values.view()).unwrap();
    }
    writer.finish().unwrap();
    let mut expected = array.clone();
    if dtype == Dtype::Bf16 {
        expected.info.dtype = Dtype::F32;
        expected.bits.iter_mut().for_each(|bits| *bits = as_f32(*bits, dtype).into());
    }
    assert_eq!(read(&at(&path, None)).unwrap(), expected);
}
