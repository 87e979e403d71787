//! Fetches a small made-up set from mirrors on the same machine. Needs the program `curl`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use super::*;

/// The behaviour of a mirror.
#[derive(Clone, Copy)]
enum Manner {
    /// Answers correctly.
    Good,
    /// Ignores `Range` and sends the whole file.
    WithoutRanges,
    /// Closes the connection after this number of bytes.
    Breaks(usize),
}

struct Mirror {
    address: String,
    /// The path and the first byte of each answered request.
    requests: Arc<Mutex<Vec<(String, usize)>>>,
}

impl Mirror {
    fn new(manner: Manner, files: &[(&str, Vec<u8>)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let files: HashMap<String, Vec<u8>> =
            files.iter().map(|(name, bytes)| (format!("/{name}"), bytes.clone())).collect();
        let log = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                answer(&stream.unwrap(), manner, &files, &log);
            }
        });
        Self { address, requests }
    }

    /// The first byte of each request since the last call.
    fn starts(&self) -> Vec<usize> {
        self.requests.lock().unwrap().drain(..).map(|(_, start)| start).collect()
    }
}

fn answer(
    mut stream: &TcpStream,
    manner: Manner,
    files: &HashMap<String, Vec<u8>>,
    log: &Mutex<Vec<(String, usize)>>,
) {
    let lines: Vec<String> = BufReader::new(stream)
        .lines()
        .map_while(|line| line.ok().filter(|l| !l.is_empty()))
        .collect();
    let Some(path) = lines.first().and_then(|line| line.split(' ').nth(1)) else { return };
    let range = lines.iter().find_map(|line| {
        let (name, value) = line.split_once(": bytes=")?;
        name.eq_ignore_ascii_case("range").then(|| value.trim_end_matches('-').parse().unwrap())
    });
    let Some(file) = files.get(path) else {
        let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngone");
        return;
    };
    let start: usize = if matches!(manner, Manner::WithoutRanges) { 0 } else { range.unwrap_or(0) };
    log.lock().unwrap().push((path.to_owned(), start));
    if start >= file.len() {
        let _ =
            stream.write_all(b"HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\n\r\n");
        return;
    }
    let rest = &file[start..];
    let (status, end) = if start > 0 { ("206 Partial", file.len() - 1) } else { ("200 OK", 0) };
    let mut head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n", rest.len());
    if start > 0 {
        let _ = write!(head, "Content-Range: bytes {start}-{end}/{}\r\n", file.len());
    }
    let sent = match manner {
        Manner::Breaks(most) => rest.len().min(most),
        Manner::Good | Manner::WithoutRanges => rest.len(),
    };
    let _ = stream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes());
    let _ = stream.write_all(&rest[..sent]);
}

fn large() -> Vec<u8> {
    (0..200_000_u32).map(|i| (i % 251) as u8).collect()
}

fn small() -> Vec<u8> {
    (0..3000_u32).map(|i| (i % 13) as u8).collect()
}

/// Two files. Their checksums were computed with `hashlib` of Python.
fn toy(mirrors: &[&Mirror]) -> Set {
    let file = |name: &str, remote: &str, bytes, sha256: &str| DataFile {
        name: name.to_owned(),
        remote: Some(remote.to_owned()),
        bytes,
        sha256: sha256.to_owned(),
    };
    let (a, b) = (
        "e24bc62381f1224fbbb74688663f8f9743b9680b193edd666835e97b06e730eb",
        "0f378acebd51c8b1fca222ee057b87b8de674e9aaaad845d7ff4a1e177117b36",
    );
    Set {
        name: "toy".to_owned(),
        files: vec![file("large", "sub/large.gz", 200_000, a), file("small", "small", 3000, b)],
        mirrors: mirrors.iter().map(|mirror| mirror.address.clone()).collect(),
        ..Set::default()
    }
}

fn files() -> Vec<(&'static str, Vec<u8>)> {
    vec![("sub/large.gz", large()), ("small", small())]
}

/// The folder of the set, if `curl` is installed.
fn root() -> Option<(tempfile::TempDir, [PathBuf; 1], PathBuf)> {
    if !shafer_testing::curl() {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_owned();
    let place = root.join("toy");
    fs::create_dir(&place).unwrap();
    Some((folder, [root], place))
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn get(set: &Set, root: &[PathBuf]) -> Result<Report> {
    fetch(set, root, None, true)
}

#[test]
fn files_are_verified_and_fetched_once() {
    let Some((_folder, root, place)) = root() else { return };
    let mirror = Mirror::new(Manner::Good, &files());
    let set = toy(&[&mirror]);
    let report = get(&set, &root).unwrap();
    assert_eq!((report.files.len(), &report.place), (2, &place));
    assert_eq!(names(&place), [".lock", "large.gz", "small"]);
    assert_eq!(fs::read(place.join("large.gz")).unwrap(), large());
    assert_eq!(mirror.starts(), [0, 0]);
    assert!(get(&set, &root).unwrap().files.is_empty());
    assert!(mirror.starts().is_empty());

    // Only a damaged file is fetched again.
    fs::write(place.join("small"), "damaged").unwrap();
    assert_eq!(get(&set, &root).unwrap().files[0].name, "small");
    assert_eq!(mirror.starts(), [0]);
}

#[test]
fn interrupted_downloads_resume() {
    let Some((_folder, root, place)) = root() else { return };
    let mirror = Mirror::new(Manner::Good, &files());
    let set = toy(&[&mirror]);
    fs::write(place.join("large.gz.part"), &large()[..70_000]).unwrap();
    // Complete, but not yet renamed.
    fs::write(place.join("small.part"), small()).unwrap();
    get(&set, &root).unwrap();
    assert_eq!(mirror.starts(), [70_000]);
    assert_eq!(names(&place), [".lock", "large.gz", "small"]);
    assert_eq!(fs::read(place.join("large.gz")).unwrap(), large());
}

/// Partial files of another file: shorter than the file, of its length, and longer.
#[test]
fn unrelated_partial_files_are_dropped() {
    let Some((_folder, root, place)) = root() else { return };
    let mirror = Mirror::new(Manner::Good, &files());
    for length in [10, 3000, 5000] {
        fs::write(place.join("small.part"), vec![9; length]).unwrap();
        get(&toy(&[&mirror]), &root).unwrap();
        assert_eq!(fs::read(place.join("small")).unwrap(), small());
        fs::remove_file(place.join("small")).unwrap();
    }
    let mirror = Mirror::new(Manner::WithoutRanges, &files());
    fs::write(place.join("small.part"), &small()[..1000]).unwrap();
    get(&toy(&[&mirror]), &root).unwrap();
    assert_eq!(fs::read(place.join("small")).unwrap(), small());
}

#[test]
fn broken_transfers_are_resumed() {
    let Some((_folder, root, place)) = root() else { return };
    let mirror = Mirror::new(Manner::Breaks(60_000), &files());
    get(&toy(&[&mirror]), &root).unwrap();
    assert_eq!(mirror.starts(), [0, 60_000, 120_000, 180_000, 0]);
    assert_eq!(fs::read(place.join("large.gz")).unwrap(), large());

    // After too many attempts the partial file is kept for the next run.
    fs::remove_file(place.join("large.gz")).unwrap();
    let mirror = Mirror::new(Manner::Breaks(1000), &files());
    let error = get(&toy(&[&mirror]), &root).unwrap_err().to_string();
    assert!(error.starts_with("cannot fetch large: http://127.0.0.1:"), "{error}");
    assert_eq!(names(&place), [".lock", "large.gz.part", "small"]);
}

#[test]
fn invalid_files_are_not_renamed() {
    let Some((_folder, root, place)) = root() else { return };
    let mut wrong = small();
    wrong[2999] ^= 1;
    let bad = Mirror::new(Manner::Good, &[("sub/large.gz", large()), ("small", wrong)]);
    let error = get(&toy(&[&bad]), &root).unwrap_err().to_string();
    let expected = format!("cannot fetch small: {}small: has the SHA-256 ", bad.address);
    assert!(error.starts_with(&expected) && !error.contains('\n'), "{error}");
    assert_eq!(names(&place), [".lock", "large.gz"]);
    assert_eq!(bad.starts(), [0, 0]);

    // The second mirror has the valid file, and the third is not used.
    let (good, other) = (Mirror::new(Manner::Good, &files()), Mirror::new(Manner::Good, &[]));
    let report = get(&toy(&[&bad, &good, &other]), &root).unwrap();
    assert_eq!(report.files[0].from, good.address);
    assert!(report.notes[0].contains("has the SHA-256 "), "{:?}", report.notes);
}

#[test]
fn sources_that_fail_are_all_named() {
    let Some((_folder, root, place)) = root() else { return };
    let empty = Mirror::new(Manner::Good, &[]);
    let mut set = toy(&[&empty]);
    set.mirrors.push("http://127.0.0.1:1/".to_owned());
    let error = get(&set, &root).unwrap_err().to_string();
    let expected = format!("cannot fetch large: {}sub/large.gz: The requested URL", empty.address);
    assert!(error.starts_with(&expected), "{error}");
    assert!(error.contains("error: 404; http://127.0.0.1:1/sub/large.gz: "), "{error}");
    assert_eq!(names(&place), [".lock"]);

    // Only the given mirror is used, with or without a trailing slash.
    let good = Mirror::new(Manner::Good, &files());
    fetch(&set, &root, Some(good.address.trim_end_matches('/')), true).unwrap();
    assert!(empty.starts().is_empty());
}

/// Plain files are found before compressed ones, and files in subfolders are found, too.
#[test]
fn invalid_files_do_not_hide_valid_ones() {
    let Some((_folder, root, place)) = root() else { return };
    let mirror = Mirror::new(Manner::Good, &files());
    fs::write(place.join("large"), "wrong").unwrap();
    fs::create_dir(place.join("a")).unwrap();
    fs::write(place.join("a/large"), "wrong too").unwrap();
    let report = get(&toy(&[&mirror]), &root).unwrap();
    assert_eq!(names(&place), [".lock", "a", "large.gz", "large.wrong", "small"]);
    assert_eq!(names(&place.join("a")), ["large.wrong"]);
    assert_eq!(report.notes.len(), 2, "{:?}", report.notes);
}

#[test]
fn only_one_process_fetches_into_a_folder() {
    let Some((_folder, root, place)) = root() else { return };
    let mirror = Mirror::new(Manner::Good, &files());
    let held = FolderLock::new(&place, "taken").unwrap();
    let error = get(&toy(&[&mirror]), &root).unwrap_err().to_string();
    assert!(error.ends_with("another process is fetching into it; wait until it has finished"));
    drop(held);
    get(&toy(&[&mirror]), &root).unwrap();
}

/// The files of a package in several folders, one copy of them invalid.
#[test]
fn files_are_taken_out_of_a_package() {
    let folder = tempfile::tempdir().unwrap();
    let (root, place) = (folder.path().join("data"), folder.path().join("package"));
    let target = root.join("toy");
    for (path, contents) in
        [("a/large", b"wrong".to_vec()), ("b/large.gz", large()), ("c/large", large())]
    {
        fs::create_dir_all(place.join(path).parent().unwrap()).unwrap();
        fs::write(place.join(path), contents).unwrap();
    }
    fs::create_dir_all(&target).unwrap();
    let set = toy(&[]);
    let report = Report {
        set: "toy".to_owned(),
        place: PathBuf::new(),
        files: Vec::new(),
        notes: Vec::new(),
    };
    let wanted = wanted(&set, &target).unwrap();
    let mut job = Job { set: &set, folder: &target, wanted, report };
    job.take(&place, "test").unwrap();
    assert_eq!(names(&target), ["large.gz"]);
    assert_eq!(job.wanted.len(), 1);
    assert!(job.report.notes[0].starts_with("test: large: has 5 bytes, not 200000"));
    let error = job.finish(&[root]).unwrap_err().to_string();
    assert!(error.starts_with("cannot fetch small: test: large: has 5 bytes"), "{error}");
}

fn tar(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, contents) in members {
        let mut header = tar::Header::new_ustar();
        header.set_size(contents.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, path, &contents[..]).unwrap();
    }
    builder.into_inner().unwrap()
}

/// Files without an address of their own are in the archive of the mirror, whose transfer breaks once.
#[test]
fn files_are_taken_out_of_an_archive() {
    let Some((_folder, root, place)) = root() else { return };
    let of = |mirror: &Mirror| {
        let mut set = toy(&[mirror]);
        set.archives = vec!["toy.tar".to_owned()];
        set.files.iter_mut().for_each(|file| file.remote = None);
        set
    };
    let mut wrong = small();
    wrong[0] ^= 1;
    let archive = tar(&[("toy-1.0/large", large()), ("toy-1.0/small", wrong)]);
    let bad = Mirror::new(Manner::Good, &[("toy.tar", archive)]);
    let error = get(&of(&bad), &root).unwrap_err().to_string();
    let expected = format!("cannot fetch large: {}toy.tar: has the SHA-256 ", bad.address);
    assert!(error.starts_with(&expected), "{error}");
    assert_eq!(names(&place), [".lock"]);

    let archive = tar(&[("toy-1.0/large", large()), ("toy-1.0/small", small())]);
    let mirror = Mirror::new(Manner::Breaks(120_000), &[("toy.tar", archive)]);
    let report = get(&of(&mirror), &root).unwrap();
    assert_eq!(mirror.starts(), [0, 120_000]);
    assert_eq!(names(&place), [".lock", "large", "small"]);
    assert_eq!(fs::read(place.join("large")).unwrap(), large());
    assert_eq!(report.files[1].from, format!("{}toy.tar", mirror.address));
}

#[test]
fn without_a_folder_and_by_hand_only() {
    let error = get(&toy(&[]), &[]).unwrap_err().to_string();
    assert_eq!(error, "no folder to fetch into; name one with --data-dir");
    let manual = Set { manual: Some("ask its author".to_owned()), ..toy(&[]) };
    let error = get(&manual, &[]).unwrap_err().to_string();
    assert_eq!(error, "toy needs a manual download: ask its author");
}
