//! The page and the files of synthetic results.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::aggregate::Meta;
use super::claims::{Verdict, answers};
use super::results::ImageResults;
use super::synthetic::{meta, of_records, records, results};
use super::tables;
use crate::experiments::origin::Origin;
use crate::experiments::report::{RESULTS, Report as _, draw, read, write_json};
use crate::experiments::statistics::Gain;

fn page(results: &ImageResults) -> String {
    results.page(&results.figures()).unwrap()
}

#[test]
fn a_run_gets_its_figures_and_its_page() {
    let folder = tempfile::tempdir().unwrap();
    write_json(&folder.path().join(RESULTS), &results()).unwrap();
    let drawn = draw(folder.path(), &*read(folder.path()).unwrap()).unwrap();
    assert_eq!(drawn.figures.len(), 20);
    for figure in &drawn.figures {
        let bytes = std::fs::read(figure).unwrap();
        let begins: &[u8] = if figure.extension().unwrap() == "svg" { b"<svg" } else { b"\x89PNG" };
        assert!(bytes.starts_with(begins), "{}", figure.display());
    }
    let first = std::fs::read(&drawn.report).unwrap();
    // Drawn again, it is the same, and nothing is left lying about.
    draw(folder.path(), &*read(folder.path()).unwrap()).unwrap();
    assert_eq!(std::fs::read(&drawn.report).unwrap(), first);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
    assert_eq!(std::fs::read_dir(folder.path().join("figures")).unwrap().count(), 20);
}

#[test]
fn the_page_shows_the_numbers_of_the_results() {
    let results = results();
    let page = page(&results);
    let text: String = page.replace("<b>", "").replace("</b>", "");
    for method in &results.methods {
        let value = results.final_values.wasserstein["odd"][&method.name];
        let expected =
            format!("{:.4} <small>± {:.4}</small>", value.mean.unwrap(), value.se.unwrap());
        assert!(text.contains(&expected), "{}: {expected}", method.title);
    }
    let gain = results.improvement.final_values.bhattacharyya["both"]["softmax"];
    assert!(page.contains(&tables::percent(&gain)));
    assert!(page.contains("Collapsed: 3. Diverged: 6."));
    assert!(page.contains("0123456789abcdef") && page.contains("a made-up machine"));
    assert!(page.contains("the paper&#39;s figure 3") || page.contains("the paper's figure 3"));
    assert!(page.contains("22%") && page.contains("8, 3"));
    // It needs nothing but itself.
    for outside in ["src=\"", "href=\"http", "url(", "<script", "@import"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(!page.contains("NaN"));
}

#[test]
fn names_from_a_file_are_no_markup() {
    let meta = Meta {
        data_set: "<b>mine</b>".to_owned(),
        queries: ["<i>a", "b&"].map(str::to_owned).into(),
        origin: Origin { machine: "</style><script>".to_owned(), ..Origin::here() },
        ..meta()
    };
    let page = page(&of_records(&meta, &records()).unwrap());
    assert!(!page.contains("<b>mine") && !page.contains("<i>a") && !page.contains("<script"));
    assert!(page.contains("The paper has no experiment on this data set."));
}

#[test]
fn every_data_set_of_the_paper_has_its_claims() {
    for (data_set, count) in [("mnist", 5), ("fashion-mnist", 3), ("notmnist", 3), ("other", 0)] {
        let meta = Meta { data_set: data_set.to_owned(), ..meta() };
        let results = of_records(&meta, &records()).unwrap();
        let answers = answers(&results);
        assert_eq!(answers.len(), count, "{data_set}");
        if data_set == "mnist" {
            // Few seeds: 22% is in the wide interval, 10% is below the other.
            let verdicts: Vec<_> = answers.iter().map(|answer| answer.verdict).collect();
            let holds = Some(Verdict::Holds);
            assert_eq!(verdicts, [None, holds, Some(Verdict::OtherNumber), holds, None]);
        }
    }
}

#[test]
fn infinite_distances_are_shown() {
    let mut results = results();
    let table = &mut results.final_values.bhattacharyya;
    let summary = table.get_mut("odd").unwrap().get_mut("evidential").unwrap();
    (summary.infinite, summary.mean) = (2, Some(0.000_123));
    let gain = results.improvement.training.bhattacharyya.get_mut("odd").unwrap();
    gain.insert("softmax".to_owned(), Gain::of(&[(1.0, 0.5), (1.0, 0.7)], 4));
    let page = page(&results);
    assert!(page.contains(r#"<span class="infinite">+2∞</span>"#));
    assert!(page.contains("Means are over the finite distances"));
    assert!(page.contains("(4∞ left out)"));
    // The mean of what is left is no reason to call it the best.
    assert!(!page.contains("<b>0.0001"));
}
