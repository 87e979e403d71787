//! Windows of tracks, the samples of behaviour prediction: a pedestrian's history, neighbours and
//! future at one time step.

use std::collections::BTreeMap;

use rand_core::Rng;
use serde::{Deserialize, Serialize};

use super::scene::{FRAME_STEP, SECONDS_PER_STEP, Scene, Track};
use super::subset::shuffle;
use crate::{Error, Result};

/// Position, velocity and acceleration, each as x and y, in metres and seconds.
pub type State = [f64; 6];

/// A pedestrian at one time step, the present.
///
/// Positions are relative to the pedestrian's present position. Velocities are backward differences of
/// positions over [`SECONDS_PER_STEP`], and accelerations backward differences of velocities. The first
/// state of a track has no predecessor: its velocity is that of the second state, and its acceleration 0. If
/// it is the present state, its velocity is 0, too. So the history never leaks future positions.
///
/// A gap in a track ends the history and the future, as if another pedestrian followed.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// The pedestrian's number in the scene.
    pub agent: u32,
    /// The frame of the present.
    pub frame: u32,
    /// The present position in the coordinates of the scene.
    pub origin: [f64; 2],
    /// The states up to and including the present: between 1 and [`WindowShape::history`] + 1.
    pub history: Vec<State>,
    /// For each time step of the history, the sum of the states of the neighbours: the pedestrians within
    /// [`WindowShape::radius`] at present. Positions are relative to the same origin. A neighbour without
    /// a position at a time step adds nothing to its sum.
    pub neighbours: Vec<State>,
    /// The number of neighbours.
    pub neighbour_count: usize,
    /// The states after the present: at most [`WindowShape::future`], fewer where the track ends.
    pub future: Vec<State>,
}

impl Window {
    /// The positions after the present.
    pub fn truth(&self) -> Vec<[f64; 2]> {
        self.future.iter().map(|&[x, y, ..]| [x, y]).collect()
    }
}

/// How velocities are computed from positions, and accelerations from velocities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Differences {
    /// Backward differences, which do not leak future positions.
    #[default]
    Backward,
    /// Central differences, as `numpy.gradient` computes them. The code of Trajectron++ used them when the
    /// paper was written. They leak the next two positions into the present state: use them only to compare
    /// with results computed that way.
    Central,
}

/// The extent of windows, and which windows to keep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowShape {
    /// The largest number of history steps before the present.
    pub history: usize,
    /// The smallest number of history steps.
    pub least_history: usize,
    /// The largest number of future steps.
    pub future: usize,
    /// The smallest number of future steps.
    pub least_future: usize,
    /// The largest present distance of a neighbour, in metres.
    pub radius: f64,
    /// How velocities and accelerations are computed.
    pub differences: Differences,
}

impl WindowShape {
    /// Training windows: 1 to 8 history steps, 12 future steps.
    pub const TRAINING: Self = Self {
        history: 8,
        least_history: 1,
        future: 12,
        least_future: 12,
        radius: 3.0,
        differences: Differences::Backward,
    };

    /// The test windows of published results on ETH/UCY: 8 positions including the present and 12 future
    /// steps. One more history step is used where it exists.
    pub const PUBLISHED: Self = Self { least_history: 7, ..Self::TRAINING };

    /// Every pedestrian with at least one history step, and any number of future steps.
    pub const ANY_FUTURE: Self = Self { least_future: 0, ..Self::TRAINING };

    /// The windows that the paper evaluates: 8 history steps, and any number of future steps.
    ///
    /// The paper reports 203 pedestrians at 50 random time steps of `biwi_eth_val`, 181 of them with a
    /// future. The expectation over all choices of 50 steps is 214 and 190 with 8 history steps, but 397 and
    /// 369 with one.
    pub const PAPER: Self = Self { least_history: 8, ..Self::ANY_FUTURE };

    /// Every pedestrian, including those without any history step.
    pub const PRESENT: Self = Self { least_history: 0, ..Self::ANY_FUTURE };

    fn check(&self) -> Result<()> {
        let wrong = |problem: String| Err(Error::request("window", problem));
        if self.least_history > self.history || self.least_future > self.future {
            return wrong("requires more steps than it can have".to_owned());
        }
        if !(self.radius.is_finite() && self.radius >= 0.0) {
            return wrong(format!(
                "has a radius of {}, but must have a finite one of at least 0",
                self.radius
            ));
        }
        Ok(())
    }
}

impl Scene {
    /// All windows of this shape, sorted by frame and then by pedestrian. The result can be empty.
    ///
    /// ```
    /// use shafer_data::dataset::{Scene, WindowShape};
    ///
    /// let text = "0 1 0 0\n10 1 0.4 0\n20 1 0.8 0\n30 1 1.6 0\n10 2 0.4 1";
    /// let scene = Scene::parse("corner", text.as_bytes())?;
    /// let shape = WindowShape { least_future: 1, ..WindowShape::TRAINING };
    /// let windows = scene.windows(&shape)?;
    /// assert_eq!(windows.len(), 2); // Pedestrian 1, at frames 10 and 20.
    /// assert_eq!(windows[0].history[1], [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
    /// assert_eq!(windows[0].neighbours[1], [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]); // Pedestrian 2.
    /// assert_eq!(windows[0].truth().len(), 2);
    /// # Ok::<(), shafer_data::Error>(())
    /// ```
    pub fn windows(&self, shape: &WindowShape) -> Result<Vec<Window>> {
        let seen = Seen::of(self, shape.differences)?;
        shape.check()?;
        Ok(seen.frames.keys().flat_map(|&frame| seen.windows_at(frame, shape)).collect())
    }

    /// The windows of this shape whose present is one of these frames.
    pub fn windows_at(&self, frames: &[u32], shape: &WindowShape) -> Result<Vec<Window>> {
        let seen = Seen::of(self, shape.differences)?;
        shape.check()?;
        Ok(frames.iter().flat_map(|&frame| seen.windows_at(frame, shape)).collect())
    }

    /// Draws `count` distinct time steps between the first and the last frame of the scene, uniformly and
    /// including steps without pedestrians. Returns them in increasing order, and all of them if the scene has fewer.
    ///
    /// The paper evaluates the pedestrians at 50 such steps of `biwi_eth_val`: see [`WindowShape::PAPER`].
    ///
    /// ```
    /// use rand::{SeedableRng, rngs::StdRng};
    /// use shafer_data::dataset::Scene;
    ///
    /// let scene = Scene::parse("street", b"0 1 0 0\n90 2 5 5")?;
    /// let steps = scene.random_steps(3, &mut StdRng::seed_from_u64(0))?;
    /// assert_eq!(steps.len(), 3);
    /// assert!(steps.iter().all(|frame| frame % 10 == 0 && *frame <= 90));
    /// # Ok::<(), shafer_data::Error>(())
    /// ```
    pub fn random_steps<R: Rng + ?Sized>(&self, count: usize, rng: &mut R) -> Result<Vec<u32>> {
        let seen = Seen::of(self, Differences::Backward)?;
        let (Some(first), Some(last)) = (seen.frames.keys().next(), seen.frames.keys().last())
        else {
            return Ok(Vec::new());
        };
        let steps = (last - first) / FRAME_STEP + 1;
        if steps > LONGEST {
            let problem = format!("has {steps} time steps, more than the supported {LONGEST}");
            return Err(Error::request(&self.name, problem));
        }
        let mut frames: Vec<u32> = (0..steps).map(|step| first + step * FRAME_STEP).collect();
        shuffle(&mut frames, rng);
        frames.truncate(count);
        frames.sort_unstable();
        Ok(frames)
    }
}

/// The windows of several scenes, concatenated. Fails if there are none: nothing could be trained or
/// tested.
///
/// ```
/// use shafer_data::dataset::{Scene, WindowShape, windows_of};
///
/// let scene = Scene::parse("empty street", b"0 1 0 0\n10 1 0 0")?;
/// let error = windows_of(&[scene], &WindowShape::TRAINING).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "empty street: no pedestrian has at least 1 step before and 12 after the present"
/// );
/// # Ok::<(), shafer_data::Error>(())
/// ```
pub fn windows_of(scenes: &[Scene], shape: &WindowShape) -> Result<Vec<Window>> {
    let mut windows = Vec::new();
    for scene in scenes {
        windows.extend(scene.windows(shape)?);
    }
    if windows.is_empty() {
        let names: Vec<&str> = scenes.iter().map(|scene| &scene.name[..]).collect();
        let (before, after) = (shape.least_history, shape.least_future);
        let steps = if before == 1 { "step" } else { "steps" };
        let problem = format!(
            "no pedestrian has at least {before} {steps} before and {after} after the present"
        );
        return Err(Error::request(&names.join(", "), problem));
    }
    Ok(windows)
}

/// 46 days. Bounds the memory that one wrong frame number can cost.
const LONGEST: u32 = 10_000_000;

/// A scene indexed by frame.
struct Seen {
    tracks: Vec<Walk>,
    /// For each frame, the pedestrians present: index of the track, index in the track.
    frames: BTreeMap<u32, Vec<[usize; 2]>>,
}

/// A track with its velocities and accelerations.
struct Walk {
    agent: u32,
    /// Positions are in the coordinates of the scene.
    states: Vec<State>,
    /// For each state, the start and the end of its run without a gap.
    stretch: Vec<[usize; 2]>,
}

impl Seen {
    /// Checks the scene, whose fields are public.
    fn of(scene: &Scene, differences: Differences) -> Result<Self> {
        let mut frames: BTreeMap<u32, Vec<[usize; 2]>> = BTreeMap::new();
        for (track, Track { agent, frames: seen, positions }) in scene.tracks.iter().enumerate() {
            let wrong = |problem: &str| {
                let problem = format!("pedestrian {agent} {problem}");
                Err(Error::request(&scene.name, problem))
            };
            if seen.len() != positions.len() {
                return wrong("must have one position per frame");
            }
            if !seen.is_sorted_by(|a, b| a < b) {
                return wrong("must have increasing frames");
            }
            if !positions.as_flattened().iter().all(|x| x.is_finite()) {
                return wrong("must have finite positions");
            }
            for (place, &frame) in seen.iter().enumerate() {
                frames.entry(frame).or_default().push([track, place]);
            }
        }
        let states = |track| Walk::of(track, differences);
        Ok(Self { tracks: scene.tracks.iter().map(states).collect(), frames })
    }

    fn windows_at(&self, frame: u32, shape: &WindowShape) -> impl Iterator<Item = Window> {
        let there = self.frames.get(&frame).map_or(&[][..], Vec::as_slice);
        there.iter().filter_map(move |&[track, place]| {
            let own = &self.tracks[track];
            let [start, end] = own.stretch[place];
            let (before, after) = (place - start, end - place - 1);
            if before < shape.least_history || after < shape.least_future {
                return None;
            }
            let [x, y, ..] = own.states[place];
            let steps = before.min(shape.history) + 1;
            let history = own.history(place, steps, [x, y]);
            let near = there.iter().filter(|&&[other, place]| {
                let [u, v, ..] = self.tracks[other].states[place];
                other != track && (u - x).hypot(v - y) <= shape.radius
            });
            let mut neighbours = vec![[0.0; 6]; steps];
            let mut neighbour_count = 0;
            for &[other, place] in near {
                let known = self.tracks[other].history(place, steps, [x, y]);
                neighbour_count += 1;
                for (sum, state) in neighbours.iter_mut().rev().zip(known.iter().rev()) {
                    for (sum, value) in sum.iter_mut().zip(state) {
                        *sum += value;
                    }
                }
            }
            let future = &own.states[place + 1..=place + after.min(shape.future)];
            Some(Window {
                agent: own.agent,
                frame,
                origin: [x, y],
                history,
                neighbours,
                neighbour_count,
                future: future.iter().map(|&state| relative(state, [x, y])).collect(),
            })
        })
    }
}

impl Walk {
    fn of(track: &Track, differences: Differences) -> Self {
        let mut states: Vec<State> = track.positions.iter().map(|&p| at(p)).collect();
        let mut stretch = Vec::with_capacity(states.len());
        for range in track.stretches() {
            stretch.extend(std::iter::repeat_n([range.start, range.end], range.len()));
            match differences {
                Differences::Backward => backward(&mut states[range]),
                Differences::Central => central(&mut states[range]),
            }
        }
        Self { agent: track.agent, states, stretch }
    }

    /// At most `steps` states up to and including `place`, without knowledge of later ones.
    fn history(&self, place: usize, steps: usize, origin: [f64; 2]) -> Vec<State> {
        let [start, _] = self.stretch[place];
        if place == start {
            let [x, y, ..] = self.states[place];
            return vec![relative(at([x, y]), origin)];
        }
        let first = start.max((place + 1).saturating_sub(steps));
        self.states[first..=place].iter().map(|&state| relative(state, origin)).collect()
    }
}

/// Adds the velocities and accelerations of [`Differences::Backward`] to a run of positions.
fn backward(states: &mut [State]) {
    for i in 1..states.len() {
        let before = states[i - 1];
        for axis in 0..2 {
            let velocity = (states[i][axis] - before[axis]) / SECONDS_PER_STEP;
            states[i][2 + axis] = velocity;
            if i == 1 {
                states[0][2 + axis] = velocity;
            } else {
                states[i][4 + axis] = (velocity - before[2 + axis]) / SECONDS_PER_STEP;
            }
        }
    }
}

/// Adds those of [`Differences::Central`]. At the ends of the run they are one-sided.
fn central(states: &mut [State]) {
    let last = states.len() - 1;
    for column in 0..4 {
        for i in 0..=last {
            let (before, after) = (i.saturating_sub(1), (i + 1).min(last));
            let steps = (after - before).max(1) as f64;
            let change = states[after][column] - states[before][column];
            states[i][column + 2] = change / (steps * SECONDS_PER_STEP);
        }
    }
}

/// The state of a pedestrian standing still.
fn at([x, y]: [f64; 2]) -> State {
    [x, y, 0.0, 0.0, 0.0, 0.0]
}

fn relative([x, y, rest @ ..]: State, [left, bottom]: [f64; 2]) -> State {
    let [u, v, a, b] = rest;
    [x - left, y - bottom, u, v, a, b]
}
