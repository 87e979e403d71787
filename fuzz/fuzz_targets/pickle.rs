//! Arbitrary bytes as the pickle in an otherwise valid archive of `torch.save`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shafer_fuzz::bytes::{Member, zip};
use shafer_fuzz::files::{file, model};

/// The contents of the storages, as large as those of the models in the seed corpus.
const STORAGES: [(&str, usize); 6] = [
    ("m/data/0", 512),
    ("m/data/1", 160),
    ("m/data/2", 64),
    ("m/data/3", 160),
    ("m/data/4", 20),
    ("m/data/5", 7),
];

fuzz_target!(|pickle: &[u8]| {
    let data: Vec<u8> = (0..=u8::MAX).cycle().take(512).collect();
    let mut members = vec![Member::stored("m/data.pkl", pickle)];
    members.extend(STORAGES.map(|(name, size)| Member::stored(name, &data[..size])));
    members.push(Member::stored("m/byteorder", b"little"));
    let bytes = zip(&members);
    let file = file(".pt", &bytes);
    model(file.path(), bytes.len(), false);
});
