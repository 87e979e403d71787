//! A scheduler and executors as processes of this machine.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(feature = "cluster")]

mod common;

use std::path::Path;

use common::{Running, query, refused};

/// A scheduler at any free port of this machine, and its address.
fn scheduler() -> (Running, String) {
    let scheduler = Running::start(&["scheduler", "--port", "0"]);
    let line = scheduler.line();
    let address = line.strip_prefix("scheduler at ").unwrap().to_owned();
    (scheduler, address)
}

fn executor(scheduler: &str) -> Running {
    let executor = Running::start(&["executor", "--scheduler", scheduler, "--threads", "1"]);
    assert!(executor.line().starts_with("executor at "));
    executor
}

/// Queries with all kinds of results, in a fixed order.
fn queries(folder: &Path) -> Vec<String> {
    let from = folder.display();
    vec![
        format!(
            "SELECT id, evidential(logits) AS p, support_size(logits, 'sparsemax') AS n, conflict(logits) AS c, belief(logits, [0]) AS b, draw(logits, 'softmax', id) AS d, name FROM '{from}' WHERE id % 3 = 0 ORDER BY id"
        ),
        format!(
            "SELECT support_size(logits) AS n, count(*) AS rows FROM '{from}/*.parquet' GROUP BY n ORDER BY n"
        ),
        format!(
            "SELECT id, sparsify_dense(logits, 'entmax:alpha=1.5') AS p FROM '{from}' ORDER BY id LIMIT 20"
        ),
    ]
}

#[test]
fn a_cluster_gives_what_one_machine_gives() {
    let folder = tempfile::tempdir().unwrap();
    common::write_parts(folder.path(), 6, 400, 12);
    let (_scheduler, address) = scheduler();
    let _executors = [executor(&address), executor(&address)];
    for sql in queries(folder.path()) {
        // JSON has the shortest text that gives each number back, to the bit.
        let alone = query(&sql, &["--format", "jsonl"]);
        let together = query(&sql, &["--format", "jsonl", "--scheduler", &address]);
        assert!(!alone.is_empty());
        assert_eq!(alone, together, "{sql}");
    }
    // An error of a row comes through.
    let sql = format!("SELECT belief(logits, [99]) FROM '{}'", folder.path().display());
    let error = refused(&sql, &["--scheduler", &address]);
    assert!(error.contains("belief(logits): row") && error.contains("no class 99"), "{error}");
}

#[test]
fn an_executor_that_is_killed_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    common::write_parts(folder.path(), 8, 2000, 64);
    let (_scheduler, address) = scheduler();
    let work = tempfile::tempdir().unwrap();
    let folder_of_work = work.path().display().to_string();
    let mut first = Running::start(&[
        "executor",
        "--scheduler",
        &address,
        "--threads",
        "1",
        "--work-folder",
        &folder_of_work,
    ]);
    assert!(first.line().starts_with("executor at "));
    let mut second = executor(&address);
    let sql = format!(
        "SELECT id, evidential(logits) AS p, conflict(logits) AS c FROM '{}' ORDER BY id",
        folder.path().display()
    );
    let alone = query(&sql, &["--format", "jsonl"]);
    let mut together =
        Running::start(&["query", &sql, "--format", "jsonl", "--scheduler", &address]);
    // When it has begun to write results, which are lost with it. On a busy machine the other can do everything.
    while std::fs::read_dir(work.path()).unwrap().next().is_none() && !together.ended() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    first.kill();
    // What it wrote is on the disk of a machine that is gone.
    std::fs::remove_dir_all(work.path()).unwrap();
    let together = together.done();
    assert_eq!(together.code, Some(0), "{}", together.err);
    assert!(alone == together.out);
    assert!(!second.ended());
}

#[test]
fn a_scheduler_that_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    common::write_parts(folder.path(), 1, 10, 3);
    let (mut scheduler, address) = scheduler();
    scheduler.kill();
    let sql = format!("SELECT id FROM '{}'", folder.path().display());
    let error = refused(&sql, &["--scheduler", &address]);
    assert!(error.contains(&format!("no scheduler at {address}")), "{error}");
    let executor = common::run(&["executor", "--scheduler", &address]);
    assert_eq!(executor.code, Some(2));
    assert!(executor.err.contains(&format!("no scheduler at {address}")), "{executor:?}");
    let error = refused(&sql, &["--scheduler", "somewhere"]);
    assert!(error.contains("has no port; write HOST:50050"), "{error}");
}
