//! Text of any bytes. Without quotes, a plain splitting of lines gives the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shafer_fuzz::files::{arrays, file};

fuzz_target!(|bytes: &[u8]| {
    let file = file(".csv", bytes);
    let mut read = arrays(file.path());
    assert!(read.len() <= 1);
    let array = read.pop().map(|(_, array)| array);
    if bytes.contains(&b'"') {
        return;
    }
    let Some(Ok(array)) = array else {
        assert_eq!(split(bytes), None);
        return;
    };
    let (columns, values) = split(bytes).unwrap();
    assert_eq!(array.info.shape, [columns]);
    assert!(array.bits.iter().copied().eq(values.iter().map(|value| value.to_bits())));
});

/// The number of columns, and the values; or that it is no table.
fn split(bytes: &[u8]) -> Option<(usize, Vec<f64>)> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let lines = bytes.split(|byte| matches!(byte, b'\n' | b'\r')).filter(|line| !line.is_empty());
    let number = |field: &[u8]| std::str::from_utf8(field).ok()?.trim_ascii().parse::<f64>().ok();
    let mut rows = lines.map(|line| line.split(|&byte| byte == b',').map(number).collect());
    let first: Vec<Option<f64>> = rows.next()?;
    let columns = first.len();
    let mut values = Vec::new();
    // A line of names has no number in it.
    if first.iter().any(Option::is_some) {
        values.extend(first.into_iter().collect::<Option<Vec<f64>>>()?);
    }
    for row in rows {
        let row = row.into_iter().collect::<Option<Vec<f64>>>()?;
        if row.len() != columns {
            return None;
        }
        values.extend(row);
    }
    Some((columns, values))
}
