//! Text files of people and programs: delimiters, headers, gzip.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use shafer_data::{Columns, Delimiter, Location, Result, TableOptions, Values, open_with};

fn options(columns: &[&str], exclude: &[&str]) -> TableOptions {
    let texts = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    TableOptions { delimiter: None, columns: texts(columns), exclude: texts(exclude) }
}

fn read_as(
    ending: &str,
    bytes: &[u8],
    options: &TableOptions,
) -> Result<(usize, Vec<f64>, Option<Columns>)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(format!("FILE.{ending}"));
    fs::write(&path, bytes).unwrap();
    let mut reader = open_with(&Location { path: Some(path), name: None }, options)?;
    let (width, columns) = (reader.info().shape[0], reader.columns().cloned());
    let mut all = Vec::new();
    loop {
        // A block that ends within a row.
        let mut block = Values::default();
        reader.read(width + 1, &mut block)?;
        let Values::F64(values) = block else { panic!("text is f64") };
        if values.is_empty() {
            return Ok((width, all, columns));
        }
        all.extend(values);
    }
}

#[track_caller]
fn same(text: &str, width: usize, values: &[f64]) {
    let (found, read, _) = read_as("txt", text.as_bytes(), &TableOptions::default()).unwrap();
    assert_eq!((found, &read[..]), (width, values), "{text:?}");
}

#[track_caller]
fn refused_with(text: &[u8], options: &TableOptions, expected: &str) {
    let error = read_as("csv", text, options).unwrap_err().to_string();
    let (_, found) = error.split_once("FILE.csv: ").unwrap();
    assert!(found.starts_with(expected), "found:    {found}\nexpected: {expected}");
}

#[track_caller]
fn refused(text: &str, expected: &str) {
    refused_with(text.as_bytes(), &TableOptions::default(), expected);
}

const ROWS: [f64; 6] = [1.0, -2.5, 3.0, 40.0, 0.5, 6.0];

#[test]
fn separators_are_recognised() {
    for text in [
        "1,-2.5,3\n4e1,.5,6\n",
        "1;-2.5;3\n4e1;.5;6\n",
        "1\t-2.5\t3\n4e1\t.5\t6\n",
        "1 -2.5 3\n4e1 .5 6\n",
        "   1   -2.5  3  \n  40    0.5\t6\n".replace('\t', " ").as_str(),
        "1 , -2.5, 3\n4e1,.5 ,6",
        "\"1\";\"-2.5\";\"3\"\n\"40\";\"0.5\";\"6\"\n",
        "a b;c, d;e\n1;-2.5;3\n40;0.5;6\n",
        "\"a;b\",c,\"d, \"\"e\"\"\"\n1,-2.5,3\n40,0.5,6\n",
        "a b c\n1 -2.5 3\n40 0.5 6\n",
        // As numpy.savetxt writes them, with a header and without.
        "# a b c\n1.000000000000000000e+00 -2.500000000000000000e+00 3.000000000000000000e+00\n\
         4.000000000000000000e+01 5.000000000000000000e-01 6.000000000000000000e+00\n",
        // Windows, a byte order mark, blank lines, comments, no line break at the end, old Macs.
        "a,b,c\r\n1,-2.5,3\r\n40,0.5,6\r\n",
        "\u{feff}a;b;c\r\n1;-2.5;3\r\n40;0.5;6",
        "\n# it's \"so\n1,-2.5,3\n\n   \n  # 7,8,9\n40,0.5,6\n\n",
        "a,b,c\r1,-2.5,3\r40,0.5,6",
    ] {
        same(text, 3, &ROWS);
    }
    same("1;2;3", 3, &[1.0, 2.0, 3.0]);
    same("1\n2\n", 1, &[1.0, 2.0]);
    same("my score\n1\n2\n", 1, &[1.0, 2.0]);
}

#[test]
fn a_separator_can_be_named() {
    let with = |delimiter: &str| TableOptions {
        delimiter: Some(delimiter.parse().unwrap()),
        ..TableOptions::default()
    };
    for (delimiter, text) in [("|", "1|-2.5|3\n40|0.5|6"), ("space", "1 -2.5\t3\n 40 0.5  6\n")] {
        assert_eq!(read_as("txt", text.as_bytes(), &with(delimiter)).unwrap().1, ROWS);
    }
    refused_with(
        b"1,2\n3,4\n",
        &with(";"),
        "line 1, column 1: `1,2` has a decimal comma (separated",
    );
    let missing = "line 1, column 2: `` is not a number (separated by tabs)";
    refused_with(b"1\t\t3\n4\t\t6\n", &TableOptions::default(), missing);
    for wrong in ["", "1", "a", ".", "-", "#", "\"", ",,", "\u{e9}", "\n"] {
        assert!(wrong.parse::<Delimiter>().is_err(), "{wrong:?}");
    }
}

#[test]
fn no_line_is_lost() {
    let nothing = "and nothing follows; write one row of numbers a line";
    let header = |separator: &str| {
        format!("has no rows: line 1 is taken for a header ({separator}), {nothing}")
    };
    refused("a;b\n", &header("separated by semicolons"));
    refused("a b\n", &header("separated by spaces"));
    refused("1|2|3\n", &header("no separator found; --delimiter names one"));
    refused("# only a comment\n", "holds no values");
    refused(
        "1,2\n3,\r4\n",
        "cannot read: line 2 has a carriage return within; end every line the same way",
    );
    refused(
        "1|2\n3|4\n",
        "line 2, column 1: `3|4` is not a number (no separator found; --delimiter",
    );
    // Neither of these first lines is a header.
    refused("NA,NA\n1,2\n", "line 1, column 1: `NA` is not a number (separated by commas)");
    refused(",,\n1,2,3\n", "line 1, column 1: `` is not a number (separated by commas)");
    let comma = "line 1, column 1: `1,5` has a decimal comma (separated by ";
    refused("1,5;2,5\n", &format!("{comma}semicolons); write numbers with a decimal point"));
    refused("1,5;2,5\n1,5;3,5\n", &format!("{comma}semicolons)"));
    refused("1,5\t2,5\n", &format!("{comma}tabs)"));
    refused("\"1,5\",\"2,5\"\n", &format!("{comma}commas)"));
    refused(
        "a;b\n1,5;2,5\n",
        "line 2, column 1: `1,5` has a decimal comma (separated by semicolons)",
    );
    // As pandas writes columns without names, with the index and without.
    refused("0,1,2\n0.5,0.25,0.125\n", "the first line counts the columns, as pandas writes their");
    refused(",0,1\n0,0.5,0.25\n", "line 1, column 1: `` is not a number");
    same("0,1,2\n3,4,5\n", 3, &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
}

#[test]
fn lines_are_named_as_an_editor_counts_them() {
    let ragged =
        "has 1 value, the first has 2 (separated by commas); write one row of numbers a line";
    refused("# a\n\n1,2\n# b\n\n3\n", &format!("line 6 {ragged}"));
    refused("a,b\r\n1,2\r\n\r\n3\r\n", &format!("line 4 {ragged}"));
}

#[test]
fn other_encodings_are_refused_by_name() {
    let utf16: Vec<u8> = "\u{feff}1,2\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let none = TableOptions::default();
    refused_with(&utf16, &none, "is text in UTF-16; save it as UTF-8");
    refused_with(&utf16[2..], &none, "is not UTF-8 text: byte 1 is 0; save it as UTF-8");
    let swapped: Vec<u8> = utf16.chunks(2).flat_map(|pair| [pair[1], pair[0]]).collect();
    refused_with(&swapped, &none, "is text in UTF-16");
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn gzip_is_undone() {
    let none = TableOptions::default();
    let lines: Vec<String> = (0..50_000).map(|i| format!("{}.5,{}\n", i % 91, i % 7)).collect();
    let text = lines.concat();
    let expected: Vec<f64> =
        (0..50_000).flat_map(|i| [f64::from(i % 91) + 0.5, f64::from(i % 7)]).collect();
    let whole = gzip(text.as_bytes());
    for ending in ["csv.gz", "tsv.gz", "txt.gz", "dat.GZ", "csv"] {
        assert!(read_as(ending, &whole, &none).unwrap().1 == expected, "{ending}");
    }
    // The extension alone does not make a gzip file.
    assert!(read_as("csv.gz", text.as_bytes(), &none).unwrap().1 == expected);
    let (first, second) = text.as_bytes().split_at(text.len() / 3);
    let members = [gzip(first), vec![0; 512], gzip(second), vec![0; 70_000]].concat();
    assert!(read_as("csv.gz", &members, &none).unwrap().1 == expected);

    let message = |bytes: &[u8]| read_as("csv.gz", bytes, &none).unwrap_err().to_string();
    for cut in [whole.len() - 1, whole.len() - 8, whole.len() / 2, 15, 5] {
        let found = message(&whole[..cut]);
        assert!(
            found.ends_with("cannot read: the gzip is truncated; copy or write it again"),
            "{found}"
        );
    }
    let found = message(&[&whole[..], b"rest"].concat());
    assert!(found.contains("cannot read: the gzip is "), "{found}");
    let mut damaged = whole.clone();
    *damaged.last_mut().unwrap() ^= 1;
    assert!(message(&damaged).contains("cannot read: the gzip is damaged ("));
    for ending in ["npy.gz", "gz", "npz.gz"] {
        let found = read_as(ending, &whole, &none).unwrap_err().to_string();
        assert!(found.contains("has an unknown format"), "{found}");
    }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

#[track_caller]
fn takes(text: &str, options: &TableOptions, values: &[f64], taken: &[&str], left_out: &[&str]) {
    let (width, read, columns) = read_as("csv", text.as_bytes(), options).unwrap();
    assert_eq!((width, &read[..]), (taken.len(), values), "{text:?}");
    let (taken, left_out) = (names(taken), names(left_out));
    assert_eq!(columns.unwrap(), Columns { taken, left_out, lists: false }, "{text:?}");
}

#[test]
fn an_index_is_no_class() {
    let none = TableOptions::default();
    let rows = [0.5, 1.5, 2.5, 3.5];
    // As pandas and R write it.
    for name in ["", "index", "id", "Unnamed: 0", "\"\""] {
        let text = format!("{name},cat,dog\n0,0.5,1.5\n1,2.5,3.5\n");
        let name = name.trim_matches('"');
        takes(&text, &none, &rows, &["cat", "dog"], &[name]);
    }
    takes("id,cat,dog\nx1,0.5,1.5\nx2,2.5,3.5\n", &none, &rows, &["cat", "dog"], &["id"]);
    // Among languages, `id` may be one.
    refused("id,en\n0.5,1.5\n", "the first column, `id`, has the name of an index, but not its");
    let languages = options(&["*"], &[]);
    takes("id,en\n0.5,1.5\n2.5,3.5\n", &languages, &rows, &["id", "en"], &[]);
    // Without a name, an index is recognised by its numbers.
    let text = "0,0.5,1.5\n1,2.5,3.5\n2,0.5,1.5\n";
    refused(
        text,
        "the first column counts the rows: it is an index, not a class; leave it out with",
    );
    let expected = [0.5, 1.5, 2.5, 3.5, 0.5, 1.5];
    takes(text, &options(&[], &["0"]), &expected, &["1", "2"], &["0"]);
    takes(text, &options(&["1..2"], &[]), &expected, &["1", "2"], &["0"]);
    refused(&format!("n,a,b\n{text}"), "the first column counts the rows");
    same("0,3,1\n1,7,2\n2,4,4\n", 3, &[0.0, 3.0, 1.0, 1.0, 7.0, 2.0, 2.0, 4.0, 4.0]);
}

#[test]
fn columns_are_chosen() {
    let text = "id,lat,logit_0,logit_1,name\n0,52.5,1,2,x\n1,48.1,3,4,y\n";
    refused(
        text,
        "has `lat`, `name` beside logit_0, logit_1; say which columns are logits, as in \
                   --columns 'logit_*', or --exclude the others",
    );
    let logits = [1.0, 2.0, 3.0, 4.0];
    let (taken, left) = (["logit_0", "logit_1"], ["id", "lat", "name"]);
    for columns in [&["logit_0..logit_1"][..], &["logit_*"], &["logit_0", "logit_1"]] {
        takes(text, &options(columns, &[]), &logits, &taken, &left);
    }
    takes(text, &options(&[], &["lat", "name"]), &logits, &taken, &left);
    takes(
        text,
        &options(&["logit_1", "logit_0"], &[]),
        &[2.0, 1.0, 4.0, 3.0],
        &["logit_1", "logit_0"],
        &left,
    );
    let unknown = "has no column `logit_9`; it holds `id`, `lat`, `logit_0`, `logit_1`, `name`";
    refused_with(text.as_bytes(), &options(&["logit_9"], &[]), unknown);
    refused_with(text.as_bytes(), &options(&[], &["logit_9"]), unknown);
    refused_with(
        text.as_bytes(),
        &options(&["name"], &[]),
        "line 2, column 5: `x` is not a number (separated by commas); leave columns that are not",
    );
    refused("time,left,right\n0,1,2\n", "has a column `time`, which does not look like a class");
}
