//! Arbitrary bytes through a pipe, like standard input: the format is detected from the first bytes, and the result
//! equals that of a file of the same format.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shafer_fuzz::files::{PIPE, at, file, line, read, read_in_blocks, read_piped};

fuzz_target!(|bytes: &[u8]| {
    if bytes.len() > PIPE {
        return;
    }
    let ending = match bytes {
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => ".npy",
        [b'P', b'K', 3, 4, ..] => ".npz",
        [b'P', b'A', b'R', b'1', ..] => ".parquet",
        [b'A', b'R', b'R', b'O', b'W', b'1', ..] | [0xff, 0xff, 0xff, 0xff, ..] => ".arrow",
        [_, _, _, _, _, 0, 0, 0, b'{', ..] => ".safetensors",
        _ => ".csv",
    };
    let kept = file(ending, bytes);
    // An extension, and the name of an array in the seed corpus.
    for name in [None, Some(if ending == ".npy" { "bfloat16" } else { "a" })] {
        let kept = read(&at(kept.path(), name));
        for block in [3, 1 << 16] {
            let piped = read_piped(bytes, name, block);
            if let Err(error) = &piped {
                line(error);
            }
            assert_eq!(piped.is_ok(), kept.is_ok(), "{piped:?} and {kept:?}");
            if let (Ok(piped), Ok(kept)) = (&piped, &kept) {
                assert_eq!(piped, kept);
            }
        }
        // A file without a known extension is detected in the same way, except text.
        let unnamed = file("", bytes);
        let unnamed = read_in_blocks(&at(unnamed.path(), name), 1 << 16);
        assert_eq!(unnamed.is_ok(), ending != ".csv" && kept.is_ok(), "{unnamed:?}");
    }
});
