//! Windows of tracks, compared with values computed by hand.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use shafer_data::dataset::{Differences, Scene, Track, Window, WindowShape};

/// Windows with at least these numbers of steps.
fn shape(least_history: usize, least_future: usize) -> WindowShape {
    WindowShape { least_history, least_future, ..WindowShape::TRAINING }
}

fn scene(lines: &[(u32, u32, f64, f64)]) -> Scene {
    let lines: Vec<String> = lines.iter().map(|(f, a, x, y)| format!("{f} {a} {x} {y}")).collect();
    Scene::parse("made up", lines.join("\n").as_bytes()).unwrap()
}

fn at(windows: &[Window], agent: u32, frame: u32) -> &Window {
    windows.iter().find(|w| (w.agent, w.frame) == (agent, frame)).unwrap()
}

#[track_caller]
fn assert_states(found: &[[f64; 6]], expected: &[[f64; 6]]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.as_flattened().iter().zip(expected.as_flattened()) {
        assert!((found - expected).abs() < 1e-12, "{found}, not {expected}");
    }
}

/// Positions 0, 0.4, 1.2 and 2.4 m: velocities 1, 2 and 3 m/s, each 2.5 m/s^2 more than the last.
#[test]
fn states_are_differences() {
    let scene = scene(&[(0, 1, 0.0, 5.0), (10, 1, 0.4, 5.0), (20, 1, 1.2, 5.0), (30, 1, 2.4, 5.0)]);
    let windows = scene.windows(&shape(0, 0)).unwrap();
    assert_eq!(windows.len(), 4);
    let window = at(&windows, 1, 20);
    assert_eq!(window.origin, [1.2, 5.0]);
    assert_states(
        &window.history,
        &[
            [-1.2, 0.0, 1.0, 0.0, 0.0, 0.0], // The velocity of the next step.
            [-0.8, 0.0, 1.0, 0.0, 0.0, 0.0],
            [0.0, 0.0, 2.0, 0.0, 2.5, 0.0],
        ],
    );
    assert_states(&window.future, &[[1.2, 0.0, 3.0, 0.0, 2.5, 0.0]]);
    assert_eq!(window.truth().len(), 1);
    // The first state of the track: its velocity is unknown.
    assert_states(&at(&windows, 1, 0).history, &[[0.0; 6]]);
    assert!(at(&windows, 1, 30).future.is_empty());
    assert_eq!(scene.windows(&shape(2, 1)).unwrap().len(), 1);
}

/// A change of a position after the present changes the future of the window only.
#[test]
fn a_history_tells_nothing_of_the_future() {
    let lines = |later: f64| {
        let mut lines = Vec::new();
        for agent in 1..=3 {
            for step in 0..6 {
                // The third pedestrian arrives at frame 20, the present.
                if agent == 3 && step < 2 {
                    continue;
                }
                let moved = if step > 2 { later } else { 0.0 };
                lines.push((step * 10, agent, 0.3 * f64::from(step) + moved, f64::from(agent)));
            }
        }
        lines
    };
    let present = |later| scene(&lines(later)).windows_at(&[20], &shape(0, 0)).unwrap();
    let (one, other) = (present(0.0), present(1.0));
    assert_eq!(one.len(), 3);
    for (one, other) in one.iter().zip(&other) {
        assert_eq!((&one.history, &one.neighbours), (&other.history, &other.neighbours));
        assert_ne!(one.future, other.future);
    }
}

#[test]
fn neighbours_are_those_within_the_radius_at_present() {
    let scene = scene(&[
        (0, 1, 0.0, 0.0),
        (10, 1, 0.4, 0.0),
        // At present exactly 3 m away, before farther.
        (0, 2, 0.4, 4.0),
        (10, 2, 0.4, 3.0),
        // Near before, far at present.
        (0, 3, 0.5, 0.0),
        (10, 3, 9.0, 0.0),
        // The first state of the track.
        (10, 4, 1.4, 0.0),
    ]);
    let windows = scene.windows_at(&[10], &WindowShape::ANY_FUTURE).unwrap();
    // The fourth has no history.
    assert_eq!(windows.iter().map(|w| w.agent).collect::<Vec<_>>(), [1, 2, 3]);
    let window = at(&windows, 1, 10);
    assert_eq!(window.neighbour_count, 2);
    assert_states(
        &window.neighbours,
        &[[0.0, 4.0, 0.0, -2.5, 0.0, 0.0], [1.0, 3.0, 0.0, -2.5, 0.0, 0.0]],
    );
    let alone = WindowShape { radius: 0.5, ..WindowShape::ANY_FUTURE };
    let windows = scene.windows_at(&[10], &alone).unwrap();
    assert_eq!(windows[0].neighbour_count, 0);
    assert_states(&windows[0].neighbours, &[[0.0; 6]; 2]);
}

#[test]
fn windows_are_cut_to_what_is_looked_at() {
    let lines: Vec<_> = (0..40).map(|i| (i * 10, 7, f64::from(i), 0.0)).collect();
    let windows = scene(&lines).windows(&WindowShape::TRAINING).unwrap();
    // From the second frame to the 13th from the end.
    assert_eq!(windows.len(), 40 - 1 - 12);
    assert!(windows.iter().all(|w| w.future.len() == 12 && w.neighbour_count == 0));
    assert_eq!(windows[0].history.len(), 2);
    assert_eq!(windows[20].history.len(), 9);
    // The first that is kept still has the velocity to the one before it.
    assert_states(&windows[20].history[..1], &[[-8.0, 0.0, 2.5, 0.0, 0.0, 0.0]]);
}

#[test]
fn a_gap_ends_the_history_and_the_future() {
    let lines: Vec<_> =
        [0, 10, 20, 60, 70, 80].map(|frame| (frame, 1, f64::from(frame), 0.0)).to_vec();
    let windows = scene(&lines).windows(&shape(0, 0)).unwrap();
    assert_eq!(windows.len(), 6);
    let (before, after) = (at(&windows, 1, 20), at(&windows, 1, 60));
    assert_eq!((before.history.len(), before.future.len()), (3, 0));
    assert_eq!((after.history.len(), after.future.len()), (1, 2));
    assert_states(&after.history, &[[0.0; 6]]);
}

/// Invalid scenes, which a caller can construct, are errors.
#[test]
fn bad_scenes() {
    let text = "20 1 2 0\n0 1 0 0\n10 1 1 0\n10 1 1 0";
    let sorted = Scene::parse("F", text.as_bytes()).unwrap();
    assert_eq!(sorted.windows(&shape(2, 0)).unwrap().len(), 1);
    let made = |frames: &[u32], positions: &[[f64; 2]]| Scene {
        name: "F".to_owned(),
        tracks: vec![Track { agent: 4, frames: frames.to_vec(), positions: positions.to_vec() }],
        repeated: 0,
    };
    let refused = |scene: &Scene| {
        let error = scene.windows(&WindowShape::TRAINING).unwrap_err().to_string();
        assert_eq!(scene.windows_at(&[0], &WindowShape::TRAINING).unwrap_err().to_string(), error);
        let mut rng = StdRng::seed_from_u64(0);
        assert_eq!(scene.random_steps(1, &mut rng).unwrap_err().to_string(), error);
        error
    };
    assert_eq!(
        refused(&made(&[10, 0], &[[0.0; 2]; 2])),
        "F: pedestrian 4 must have increasing frames"
    );
    assert_eq!(
        refused(&made(&[10, 10], &[[0.0; 2]; 2])),
        "F: pedestrian 4 must have increasing frames"
    );
    assert_eq!(
        refused(&made(&[10], &[[0.0, f64::NAN]])),
        "F: pedestrian 4 must have finite positions"
    );
    assert_eq!(
        refused(&made(&[10, 20], &[[0.0; 2]])),
        "F: pedestrian 4 must have one position per frame"
    );
    // A single frame is no window of the usual shapes, but a pedestrian who is present.
    let single = made(&[10], &[[1.0, 2.0]]);
    assert!(single.windows(&WindowShape::TRAINING).unwrap().is_empty());
    assert!(single.windows(&WindowShape::ANY_FUTURE).unwrap().is_empty());
    assert_eq!(single.windows(&WindowShape::PRESENT).unwrap().len(), 1);
    let empty = Scene { name: "F".to_owned(), tracks: Vec::new(), repeated: 0 };
    assert!(empty.windows(&WindowShape::PRESENT).unwrap().is_empty());
    assert!(empty.random_steps(50, &mut StdRng::seed_from_u64(0)).unwrap().is_empty());
    let error = single.windows(&shape(9, 0)).unwrap_err().to_string();
    assert_eq!(error, "window: requires more steps than it can have");
    let far = WindowShape { radius: f64::NAN, ..WindowShape::TRAINING };
    assert!(single.windows(&far).is_err());
    let long = made(&[0, u32::MAX / 10 * 10], &[[0.0; 2]; 2]);
    let error = long.random_steps(1, &mut StdRng::seed_from_u64(0)).unwrap_err().to_string();
    assert_eq!(error, "F: has 429496730 time steps, more than the supported 10000000");
}

#[test]
fn random_steps_are_different_and_cover_the_scene() {
    let scene = scene(&[(100, 1, 0.0, 0.0), (190, 2, 0.0, 0.0)]);
    let draw = |seed, count| scene.random_steps(count, &mut StdRng::seed_from_u64(seed)).unwrap();
    assert_eq!(draw(1, 50), (100..=190).step_by(10).collect::<Vec<_>>());
    assert_eq!(draw(1, 4), draw(1, 4));
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..50 {
        let steps = draw(seed, 3);
        assert!(steps.is_sorted_by(|a, b| a < b) && steps.len() == 3);
        seen.extend(steps);
    }
    assert_eq!(seen.len(), 10);
}

/// Against NumPy: `np.gradient([0, 0.4, 1.2, 2.4, 2.4], 0.4)` is 1, 1.5, 2.5, 1.5, 0, and of that again
/// 1.25, 1.875, 0, -3.125, -3.75.
#[test]
fn central_differences_are_those_of_numpy() {
    let lines: Vec<String> = [0.0, 0.4, 1.2, 2.4, 2.4]
        .iter()
        .enumerate()
        .map(|(step, x)| format!("{} 1 {x} 0", 10 * step))
        .collect();
    let scene = Scene::parse("street", lines.join("\n").as_bytes()).unwrap();
    let central = WindowShape { differences: Differences::Central, ..shape(1, 0) };
    let window = scene.windows_at(&[40], &central).unwrap().remove(0);
    let column = |at: usize| -> Vec<f64> { window.history.iter().map(|s| s[at]).collect() };
    for (found, expected) in
        [(column(2), [1.0, 1.5, 2.5, 1.5, 0.0]), (column(4), [1.25, 1.875, 0.0, -3.125, -3.75])]
    {
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{found}, not {expected}");
        }
    }
    // A track of one position has velocity 0.
    let once = Scene::parse("street", b"0 1 3 4").unwrap();
    let none = WindowShape { differences: Differences::Central, ..shape(0, 0) };
    assert_eq!(once.windows(&none).unwrap()[0].history, [[0.0; 6]]);
}
