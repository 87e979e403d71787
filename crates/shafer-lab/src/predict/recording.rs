//! A file of positions at any frame rate and in any unit, and the same as a network sees it: in metres,
//! 0.4 s apart.

use std::collections::BTreeMap;
use std::str::FromStr;

use anyhow::{Result, anyhow};
use shafer_data::dataset::{FRAME_STEP, SECONDS_PER_STEP, Scene, Track};

/// Positions farther apart in time than this have a gap between them: files with steps of 0.4 or 0.5 s have none, a missing
/// step is one.
const LONGEST_STEP: f64 = 0.6;

/// Frames closer than this are the same time.
const SAME: f64 = 1e-6;

/// The range of plausible median speeds in m/s; that of ETH's fastest scene is 2.5.
const SPEEDS: [f64; 2] = [0.02, 3.0];

/// Frames per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FrameRate(f64);

impl FrameRate {
    /// That of ETH/UCY.
    const USUAL: Self = Self(FRAME_STEP as f64 / SECONDS_PER_STEP);
}

impl FromStr for FrameRate {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        positive(text).map(Self).ok_or_else(|| anyhow!("a number above 0 is needed"))
    }
}

/// The unit of coordinates, in metres.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Units(f64);

impl Units {
    const METRES: Self = Self(1.0);
}

impl FromStr for Units {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        Ok(match text {
            "m" => Self::METRES,
            "cm" => Self(0.01),
            "mm" => Self(0.001),
            "ft" => Self(0.3048),
            other => Self(positive(other).ok_or_else(|| {
                anyhow!("m, cm, mm, ft, or the metres that one unit is, such as 0.025")
            })?),
        })
    }
}

fn positive(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0)
}

/// The tracks of a file, in metres.
pub(super) struct Recording {
    pub(super) name: String,
    pub(super) frames_per_second: f64,
    pub(super) metres_per_unit: f64,
    tracks: Vec<Track>,
    /// The pedestrians of each frame: indices of a track and of a position in it.
    frames: BTreeMap<u32, Vec<[usize; 2]>>,
}

impl Recording {
    /// Parses a file. Without a frame rate, frames must be 10 apart as in ETH/UCY, which detects files of another rate.
    pub(super) fn parse(
        name: &str,
        text: &[u8],
        rate: Option<FrameRate>,
        units: Option<Units>,
    ) -> Result<Self> {
        let scene = match rate {
            Some(_) => Scene::parse_any_frames(name, text)?,
            None => Scene::parse(name, text).map_err(|error| {
                match Scene::parse_any_frames(name, text) {
                    Ok(_) => anyhow!("{error}; for another frame rate, give --fps"),
                    Err(_) => error.into(),
                }
            })?,
        };
        let FrameRate(frames_per_second) = rate.unwrap_or(FrameRate::USUAL);
        let Units(metres_per_unit) = units.unwrap_or(Units::METRES);
        let mut tracks = scene.tracks;
        let mut frames: BTreeMap<u32, Vec<[usize; 2]>> = BTreeMap::new();
        for (number, track) in tracks.iter_mut().enumerate() {
            for coordinate in track.positions.as_flattened_mut() {
                *coordinate *= metres_per_unit;
            }
            for (place, &frame) in track.frames.iter().enumerate() {
                frames.entry(frame).or_default().push([number, place]);
            }
        }
        Ok(Self { name: scene.name, frames_per_second, metres_per_unit, tracks, frames })
    }

    /// The frames with pedestrians, in increasing order.
    pub(super) fn frames(&self) -> impl ExactSizeIterator<Item = u32> + DoubleEndedIterator {
        self.frames.keys().copied()
    }

    /// The number of pedestrians.
    pub(super) fn pedestrians(&self) -> usize {
        self.tracks.len()
    }

    /// The pedestrians of a frame, with their positions in `steps` steps of 0.4 s before it. The present is the frame
    /// `steps * FRAME_STEP` of the scene. Nothing after the present is used.
    ///
    /// Positions between two frames of a track are interpolated linearly.
    pub(super) fn at(&self, frame: u32, steps: usize) -> Scene {
        let there = self.frames.get(&frame).map_or(&[][..], Vec::as_slice);
        let tracks = there.iter().map(|&[track, place]| {
            let track = &self.tracks[track];
            let mut positions = self.before(track, place, steps);
            positions.reverse();
            let first = steps + 1 - positions.len();
            let frames = (first..=steps).map(|step| step as u32 * FRAME_STEP).collect();
            Track { agent: track.agent, frames, positions }
        });
        Scene { name: self.name.clone(), tracks: tracks.collect(), repeated: 0 }
    }

    /// The position at a place of a track, and those each 0.4 s before it, up to a gap.
    fn before(&self, track: &Track, mut place: usize, steps: usize) -> Vec<[f64; 2]> {
        let at = |place: usize| f64::from(track.frames[place]);
        let present = at(place);
        let mut positions = vec![track.positions[place]];
        for step in 1..=steps {
            let moment = present - step as f64 * SECONDS_PER_STEP * self.frames_per_second;
            while at(place) > moment + SAME {
                if place == 0 || self.seconds(track, place - 1) > LONGEST_STEP {
                    return positions;
                }
                place -= 1;
            }
            let share = (moment - at(place)).max(0.0);
            positions.push(if share <= SAME {
                track.positions[place]
            } else {
                let share = share / (at(place + 1) - at(place));
                let ([x, y], [u, v]) = (track.positions[place], track.positions[place + 1]);
                [x + share * (u - x), y + share * (v - y)]
            });
        }
        positions
    }

    /// The time from a place of a track to the next.
    fn seconds(&self, track: &Track, place: usize) -> f64 {
        f64::from(track.frames[place + 1] - track.frames[place]) / self.frames_per_second
    }

    /// Signs that the frame rate or the unit is wrong.
    pub(super) fn warnings(&self) -> Vec<String> {
        let rate = self.frames_per_second;
        let mut speeds: Vec<f64> = self.tracks.iter().filter_map(|t| self.speed(t)).collect();
        speeds.sort_by(f64::total_cmp);
        let Some(&median) = speeds.get(speeds.len() / 2) else {
            let seen_twice = self.tracks.iter().any(|track| track.frames.len() > 1);
            return seen_twice
                .then(|| {
                    format!(
                        "at {rate} frames per second, all positions of a pedestrian are more than \
                         {LONGEST_STEP} s apart, so nobody has a velocity; check --fps"
                    )
                })
                .into_iter()
                .collect();
        };
        let [slowest, fastest] = SPEEDS;
        let problem = if !(median as f32).is_finite() {
            // The prediction fails, and names the position.
            return Vec::new();
        } else if median > fastest {
            "too fast for pedestrians"
        } else if median < slowest {
            "nearly everybody stands still"
        } else {
            return Vec::new();
        };
        vec![format!(
            "the median speed is {} m/s, {problem}; check --units and --fps",
            short(median)
        )]
    }

    /// The mean speed of a pedestrian, without gaps; `None` if it was not seen twice.
    fn speed(&self, track: &Track) -> Option<f64> {
        let (mut metres, mut seconds) = (0.0, 0.0);
        for place in 1..track.frames.len() {
            let time = self.seconds(track, place - 1);
            if time <= LONGEST_STEP {
                let ([x, y], [u, v]) = (track.positions[place - 1], track.positions[place]);
                metres += (u - x).hypot(v - y);
                seconds += time;
            }
        }
        (seconds > 0.0).then(|| metres / seconds)
    }
}

/// A speed for people to read.
fn short(speed: f64) -> String {
    if speed >= 1.0 { format!("{speed:.1}") } else { format!("{speed:.3}") }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    fn recording(text: &str, fps: &str, units: &str) -> Recording {
        let (rate, units) = (fps.parse().unwrap(), units.parse().unwrap());
        Recording::parse("street", text.as_bytes(), Some(rate), Some(units)).unwrap()
    }

    /// A walk at 1.5 m/s along x, written every `every` frames.
    fn walk(frames: u32, every: usize, fps: f64, unit: f64) -> String {
        let mut text = String::new();
        for frame in (0..=frames).step_by(every) {
            let _ =
                writeln!(text, "{frame} 4 {} {}", 1.5 * f64::from(frame) / fps / unit, 2.0 / unit);
        }
        text
    }

    #[test]
    fn every_rate_and_unit_gives_the_same_steps() {
        // The same walk: 25 frames a second every 10th, every frame, 30 a second every frame, 29.97 every
        // 7th, 10 every 3rd, and 2 a second.
        for (fps, every, last, unit) in [
            (25.0, 10, 100, "m"),
            (25.0, 1, 100, "cm"),
            (30.0, 1, 120, "ft"),
            (29.97, 7, 119, "mm"),
            (10.0, 3, 39, "0.025"),
            (2.0, 1, 8, "m"),
        ] {
            let metres =
                [("m", 1.0), ("cm", 0.01), ("ft", 0.3048), ("mm", 0.001), ("0.025", 0.025)];
            let metres = metres.iter().find(|(name, _)| *name == unit).unwrap().1;
            let recording = recording(&walk(last, every, fps, metres), &fps.to_string(), unit);
            let scene = recording.at(last, 5);
            let track = &scene.tracks[0];
            assert_eq!(track.frames, [0, 10, 20, 30, 40, 50]);
            let end = 1.5 * f64::from(last) / fps;
            for (step, [x, y]) in track.positions.iter().enumerate() {
                let expected = end - 1.5 * 0.4 * (5 - step) as f64;
                assert!((x - expected).abs() < 1e-9, "{fps} {every}: {x} {expected}");
                assert!((y - 2.0).abs() < 1e-9);
            }
            assert!(recording.warnings().is_empty());
        }
    }

    #[test]
    fn a_position_between_two_is_on_the_line_and_gaps_end_a_track() {
        let text = "0 1 0 0\n20 1 9 9\n31 1 1 0\n36 1 2 4\n40 1 7 7\n50 1 0 0\n50 2 5 5";
        let recording = recording(text, "25", "m");
        let scene = recording.at(40, 8);
        // 30 is ten elevenths of the way from 20 to 31. From 0 to 20 is a gap.
        let track = &scene.tracks[0];
        assert_eq!((track.agent, &track.frames[..]), (1, &[60, 70, 80][..]));
        let [x, y] = track.positions[1];
        assert!((x - (9.0 - 8.0 * 10.0 / 11.0)).abs() < 1e-12 && (y - 9.0 / 11.0).abs() < 1e-12);
        assert_eq!((track.positions[0], track.positions[2]), ([9.0, 9.0], [7.0, 7.0]));
        // Later positions are left out.
        assert_eq!(scene.tracks.len(), 1);
        assert_eq!(recording.at(50, 2).tracks.len(), 2);
        assert!(recording.at(45, 2).tracks.is_empty());
    }

    #[test]
    fn speeds_that_no_pedestrian_has_are_told() {
        let text = walk(100, 10, 25.0, 1.0);
        let warned = |fps: &str, units: &str| recording(&text, fps, units).warnings().join(" ");
        assert_eq!(warned("25", "m"), "");
        assert!(warned("25", "100").starts_with("the median speed is 150.0 m/s, too fast"));
        assert!(warned("25", "mm").starts_with("the median speed is 0.002 m/s, nearly everybody"));
        assert!(warned("60", "m").starts_with("the median speed is 3.6 m/s"));
        assert!(warned("2.5", "m").contains("more than 0.6 s apart"));
        assert_eq!(recording("0 1 0 0\n0 2 1 1", "25", "m").warnings(), [""; 0]);
    }

    #[test]
    fn rates_and_units_are_positive_numbers() {
        for bad in ["0", "-25", "nan", "inf", "x", ""] {
            assert!(bad.parse::<FrameRate>().is_err(), "{bad}");
            assert!(bad.parse::<Units>().is_err(), "{bad}");
        }
        assert_eq!(FrameRate::USUAL, FrameRate(25.0));
    }
}
