//! Streaming decompression of gzip.

use std::io::{self, BufRead, BufReader, ErrorKind, Read};

use flate2::bufread::GzDecoder;

pub(crate) const MAGIC: &[u8] = b"\x1f\x8b";

/// Reads all members of a gzip file. Skips zero padding between and after them. Other data that is not a
/// member is an error, as is a truncated member.
pub(crate) struct Gunzip<R> {
    member: Option<GzDecoder<BufReader<R>>>,
}

impl<R: Read> Gunzip<R> {
    pub(crate) fn new(source: R) -> Self {
        Self { member: Some(GzDecoder::new(BufReader::with_capacity(1 << 16, source))) }
    }
}

impl<R: Read> Read for Gunzip<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(mut member) = self.member.take() {
            let n = member.read(buffer).map_err(described)?;
            if n > 0 || buffer.is_empty() {
                self.member = Some(member);
                return Ok(n);
            }
            let mut rest = member.into_inner();
            let ended = loop {
                let bytes = rest.fill_buf()?;
                let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
                if zeros == 0 {
                    break bytes.is_empty();
                }
                rest.consume(zeros);
            };
            self.member = (!ended).then(|| GzDecoder::new(rest));
        }
        Ok(0)
    }
}

fn described(error: io::Error) -> io::Error {
    let problem = match error.kind() {
        ErrorKind::UnexpectedEof => "the gzip is truncated; copy or write it again".to_owned(),
        ErrorKind::InvalidInput | ErrorKind::InvalidData => {
            format!("the gzip is damaged ({error}); copy or write it again")
        }
        _ => return error,
    };
    io::Error::new(ErrorKind::InvalidData, problem)
}
