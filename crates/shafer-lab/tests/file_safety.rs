//! Safety of users' files: overwriting, permissions, temporary files, low memory, full disks.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::path::Path;

use common::{complaint, folder, json, npy, shafer};

/// Two rows of text, which no writer of shafer makes.
const CSV: &str = "0.5,1.5,-2\n1,2,3\n";

/// A model with one linear layer from two features to three classes.
fn model() -> Vec<u8> {
    let header = r#"{"head.weight":{"dtype":"F32","shape":[3,2],"data_offsets":[0,24]}}"#;
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.bytes());
    bytes.extend([1.0_f32, 0.0, 0.0, 1.0, 1.0, 1.0].iter().flat_map(|x| x.to_le_bytes()));
    bytes
}

fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| (path.display().to_string(), fs::read(&path).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn an_output_is_never_an_input() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("m.safetensors"), model()).unwrap();
    fs::write(at("phi.npy"), npy(&[2, 2], &[1.0, 2.0, 3.0, 4.0])).unwrap();
    fs::write(at("mask.npy"), npy(&[4], &[1.0, 1.0, 0.0, 1.0])).unwrap();
    fs::write(at("names.html"), "a\nb\nc\nd\n").unwrap();
    fs::write(at("scene.json"), "0 1 0 0\n").unwrap();
    fs::write(at("weights.parquet"), "weights").unwrap();
    fs::create_dir(at("sub")).unwrap();
    let mut commands: Vec<(Vec<&str>, &str)> = vec![
        (vec!["sparsify", "logits.npy", "-o", "logits.npy"], "logits.npy"),
        (vec!["sparsify", "logits.npy", "-o", "sub/../logits.npy"], "logits.npy"),
        (vec!["sparsify", "logits.npy", "--mask", "mask.npy", "-o", "mask.npy"], "mask.npy"),
        (
            vec![
                "sparsify",
                "--head",
                "m.safetensors",
                "--features",
                "phi.npy",
                "-o",
                "m.safetensors",
            ],
            "m.safetensors",
        ),
        (
            vec![
                "sparsify",
                "--head",
                "m.safetensors:head.weight",
                "--features",
                "phi.npy",
                "-o",
                "phi.npy",
            ],
            "phi.npy",
        ),
        (
            vec!["compare", "logits.npy", "--labels", "names.html", "--html", "names.html"],
            "names.html",
        ),
        (vec!["predict", "scene.json", "-o", "scene.json"], "scene.json"),
        (
            vec!["predict", "scene.json", "--weights", "weights.parquet", "-o", "weights.parquet"],
            "weights.parquet",
        ),
    ];
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("logits.npy", at("symbolic.npy")).unwrap();
        fs::hard_link(at("logits.npy"), at("hard.npy")).unwrap();
        commands.push((vec!["sparsify", "logits.npy", "-o", "symbolic.npy"], "logits.npy"));
        commands.push((vec!["sparsify", "symbolic.npy", "-o", "logits.npy"], "symbolic.npy"));
        commands.push((vec!["sparsify", "logits.npy", "-o", "hard.npy"], "logits.npy"));
    }
    let before = files(folder.path());
    for (arguments, input) in commands {
        for force in [false, true] {
            let mut arguments = arguments.clone();
            let output = *arguments.last().unwrap();
            arguments.extend(force.then_some("--force"));
            let expected = format!(
                "shafer: {output}: is the same file as the input {input}; name another output"
            );
            assert_eq!(complaint(folder.path(), &arguments), expected);
        }
    }
    // The extension of a page.
    let message =
        complaint(folder.path(), &["compare", "logits.npy", "--html", "logits.npy", "--force"]);
    assert_eq!(
        message,
        "shafer: logits.npy: is not an .html name; end the name of the page in .html"
    );
    assert_eq!(files(folder.path()), before);
}

#[cfg(unix)]
#[test]
fn standard_input_is_an_input() {
    let folder = folder();
    let logits = folder.path().join("logits.npy");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_shafer"))
        .args(["sparsify", "-", "-o", "logits.npy", "--force"])
        .current_dir(folder.path())
        .stdin(fs::File::open(&logits).unwrap())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("is the same file as the input standard input"), "{message}");
}

#[test]
fn only_our_own_files_are_replaced_without_force() {
    let folder = folder();
    let scene: Vec<String> = (0..12).map(|t| format!("{} 1 {t}.0 0.0\n", t * 10)).collect();
    fs::write(folder.path().join("street.txt"), scene.concat()).unwrap();
    let outputs = [
        ("sparsify", "logits.npy", "-o", "out.npy"),
        ("sparsify", "logits.npy", "-o", "out.npz"),
        ("sparsify", "logits.npy", "-o", "out.safetensors"),
        ("sparsify", "logits.npy", "-o", "out.parquet"),
        ("sparsify", "logits.npy", "-o", "out.csv"),
        ("compare", "logits.npy", "--html", "out.html"),
        ("predict", "street.txt", "-o", "out.json"),
        ("predict", "street.txt", "-o", "modes.parquet"),
    ];
    for (command, input, option, output) in outputs {
        let path = folder.path().join(output);
        let run = |more: &[&str]| {
            shafer(folder.path(), &[&[command, input, option, output, "-Q"], more].concat())
        };
        // The second run replaces the output of the first.
        for _ in 0..2 {
            let ran = run(&[]);
            assert!(ran.status.success(), "{output}: {ran:?}");
        }
        // An empty file may be replaced.
        fs::write(&path, "").unwrap();
        assert!(run(&[]).status.success(), "{output}");
        let written = fs::read(&path).unwrap();
        // A file by another program.
        fs::write(&path, CSV).unwrap();
        let message = complaint(folder.path(), &[command, input, option, output, "-Q"]);
        let expected =
            format!("shafer: {output}: exists and was not written by shafer; --force replaces it");
        assert_eq!(message, expected);
        assert_eq!(fs::read_to_string(&path).unwrap(), CSV);
        assert!(run(&["--force"]).status.success(), "{output}");
        if command == "sparsify" {
            assert_eq!(fs::read(&path).unwrap(), written, "{output}");
        }
    }
    // Arrays in .npy that hold no distributions: logits, a mask, features in [0, 1].
    for (shape, values) in [
        (&[1, 2][..], &[3.0, -1.0][..]),
        (&[4], &[1.0, 1.0, 0.0, 1.0]),
        (&[2, 2], &[0.0, 0.5, 0.9, 0.3]),
    ] {
        let others = npy(shape, values);
        fs::write(folder.path().join("others.npy"), &others).unwrap();
        let message = complaint(folder.path(), &["sparsify", "logits.npy", "-o", "others.npy"]);
        assert!(message.contains("--force"), "{message}");
        assert_eq!(fs::read(folder.path().join("others.npy")).unwrap(), others);
    }
}

#[cfg(unix)]
#[test]
fn permissions_follow_the_umask_and_what_was_there() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = folder();
    let path = folder.path().join("out.npz");
    let program = env!("CARGO_BIN_EXE_shafer");
    let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    let run = |umask: &str| {
        let script = format!("umask {umask}; exec {program} sparsify logits.npy -o out.npz -Q");
        let ran = std::process::Command::new("sh")
            .args(["-c", &script])
            .current_dir(folder.path())
            .status()
            .unwrap();
        assert!(ran.success());
    };
    for (umask, expected) in [("022", 0o644), ("077", 0o600), ("002", 0o664)] {
        let _ = fs::remove_file(&path);
        run(umask);
        assert_eq!(mode(), expected);
    }
    for kept in [0o600, 0o640, 0o444] {
        fs::set_permissions(&path, fs::Permissions::from_mode(kept)).unwrap();
        run("022");
        assert_eq!(mode(), kept);
    }
}

/// A running program that has created its output and waits for more rows.
#[cfg(unix)]
fn waiting(folder: &Path) -> (std::process::Child, std::process::ChildStdin, std::path::PathBuf) {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    let known = temporary_files(folder);
    let mut child = Command::new(env!("CARGO_BIN_EXE_shafer"))
        .args(["sparsify", "-", "-o", "out.npz", "-Q"])
        .current_dir(folder)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // Enough lines to recognise the separator by.
    stdin.write_all(CSV.repeat(40).as_bytes()).unwrap();
    let start = Instant::now();
    let new = loop {
        let new = temporary_files(folder).into_iter().find(|path| !known.contains(path));
        if let Some(new) = new {
            break new;
        }
        assert!(start.elapsed() < Duration::from_mins(1), "no output was begun");
        std::thread::sleep(Duration::from_millis(10));
    };
    (child, stdin, new)
}

#[cfg(unix)]
fn temporary_files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.display().to_string().contains("/.out.npz.tmp")).collect()
}

#[cfg(unix)]
#[test]
fn what_killed_runs_leave_is_removed_by_the_next() {
    let folder = folder();
    let (mut killed, _stdin, left) = waiting(folder.path());
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(temporary_files(folder.path()), [left]);
    // The second run creates its own file and removes that of the first; the third leaves that of the second.
    let (mut running, stdin, held) = waiting(folder.path());
    assert_eq!(temporary_files(folder.path()), std::slice::from_ref(&held));
    assert!(shafer(folder.path(), &["sparsify", "logits.npy", "-o", "out.npz"]).status.success());
    assert_eq!(temporary_files(folder.path()), [held]);
    drop(stdin);
    assert!(running.wait().unwrap().success());
    assert!(temporary_files(folder.path()).is_empty());
}

/// The input is a pipe, so that the mask can be overwritten between opening and the end of reading.
#[cfg(unix)]
#[test]
fn an_input_that_changes_stops_the_command() {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    let folder = tempfile::tempdir().unwrap();
    let mask = folder.path().join("mask.csv");
    fs::write(&mask, "1,0,1\n1,1,1\n".repeat(40)).unwrap();
    let past = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    fs::File::options().write(true).open(&mask).unwrap().set_modified(past).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_shafer"))
        .args(["sparsify", "-", "--mask", "mask.csv", "-o", "out.npz"])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // Enough lines to recognise the separator by.
    stdin.write_all(CSV.repeat(40).as_bytes()).unwrap();
    // The output is created after all inputs are open.
    while temporary_files(folder.path()).is_empty() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before its output was begun");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    fs::write(&mask, "0,0,1\n1,1,1\n").unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let expected = "shafer: mask.csv: was modified while it was read; run again when no program writes to it\n";
    assert_eq!(String::from_utf8_lossy(&output.stderr), expected);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn more_threads_than_processors_are_not_started() {
    let folder = folder();
    let ran = shafer(folder.path(), &["sparsify", "logits.npy", "--threads", "100000"]);
    assert!(ran.status.success());
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(said.starts_with("shafer: --threads 100000: "), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

/// With little memory, a command works or fails with one line.
#[cfg(target_os = "linux")]
#[test]
fn too_little_memory_is_an_error_like_others() {
    let folder = tempfile::tempdir().unwrap();
    let classes = 1 << 21;
    let logits: Vec<f32> = (0..classes).map(|i| f32::from((i % 1000) as u16) / 100.0).collect();
    fs::write(folder.path().join("wide.npy"), npy(&[1, classes], &logits)).unwrap();
    let scene: Vec<String> = (0..12).map(|t| format!("{} 1 {t}.0 0.0\n", t * 10)).collect();
    fs::write(folder.path().join("street.txt"), scene.concat()).unwrap();
    let commands = [
        "predict street.txt --html out.html",
        "sparsify wide.npy",
        "sparsify wide.npy -o out.npz",
        "sparsify wide.npy -o out.npy --method sparsemax",
        "explain wide.npy",
        "compare wide.npy --methods evidential,top-k:k=5 --html out.html",
    ];
    for command in commands {
        let (mut failed, mut worked) = (0, 0);
        for megabytes in [100, 150, 180, 220, 300, 600, 8000] {
            let program = env!("CARGO_BIN_EXE_shafer");
            let script = format!("ulimit -v {}; exec {program} {command} -Q", megabytes * 1000);
            let ran = std::process::Command::new("sh")
                .args(["-c", &script])
                .current_dir(folder.path())
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&ran.stderr);
            match ran.status.code() {
                Some(0) => worked += 1,
                Some(2) => failed += 1,
                other => panic!("{command} with {megabytes} MB: {other:?}: {said}"),
            }
            assert!(said.lines().count() <= 1, "{command} with {megabytes} MB: {said}");
            for output in ["out.npz", "out.npy", "out.html"] {
                let _ = fs::remove_file(folder.path().join(output));
            }
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "{command}");
        }
        assert!(failed > 0 && worked > 0, "{command}: {failed} failed and {worked} worked");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn paths_need_not_be_utf_8() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    let folder = folder();
    let odd = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
    let (input, output) = (odd(b"in\xff.npy"), odd(b"out\xfe.npz"));
    fs::rename(folder.path().join("logits.npy"), folder.path().join(&input)).unwrap();
    fs::write(folder.path().join(odd(b"mask\xff.csv")), "1,1,0,1\n").unwrap();
    let run = |arguments: &[&OsStr]| {
        let ran = std::process::Command::new(env!("CARGO_BIN_EXE_shafer"))
            .args(arguments)
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(ran.status.success(), "{ran:?}");
    };
    let word = OsStr::new;
    let mask = odd(b"mask\xff.csv");
    run(&[word("sparsify"), &input, word("--mask"), &mask, word("-o"), &output]);
    assert!(folder.path().join(&output).is_file());
    // The name of an array in an archive follows a colon.
    let named = odd(b"out\xfe.npz:data");
    run(&[word("explain"), &named, word("--axis"), word("0")]);
    let page = odd(b"page\xff.html");
    let (labels, names) = (odd(b"labels\xff.csv"), odd(b"names\xff.txt"));
    fs::write(folder.path().join(&labels), "0\n1\n2\n").unwrap();
    fs::write(folder.path().join(&names), "a\nb\nc\nd\n").unwrap();
    let options = [word("--html"), &page, word("--labels"), &labels, word("--class-names"), &names];
    run(&[&[word("compare"), &*input][..], &options].concat());
    assert!(folder.path().join(&page).is_file());
    run(&[word("compare"), &input, word("--json")]);
}

#[test]
fn rows_are_counted_from_the_end() {
    let folder = folder();
    let text = "3,1,-1,-3\n0,0,0,0\n-9,3,3,3\n";
    fs::write(folder.path().join("logits.csv"), text).unwrap();
    for file in ["logits.npy", "logits.csv"] {
        for (from_end, row) in [("-1", "2"), ("-2", "1"), ("-3", "0")] {
            let explained = json(folder.path(), &["explain", file, "--row", from_end, "--json"]);
            let expected = json(folder.path(), &["explain", file, "--row", row, "--json"]);
            assert_eq!(explained, expected);
            assert_eq!(explained["row"].to_string(), row);
        }
        let message = complaint(folder.path(), &["explain", file, "--row", "-4"]);
        assert_eq!(
            message,
            format!("shafer: {file}: there is no row -4: the file has 3, counted from 0")
        );
    }
    // Exceeds the buffer for streams.
    let message = complaint(folder.path(), &["explain", "logits.csv", "--row", "-5000000"]);
    assert!(message.ends_with("count from the beginning"), "{message}");
}

#[test]
fn one_row_is_not_several() {
    let folder = folder();
    fs::write(folder.path().join("one.csv"), "1,2,3\n").unwrap();
    fs::write(folder.path().join("names.txt"), "a\n").unwrap();
    for command in ["sparsify", "compare"] {
        let ran = shafer(folder.path(), &[command, "one.csv"]);
        let text = String::from_utf8(ran.stdout).unwrap();
        assert!(text.starts_with("1 row of 3 classes"), "{text}");
    }
    let message = complaint(folder.path(), &["explain", "one.csv", "--class-names", "names.txt"]);
    assert_eq!(
        message,
        "shafer: --class-names has 1 name, but there are 3 classes; write one name per line"
    );
    let ran = shafer(folder.path(), &["compare", "one.csv", "--html", "page.html"]);
    assert!(ran.status.success());
    let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.contains("1 row of 3 classes") && !page.contains("1 rows"));
    assert!(page.contains("<title>1 row keeps 3</title>"));
}

#[test]
fn many_classes_are_listed_only_when_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let logits: Vec<f32> = (0..1234).map(|i| (i * 7919 % 1234) as f32 / 100.0).collect();
    fs::write(folder.path().join("wide.npy"), npy(&[1, 1234], &logits)).unwrap();
    let some = json(folder.path(), &["explain", "wide.npy", "--json"]);
    let all = json(folder.path(), &["explain", "wide.npy", "--json", "--all"]);
    let length = |row: &serde_json::Value| row["classes"].as_array().unwrap().len();
    assert_eq!((length(&some), &some["left_out"]), (1000, &234.into()));
    assert_eq!((length(&all), &all["left_out"]), (1234, &0.into()));
    assert_eq!(some["classes"][999], all["classes"][999]);
    assert_eq!(some["kept"], all["kept"]);
    let text = shafer(folder.path(), &["explain", "wide.npy"]).stdout;
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("1210 less probable classes are not shown"), "{text}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_no_success() {
    let full = || fs::File::options().write(true).open("/dev/full").unwrap();
    let folder = folder();
    let commands: [&[&str]; 8] = [
        &["--help"],
        &["--version"],
        &["sparsify", "--help"],
        &["completions", "bash"],
        &["man"],
        &["sparsify", "logits.npy"],
        &["explain", "logits.npy", "--json"],
        &["compare", "logits.npy"],
    ];
    for arguments in commands {
        let ran = std::process::Command::new(env!("CARGO_BIN_EXE_shafer"))
            .args(arguments)
            .current_dir(folder.path())
            .stdout(full())
            .output()
            .unwrap();
        assert_eq!(ran.status.code(), Some(2), "{arguments:?}");
        let said = String::from_utf8(ran.stderr).unwrap();
        let expected = "shafer: cannot write to standard output: No space left on device";
        assert!(said.starts_with(expected) && said.lines().count() == 1, "{arguments:?}: {said}");
    }
}
