//! Arbitrary bytes as text. Tables of plain numbers agree with `str::split`, unless the reader refuses them as
//! ambiguous.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shafer_fuzz::files::{arrays, file};

fuzz_target!(|bytes: &[u8]| {
    let file = file(".csv", bytes);
    let mut read = arrays(file.path());
    assert!(read.len() <= 1);
    let array = read.pop().map(|(_, array)| array);
    let plain = |byte: &u8| byte.is_ascii_digit() || b".,-\n".contains(byte);
    if !bytes.iter().all(plain) {
        return;
    }
    let (Some((columns, values)), Some(Ok(array))) = (split(bytes), array) else { return };
    assert_eq!(array.info.shape, [columns]);
    assert!(array.bits.iter().copied().eq(values.iter().map(|value| value.to_bits())));
});

/// The number of columns and the values; `None` if the text is not a table of numbers only.
fn split(bytes: &[u8]) -> Option<(usize, Vec<f64>)> {
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let number = |field: &[u8]| std::str::from_utf8(field).ok()?.parse::<f64>().ok();
    let (mut columns, mut values) = (0, Vec::new());
    for line in lines {
        let row = line.split(|&byte| byte == b',').map(number).collect::<Option<Vec<f64>>>()?;
        if columns != 0 && row.len() != columns {
            return None;
        }
        columns = row.len();
        values.extend(row);
    }
    Some((columns, values))
}
