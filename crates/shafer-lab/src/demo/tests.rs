//! Runs the demo in a temporary folder.

use super::*;

#[test]
fn the_demo_shows_three_networks_and_needs_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("demo");
    let demo = demo(&out).unwrap();
    assert_eq!(demo.networks.len(), 3);
    assert_eq!(demo.figures.len(), 3 * 2 * 2 + 2);
    assert!(demo.figures.iter().all(|figure| figure.is_file()));
    let page = std::fs::read_to_string(&demo.report).unwrap();
    for outside in ["src=\"", "href=\"http", "url(", "<script", "@import"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert_eq!(page.matches("<section class=\"figure\"").count(), 7);
    // The sentence above the panels agrees with a count over them.
    let mut counts = [0; 5];
    for network in &demo.networks {
        for bars in network.exemplar.queries.values() {
            counts[0] += 1;
            for (method, exact, lossy) in [(EVIDENTIAL, 1, 3), (SPARSEMAX, 2, 4)] {
                let kept = |class: usize| bars.methods[method].probabilities[class] > 0.0;
                let wanted = |class: usize| bars.target[class] > 0.0;
                counts[exact] += usize::from((0..10).all(|class| kept(class) == wanted(class)));
                counts[lossy] += usize::from((0..10).any(|class| wanted(class) && !kept(class)));
            }
        }
    }
    let [panels, exact, sparsemax_exact, lossy, sparsemax_lossy] = counts;
    let claim = format!(
        "In {exact} of {panels} panels, evidential keeps exactly the target classes; sparsemax in \
         {sparsemax_exact}. Evidential misses a target class in {lossy} panels, sparsemax in \
         {sparsemax_lossy}."
    );
    assert!(panels == 6 && page.contains(&claim), "{claim}");
    assert_eq!(page.matches("<th>target classes missed</th>").count(), 3);
    // Ids are unique.
    let ids: Vec<&str> = page.split("id=\"").skip(1).filter_map(|s| s.split('"').next()).collect();
    let distinct: std::collections::HashSet<&&str> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len());
    // Deterministic.
    let again = super::demo(&out).unwrap();
    assert_eq!(std::fs::read_to_string(again.report).unwrap(), page);
}

#[test]
fn evidential_keeps_classes_above_the_mean_and_the_text_fits() {
    let folder = tempfile::tempdir().unwrap();
    let demo = demo(folder.path()).unwrap();
    for network in &demo.networks {
        for (query, bars) in &network.exemplar.queries {
            let softmax = &bars.methods[SOFTMAX].probabilities;
            // The mean of the logits is that of the logarithms of softmax.
            let mean = softmax.iter().map(|p| p.ln()).sum::<f64>() / softmax.len() as f64;
            for (p, q) in bars.methods[EVIDENTIAL].probabilities.iter().zip(softmax) {
                assert_eq!(*p > 0.0, q.ln() > mean, "{} {query}", network.data_set);
            }
        }
    }
    let text = demo.text(Colours::Off);
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert_eq!(text.matches("evidential keeps").count(), 7);
    assert_eq!(text.matches("target classes missed: softmax none; sparsemax ").count(), 6);
    assert!(text.trim_end().ends_with("report.html"));
}
