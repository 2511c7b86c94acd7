//! Weights of a linear model over hashed features, one byte each.

/// Length of the file's head: magic, scale and bias as `f32`.
const HEAD: usize = 12;

/// What the sum of a byte for each feature is multiplied with, and what is added.
#[derive(Clone, Debug)]
pub(crate) struct Weights<const N: usize> {
    /// As they stand in the program, which would otherwise be in memory twice.
    bytes: &'static [u8; N],
    pub(crate) scale: f32,
    pub(crate) bias: f32,
}

/// The file of weights is not one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a file of weights: four bytes of magic, scale, bias, and one byte for each of the weights")]
pub struct WeightsError;

impl<const N: usize> Weights<N> {
    /// Quantises weights to a byte each. They stay in memory: whoever trains makes a few.
    pub(crate) fn quantised(weights: &[f32], bias: f32) -> Self {
        let most = weights.iter().fold(0f32, |m, w| m.max(w.abs())).max(f32::MIN_POSITIVE);
        let scale = most / 127.0;
        let mut bytes = Box::new([0; N]);
        bytes.iter_mut().zip(weights).for_each(|(byte, weight)| *byte = (weight / scale).round() as i8 as u8);
        Self { bytes: Box::leak(bytes), scale, bias }
    }

    /// Reads a file that begins with `magic`.
    pub(crate) fn read(file: &'static [u8], magic: &[u8; 4]) -> Result<Self, WeightsError> {
        let (head, body) = file.split_at_checked(HEAD).ok_or(WeightsError)?;
        let number = |at: usize| -> Result<f32, WeightsError> {
            let bytes = head.get(at..at + 4).ok_or(WeightsError)?;
            Ok(f32::from_le_bytes(bytes.try_into().map_err(|_| WeightsError)?))
        };
        if !head.starts_with(magic) {
            return Err(WeightsError);
        }
        let bytes = body.try_into().map_err(|_| WeightsError)?;
        Ok(Self { bytes, scale: number(4)?, bias: number(8)? })
    }

    /// The file that [`Weights::read`] reads.
    pub(crate) fn file(&self, magic: &[u8; 4]) -> Vec<u8> {
        let mut out = magic.to_vec();
        out.extend(self.scale.to_le_bytes());
        out.extend(self.bias.to_le_bytes());
        out.extend(self.bytes);
        out
    }

    #[inline]
    pub(crate) fn of(&self, slot: usize) -> i8 {
        self.bytes.get(slot).map_or(0, |byte| *byte as i8)
    }

    /// The log-odds of so many features whose weights come to this.
    pub(crate) fn score(&self, sum: i32, count: u32) -> f32 {
        self.bias + self.scale * sum as f32 / (count.max(1) as f32).sqrt()
    }
}
