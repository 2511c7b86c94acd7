//! The file of the network: `FDN1`, four numbers (pieces, pairs, layers, bytes of the pieces' names), the names, then all weights in
//! the order of [`Network`]'s members. Numbers are little-endian.

use super::{HIDDEN, Layer, Network, REACH, Row, Table, WIDTH, pieces::Pieces};

const MAGIC: &[u8; 4] = b"FDN1";
/// Most layers of a file.
const MAX_LAYERS: usize = 8;

/// The file is not one of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a file of a network")]
pub struct NetworkError;

/// What is left of a file.
struct Rest<'f>(&'f [u8]);

impl<'f> Rest<'f> {
    fn bytes(&mut self, many: usize) -> Result<&'f [u8], NetworkError> {
        let (part, rest) = self.0.split_at_checked(many).ok_or(NetworkError)?;
        self.0 = rest;
        Ok(part)
    }

    fn count(&mut self) -> Result<usize, NetworkError> {
        let bytes: [u8; 4] = self.bytes(4)?.try_into().map_err(|_| NetworkError)?;
        usize::try_from(u32::from_le_bytes(bytes)).map_err(|_| NetworkError)
    }

    fn numbers<const N: usize>(&mut self) -> Result<[f32; N], NetworkError> {
        let mut out = [0.0; N];
        for (slot, bytes) in out.iter_mut().zip(self.bytes(N * 4)?.as_chunks::<4>().0) {
            *slot = f32::from_le_bytes(*bytes);
        }
        // What is not finite would make every score nothing.
        if out.iter().all(|x| x.is_finite()) { Ok(out) } else { Err(NetworkError) }
    }

    fn rows<const N: usize, const M: usize>(&mut self) -> Result<Box<[[f32; N]; M]>, NetworkError> {
        let mut out = Box::new([[0.0; N]; M]);
        for row in out.iter_mut() {
            *row = self.numbers()?;
        }
        Ok(out)
    }

    fn table(&mut self, many: usize) -> Result<Table<'f>, NetworkError> {
        let mut steps = Vec::new();
        for _ in 0..many {
            let [step] = self.numbers()?;
            steps.push(step);
        }
        let bytes = self.bytes(many.checked_mul(WIDTH).ok_or(NetworkError)?)?;
        Ok(Table { rows: bytes.as_chunks::<WIDTH>().0, steps: steps.into() })
    }

    fn layer(&mut self) -> Result<Layer, NetworkError> {
        let near: Box<[Row; REACH]> = self.rows()?;
        Ok(Layer {
            near: *near,
            near_bias: self.numbers()?,
            across: self.rows()?,
            across_bias: self.numbers()?,
            gain: self.numbers()?,
            shift: self.numbers()?,
        })
    }
}

impl<'f> Network<'f> {
    /// Reads a file.
    pub fn read(file: &'f [u8]) -> Result<Self, NetworkError> {
        let mut rest = Rest(file);
        if rest.bytes(MAGIC.len())? != MAGIC {
            return Err(NetworkError);
        }
        let (pieces, pairs, layers, names) = (rest.count()?, rest.count()?, rest.count()?, rest.count()?);
        let names = std::str::from_utf8(rest.bytes(names)?).map_err(|_| NetworkError)?;
        if layers > MAX_LAYERS || !pairs.is_power_of_two() {
            return Err(NetworkError);
        }
        let single = rest.table(pieces)?;
        let pairs = rest.table(pairs)?;
        let mut all = Vec::new();
        for _ in 0..layers {
            all.push(rest.layer()?);
        }
        let network = Self {
            pieces: Pieces::new(names.lines()),
            single,
            pairs,
            layers: all,
            hidden: rest.rows()?,
            hidden_bias: rest.numbers::<HIDDEN>()?,
            answers: *rest.rows::<HIDDEN, 2>()?,
            answers_bias: rest.numbers()?,
        };
        if rest.0.is_empty() { Ok(network) } else { Err(NetworkError) }
    }
}
