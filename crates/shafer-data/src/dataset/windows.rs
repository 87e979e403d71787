//! What is known of a pedestrian at one moment, and what came after: the samples of behaviour
//! prediction.

use std::collections::BTreeMap;

use rand_core::Rng;
use serde::{Deserialize, Serialize};

use super::scene::{FRAME_STEP, SECONDS_PER_STEP, Scene, Track};
use super::subset::shuffle;
use crate::{Error, Result};

/// Position, velocity and acceleration, each as x and y; in metres and seconds.
pub type State = [f64; 6];

/// A pedestrian at one moment, the present.
///
/// Positions are relative to where the pedestrian is at present. Velocities are the differences to the
/// position before, over [`SECONDS_PER_STEP`], and accelerations those of the velocities. Where a
/// pedestrian appears there is no position before: the velocity is that of the next step, and the
/// acceleration 0. If that is the present, the next step is not known yet, and the velocity is 0 as well.
/// So nothing of a history tells of the future.
///
/// A pedestrian who is lost from sight and comes back is a new one: a gap ends the history and the future.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// The pedestrian's number in the scene.
    pub agent: u32,
    /// The frame of the present.
    pub frame: u32,
    /// Where the pedestrian is at present, in the scene.
    pub origin: [f64; 2],
    /// The states up to the present, which is the last: at least one, and at most
    /// [`WindowShape::history`] more.
    pub history: Vec<State>,
    /// For each state of the history, the sum of those of the neighbours at that time: of those who at
    /// present are within [`WindowShape::radius`]. Their positions are relative to the same place. Who
    /// was not seen at a time adds nothing to its sum.
    pub neighbours: Vec<State>,
    /// The number of neighbours.
    pub neighbour_count: usize,
    /// The states after the present: at most [`WindowShape::future`], and fewer where the track ends.
    pub future: Vec<State>,
}

impl Window {
    /// The positions after the present.
    pub fn truth(&self) -> Vec<[f64; 2]> {
        self.future.iter().map(|&[x, y, ..]| [x, y]).collect()
    }
}

/// How velocities come from positions, and accelerations from velocities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Differences {
    /// From the step before: nothing of a history tells of the future.
    #[default]
    Backward,
    /// From the step before and the step after, as NumPy's `gradient` has it, which the code of
    /// Trajectron++ used when the paper was written. The state at present then knows of the next two steps.
    /// It is there for comparison with numbers made that way, and for nothing else.
    Central,
}

/// How far windows reach, and which ones count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowShape {
    /// How many steps before the present are looked at.
    pub history: usize,
    /// How many of them there must be at least.
    pub least_history: usize,
    /// How many steps after the present are looked at.
    pub future: usize,
    /// How many of them there must be at least.
    pub least_future: usize,
    /// Who is not farther away at present, in metres, is a neighbour.
    pub radius: f64,
    /// What velocities and accelerations are.
    pub differences: Differences,
}

impl WindowShape {
    /// Windows to train on: at least one step of history, up to 8, and a future of 12 steps.
    pub const TRAINING: Self = Self {
        history: 8,
        least_history: 1,
        future: 12,
        least_future: 12,
        radius: 3.0,
        differences: Differences::Backward,
    };

    /// Whole windows, to test with, as results on ETH/UCY are published: eight positions with the present one,
    /// and the twelve after it. The network may look at one more step of history where there is one.
    pub const PUBLISHED: Self = Self { least_history: 7, ..Self::TRAINING };

    /// Every pedestrian who was seen before the present, with whatever future there is.
    pub const ANY_FUTURE: Self = Self { least_future: 0, ..Self::TRAINING };

    /// What the paper evaluates: a whole history of 8 steps, and whatever future there is.
    ///
    /// It says that there are 203 pedestrians at 50 random steps of `biwi_eth_val`, and 181 of them have a
    /// future. The mean over all choices of 50 steps is 214 and 190 with a whole history, but 397 and 369
    /// with one step of history.
    pub const PAPER: Self = Self { least_history: 8, ..Self::ANY_FUTURE };

    /// Every pedestrian who is there, even those who appear at present and so have no velocity yet.
    pub const PRESENT: Self = Self { least_history: 0, ..Self::ANY_FUTURE };

    fn check(&self) -> Result<()> {
        let wrong = |problem: String| Err(Error::request("window", problem));
        if self.least_history > self.history || self.least_future > self.future {
            return wrong("must not need more steps than it looks at".to_owned());
        }
        if !(self.radius.is_finite() && self.radius >= 0.0) {
            return wrong(format!("has a radius of {}, but must have a finite one", self.radius));
        }
        Ok(())
    }
}

impl Scene {
    /// All windows of this shape, by frame and then by pedestrian. There may be none.
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

    /// The windows of this shape whose present is one of these frames; at a frame where nobody is, there
    /// are none.
    pub fn windows_at(&self, frames: &[u32], shape: &WindowShape) -> Result<Vec<Window>> {
        let seen = Seen::of(self, shape.differences)?;
        shape.check()?;
        Ok(frames.iter().flat_map(|&frame| seen.windows_at(frame, shape)).collect())
    }

    /// So many different time steps of the scene, increasing: each choice among all steps from the first
    /// frame to the last is equally likely, whether or not somebody is there. If the scene has fewer, all.
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
            let problem = format!("lasts {steps} steps, but at most {LONGEST} can be chosen from");
            return Err(Error::request(&self.name, problem));
        }
        let mut frames: Vec<u32> = (0..steps).map(|step| first + step * FRAME_STEP).collect();
        shuffle(&mut frames, rng);
        frames.truncate(count);
        frames.sort_unstable();
        Ok(frames)
    }
}

/// The windows of several scenes, one after the other. That there is none at all is an error: nothing could
/// be trained or tested.
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

/// A scene of 46 days: one wrong frame number must not ask for gigabytes.
const LONGEST: u32 = 10_000_000;

/// A scene by frames.
struct Seen {
    tracks: Vec<Walk>,
    /// Who is there: the track, and the place in it.
    frames: BTreeMap<u32, Vec<[usize; 2]>>,
}

/// A track with its velocities and accelerations.
struct Walk {
    agent: u32,
    /// Positions are those in the scene.
    states: Vec<State>,
    /// For each of them, where its stretch begins and where the next does.
    stretch: Vec<[usize; 2]>,
}

impl Seen {
    /// The fields of a scene are anybody's to fill, so they are checked.
    fn of(scene: &Scene, differences: Differences) -> Result<Self> {
        let mut frames: BTreeMap<u32, Vec<[usize; 2]>> = BTreeMap::new();
        for (track, Track { agent, frames: seen, positions }) in scene.tracks.iter().enumerate() {
            let wrong = |problem: &str| {
                let problem = format!("pedestrian {agent} {problem}");
                Err(Error::request(&scene.name, problem))
            };
            if seen.len() != positions.len() {
                return wrong("must have a position in every frame");
            }
            if !seen.is_sorted_by(|a, b| a < b) {
                return wrong("must have frames that increase");
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

    /// At most so many states up to this place, as they are known there.
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

/// Adds the velocities and accelerations of [`Differences::Backward`] to the positions of a stretch.
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

/// Adds those of [`Differences::Central`]; at the ends of the stretch they are one-sided.
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

/// Standing still.
fn at([x, y]: [f64; 2]) -> State {
    [x, y, 0.0, 0.0, 0.0, 0.0]
}

fn relative([x, y, rest @ ..]: State, [left, bottom]: [f64; 2]) -> State {
    let [u, v, a, b] = rest;
    [x - left, y - bottom, u, v, a, b]
}
