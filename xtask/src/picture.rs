//! `cargo xtask picture`: takes `docs/compare.png`, a screenshot of the page of `shafer compare`.

use std::path::Path;
use std::process::Command;

use crate::{cargo, run, target};

const LOGITS: &str = "multimodal.npy";
const PAGE: &str = "multimodal.html";

/// The page down to the table.
const SIZE: &str = "--window-size=1280,1270";

/// The size limit for an image in the README, in bytes.
const LARGEST: u64 = 200_000;

/// Generates logits, compares methods on them, and takes a screenshot of the page.
pub(crate) fn draw() -> Result<(), String> {
    let folder = target("picture")?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let picture = root.join("docs/compare.png");
    let problem = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());
    std::fs::create_dir_all(&folder).map_err(|e| problem(&folder, e))?;
    let lab = |arguments: &[&str]| {
        let package = ["run", "--quiet", "--release", "--locked", "-p", "shafer-lab"];
        let manifest = root.join("Cargo.toml");
        let command = &mut cargo();
        run(command
            .args(package)
            .arg("--manifest-path")
            .arg(manifest)
            .args(arguments)
            .current_dir(&folder))
    };
    lab(&["--example", "multimodal", "--", LOGITS])?;
    lab(&["--", "compare", LOGITS, "--html", PAGE, "--quiet"])?;
    let mut browser = Command::new(browser()?);
    browser.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
    ]);
    browser.args(["--hide-scrollbars", SIZE]).arg(format!("--screenshot={}", picture.display()));
    run(browser.arg(folder.join(PAGE)))?;
    let size = std::fs::metadata(&picture).map_err(|e| problem(&picture, e))?.len();
    if size > LARGEST {
        return Err(format!("{} has {size} bytes, more than {LARGEST}", picture.display()));
    }
    Ok(())
}

/// The value of `CHROMIUM`, or a usual path.
fn browser() -> Result<String, String> {
    if let Ok(named) = std::env::var("CHROMIUM") {
        return Ok(named);
    }
    let usual = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
    let found = usual.into_iter().find(|path| Path::new(path).exists());
    found.map(str::to_owned).ok_or_else(|| "Chromium not found; set CHROMIUM to its path".into())
}
