//! The text files of ETH/UCY: the position of each pedestrian in each frame of a scene.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::npy::shortened;
use crate::{Error, Result};

/// The frames between two consecutive positions of a track.
pub const FRAME_STEP: u32 = 10;

/// The time between two consecutive positions.
pub const SECONDS_PER_STEP: f64 = 0.4;

const HINT: &str = "each line is a frame, a pedestrian, x and y, separated by tabs or spaces";

/// The pedestrians of one file.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// The file name without its extension, such as `biwi_eth_val`.
    pub name: String,
    /// One track per pedestrian, sorted by number.
    pub tracks: Vec<Track>,
    /// The number of duplicate lines.
    pub repeated: usize,
}

/// The positions of one pedestrian over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Track {
    /// The pedestrian's number in the scene.
    pub agent: u32,
    /// The frames of the positions, increasing: [`FRAME_STEP`] apart, except where the track has a gap.
    pub frames: Vec<u32>,
    /// The position in each frame, in metres.
    pub positions: Vec<[f64; 2]>,
}

impl Scene {
    /// Parses the text of a file. Lines can be in any order. Empty and duplicate lines are skipped. Two
    /// positions of a pedestrian in one frame are an error, as are frames that are not a multiple of
    /// [`FRAME_STEP`] apart and coordinates that are not finite.
    ///
    /// ```
    /// use shafer_data::dataset::Scene;
    ///
    /// let text = "780\t1.0\t8.46\t3.59\n790\t1.0\t9.57\t3.79\n790 2 1.5 -2";
    /// let scene = Scene::parse("eth", text.as_bytes())?;
    /// assert_eq!(scene.tracks.len(), 2);
    /// assert_eq!(scene.tracks[0].frames, [780, 790]);
    /// assert_eq!(scene.tracks[1].positions, [[1.5, -2.0]]);
    /// # Ok::<(), shafer_data::Error>(())
    /// ```
    pub fn parse(name: &str, text: &[u8]) -> Result<Self> {
        Self::parse_steps(name, text, Some(FRAME_STEP))
    }

    /// Like [`parse`](Self::parse), but accepts any frame numbers: for recordings with another frame
    /// rate, whose tracks are resampled before further use.
    ///
    /// ```
    /// use shafer_data::dataset::Scene;
    ///
    /// let text = b"0 1 0 0\n3 1 1 0";
    /// assert!(Scene::parse("street", text).is_err());
    /// assert_eq!(Scene::parse_any_frames("street", text)?.tracks[0].frames, [0, 3]);
    /// # Ok::<(), shafer_data::Error>(())
    /// ```
    pub fn parse_any_frames(name: &str, text: &[u8]) -> Result<Self> {
        Self::parse_steps(name, text, None)
    }

    fn parse_steps(name: &str, text: &[u8], step: Option<u32>) -> Result<Self> {
        let wrong = |line: usize, problem: &str| {
            Error::format(name, format!("line {}: {problem}", line + 1), HINT)
        };
        let mut agents: BTreeMap<u32, BTreeMap<u32, [f64; 2]>> = BTreeMap::new();
        let (mut repeated, mut first_frame) = (0, None);
        for (number, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let Some(fields) = fields(line) else { continue };
            let [frame, agent, x, y] = fields.map_err(|problem| wrong(number, &problem))?;
            let frame = whole(frame)
                .ok_or_else(|| wrong(number, &format!("frame {frame} is not a whole number")))?;
            let agent = whole(agent).ok_or_else(|| {
                wrong(number, &format!("pedestrian {agent} is not a whole number"))
            })?;
            if !x.is_finite() || !y.is_finite() {
                return Err(wrong(number, &format!("the position ({x}, {y}) is not finite")));
            }
            let first = *first_frame.get_or_insert(frame);
            if let Some(step) = step.filter(|step| frame.abs_diff(first) % step != 0) {
                let problem = format!(
                    "frame {frame} is not a multiple of {step} frames from the first frame, {first}"
                );
                return Err(wrong(number, &problem));
            }
            match agents.entry(agent).or_default().insert(frame, [x, y]) {
                None => {}
                Some(before) if before == [x, y] => repeated += 1,
                Some(_) => {
                    let problem = format!("pedestrian {agent} has two positions in frame {frame}");
                    return Err(wrong(number, &problem));
                }
            }
        }
        if agents.is_empty() {
            return Err(Error::format(name, "has no positions", HINT));
        }
        let track = |(agent, seen): (u32, BTreeMap<u32, [f64; 2]>)| {
            let (frames, positions) = seen.into_iter().unzip();
            Track { agent, frames, positions }
        };
        let tracks = agents.into_iter().map(track).collect();
        Ok(Self { name: name.to_owned(), tracks, repeated })
    }
}

impl Track {
    /// The longest runs of positions without a gap, as index ranges.
    ///
    /// ```
    /// use shafer_data::dataset::Track;
    ///
    /// let frames = vec![10, 20, 30, 70, 80];
    /// let track = Track { agent: 1, frames, positions: vec![[0.0, 0.0]; 5] };
    /// assert_eq!(track.stretches().collect::<Vec<_>>(), [0..3, 3..5]);
    /// ```
    pub fn stretches(&self) -> impl Iterator<Item = Range<usize>> {
        let mut start = 0;
        self.frames.chunk_by(|a, b| b - a == FRAME_STEP).map(move |stretch| {
            let range = start..start + stretch.len();
            start = range.end;
            range
        })
    }
}

/// The four numbers of a line, or `None` if it is empty.
fn fields(line: &[u8]) -> Option<std::result::Result<[f64; 4], String>> {
    let mut fields = line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    let mut numbers = [0.0; 4];
    for (i, number) in numbers.iter_mut().enumerate() {
        let Some(field) = fields.next() else {
            return (i > 0).then(|| Err(format!("has {i} of 4 values")));
        };
        let parsed = std::str::from_utf8(field).ok().and_then(|field| field.parse().ok());
        let Some(parsed) = parsed else {
            let field = shortened(&String::from_utf8_lossy(field));
            return Some(Err(format!("`{field}` is not a number")));
        };
        *number = parsed;
    }
    let more = fields.count();
    Some(if more == 0 { Ok(numbers) } else { Err(format!("has {} values, not 4", more + 4)) })
}

/// Converts a number to an integer. Files write frame and pedestrian numbers as 780 or as 780.0.
fn whole(number: f64) -> Option<u32> {
    let whole = number as u32;
    (f64::from(whole) == number).then_some(whole)
}
