//! Results as a file and as a page.

use serde_json::Value;

use crate::experiments::pedestrians::results::PedestrianResults;
use crate::experiments::pedestrians::synthetic::results;
use crate::experiments::report::{Report as _, parse_as};
use crate::method::EVIDENTIAL;

#[test]
fn results_survive_their_file_and_broken_ones_do_not() {
    let results = results();
    let json = serde_json::to_value(&results).unwrap();
    assert_eq!(serde_json::from_value::<PedestrianResults>(json.clone()).unwrap(), results);
    parse_as::<PedestrianResults>(&json.to_string()).unwrap();
    let fault = |change: &dyn Fn(&mut Value)| {
        let mut json = json.clone();
        change(&mut json);
        format!("{:#}", parse_as::<PedestrianResults>(&json.to_string()).unwrap_err())
    };
    for (found, expected) in [
        (fault(&|json| json["colour"] = 1.into()), "cannot parse"),
        (fault(&|json| json["eth"]["kept"] = vec![1].into()), "eth: the histogram"),
        (fault(&|json| json["eth"]["reach"]["distances"] = vec![1.0].into()), "a curve"),
        (fault(&|json| json["distances"] = vec![1.0].into()), "a share for each distance"),
        (fault(&|json| json["eth"]["exemplars"][0]["history"] = Value::Array(vec![])), "history"),
        (fault(&|json| json["eth"]["exemplars"][0]["truth"][0][0] = 1e9.into()), "nowhere near"),
        (
            fault(&|json| json["eth"]["exemplars"][0]["kept"]["softmax"][0] = 25.into()),
            "does not exist",
        ),
    ] {
        assert!(found.contains(expected), "{expected}: {found}");
    }
}

#[test]
fn the_page_shows_the_papers_numbers_and_ours_and_needs_nothing() {
    let results = results();
    let figures = results.figures();
    let names: Vec<&str> = figures.iter().map(|figure| figure.name).collect();
    assert_eq!(names, ["paths", "kept", "reach"]);
    let page = results.page(&figures).unwrap();
    let ours = &results.scenes["eth_paper"].top5[EVIDENTIAL].fde;
    for expected in [
        "3.862 <small>± 0.419",
        &format!("{:.3} <small>± {:.3}", ours.mean.unwrap(), ours.se.unwrap()),
        "the paper's figure 4",
        "1 of 3 trainings diverged",
        "0123456789abcdef",
    ] {
        assert!(page.contains(expected), "{expected}");
    }
    for outside in ["src=\"", "href=\"http", "url(", "<script", "@import", "NaN"] {
        assert!(!page.contains(outside), "{outside}");
    }
}
