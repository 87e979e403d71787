//! Tables of made-up logits, and processes that cannot hang.
#![allow(dead_code, unreachable_pub, reason = "no test uses all of it")]

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use datafusion::arrow::array::{ArrayRef, Int64Array, ListArray, RecordBatch, StringArray};
use datafusion::arrow::datatypes::Float32Type;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;

/// No process of a test lives longer. A debug build on a busy machine needs a part of it.
const DEADLINE: Duration = Duration::from_mins(4);

/// Logits of a row, the same everywhere: 3 times a sum of uniform numbers.
pub fn logits(row: u64, classes: usize) -> Vec<f32> {
    let mut state = row.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
    let mut uniform = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1_u64 << 24) as f32
    };
    (0..classes).map(|_| 6.0 * (uniform() + uniform() + uniform()) - 9.0).collect()
}

/// The rows of a part: id, logits and name; each seventh row is null, and lengths differ if they may.
pub fn batch(first: u64, rows: u64, classes: usize, ragged: bool) -> RecordBatch {
    let ids = Int64Array::from_iter_values((first..first + rows).map(|row| row as i64));
    let lists = (first..first + rows).map(|row| {
        let length = if ragged { 1 + (row as usize * 5) % classes } else { classes };
        (row % 7 != 3).then(|| logits(row, length).into_iter().map(Some).collect::<Vec<_>>())
    });
    let lists = ListArray::from_iter_primitive::<Float32Type, _, _>(lists);
    let names: StringArray = (first..first + rows).map(|row| Some(format!("n{row}"))).collect();
    let columns: [(&str, ArrayRef); 3] =
        [("id", Arc::new(ids)), ("logits", Arc::new(lists)), ("name", Arc::new(names))];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// Writes a Parquet file with row groups of 100 rows.
pub fn write(path: &Path, batch: &RecordBatch) {
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(100)).build();
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

/// A folder of parts.
pub fn write_parts(folder: &Path, parts: u64, rows: u64, classes: usize) {
    std::fs::create_dir_all(folder).unwrap();
    for part in 0..parts {
        let batch = batch(part * rows, rows, classes, true);
        write(&folder.join(format!("part-{part:02}.parquet")), &batch);
    }
}

/// What a process printed, and how it ended.
#[derive(Debug)]
pub struct Done {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// A process that is killed when it is dropped.
pub struct Running {
    child: Child,
    out: Receiver<String>,
    err: Receiver<String>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The lines of a pipe, from a thread of its own.
fn lines(pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines() {
            let Ok(line) = line else { break };
            if send.send(line).is_err() {
                break;
            }
        }
    });
    receive
}

impl Running {
    /// Starts shafer-sql.
    pub fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_shafer-sql"))
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let out = lines(child.stdout.take().unwrap());
        let err = lines(child.stderr.take().unwrap());
        Self { child, out, err }
    }

    /// Waits for the next line of its output.
    pub fn line(&self) -> String {
        match self.out.recv_timeout(DEADLINE) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                panic!("no line; standard error: {:?}", self.err.try_iter().collect::<Vec<_>>())
            }
        }
    }

    /// Kills it at once, as `kill -9`.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for its end.
    pub fn done(mut self) -> Done {
        let start = Instant::now();
        let code = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status.code();
            }
            if start.elapsed() > DEADLINE {
                let _ = self.child.kill();
                let all = |lines: &Receiver<String>| lines.try_iter().collect::<Vec<_>>();
                panic!("did not end; it printed {:?} and {:?}", all(&self.out), all(&self.err));
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let all = |lines: &Receiver<String>| {
            lines.iter().fold(String::new(), |text, line| text + &line + "\n")
        };
        Done { code, out: all(&self.out), err: all(&self.err) }
    }
}

/// Runs shafer-sql to its end.
pub fn run(arguments: &[&str]) -> Done {
    Running::start(arguments).done()
}

/// Runs a query that succeeds.
pub fn query(sql: &str, options: &[&str]) -> String {
    let done = run(&[&["query", sql], options].concat());
    assert_eq!(done.code, Some(0), "{done:?}");
    done.out
}

/// Runs a query that fails with one line.
pub fn refused(sql: &str, options: &[&str]) -> String {
    let done = run(&[&["query", sql], options].concat());
    assert_eq!(done.code, Some(2), "{done:?}");
    assert_eq!(done.err.lines().count(), 1, "{done:?}");
    done.err.trim_end().to_owned()
}
