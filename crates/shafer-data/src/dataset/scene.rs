//! The text files of ETH/UCY: where each pedestrian of a scene was, frame by frame.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::npy::shortened;
use crate::{Error, Result};

/// Frames between two positions of a track that has no gap.
pub const FRAME_STEP: u32 = 10;

/// The time between them.
pub const SECONDS_PER_STEP: f64 = 0.4;

const HINT: &str = "each line is a frame, a pedestrian, x and y, separated by tabs or spaces";

/// The pedestrians of one file.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// The file's name without its ending, such as `biwi_eth_val`.
    pub name: String,
    /// One track a pedestrian, by increasing number.
    pub tracks: Vec<Track>,
    /// How many lines said again what another had said.
    pub repeated: usize,
}

/// Where one pedestrian was.
#[derive(Clone, Debug, PartialEq)]
pub struct Track {
    /// The pedestrian's number in the scene.
    pub agent: u32,
    /// The frames in which the pedestrian was seen, increasing. Neighbours are [`FRAME_STEP`] apart
    /// unless there is a gap.
    pub frames: Vec<u32>,
    /// Where, in metres; as many as there are frames.
    pub positions: Vec<[f64; 2]>,
}

impl Scene {
    /// Reads a file's text. Lines may come in any order, and a line may come twice; empty lines are
    /// left out. A pedestrian in two places at once is an error, as are frames that are no whole
    /// number of steps apart and coordinates that are not finite.
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

    /// Like [`parse`](Self::parse), but the frames may be any numbers: for recordings of another frame
    /// rate, whose tracks have to be resampled before anything else is done with them.
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
                    "frame {frame} is no multiple of {step} frames from the first, {first}"
                );
                return Err(wrong(number, &problem));
            }
            match agents.entry(agent).or_default().insert(frame, [x, y]) {
                None => {}
                Some(before) if before == [x, y] => repeated += 1,
                Some(_) => {
                    let problem =
                        format!("pedestrian {agent} has a second position in frame {frame}");
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
    /// The longest stretches without a gap, as ranges of positions.
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

/// The four numbers of a line; `None` if it is empty.
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

/// Numbers of frames and pedestrians are written as 780 and as 780.0.
fn whole(number: f64) -> Option<u32> {
    let whole = number as u32;
    (f64::from(whole) == number).then_some(whole)
}
