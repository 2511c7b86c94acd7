//! Whether letters and digits stand beside each other as they do in language.

/// The pairs of letters that make up 985 of 1000 in this repository's documents and sources, by their first letter.
const COMMON: [&[u8]; 26] = [
    b"bcdfgiklmnprstuvwxy",
    b"aeijlorsuy",
    b"acefhiklortu",
    b"abdegioprsuy",
    b"abcdefgilmnpqrstvwxy",
    b"aefgilnortu",
    b"aehinorsu",
    b"abeiorsty",
    b"abcdefglmnoprstvxz",
    b"eos",
    b"eins",
    b"adefilostuy",
    b"abeimopsu",
    b"acdefgiklnopstuvwy",
    b"bcdefgijklmnoprstuvwx",
    b"aeiloprstuy",
    b"u",
    b"acdegiklmnorstuvy",
    b"acehikopstuwy",
    b"acdehioprstuwy",
    b"bcdefglmnprst",
    b"aei",
    b"aehinors",
    b"ait",
    b"cinopst",
    b"e",
];

/// Letters by their place, then a digit, then anything else.
const DIGIT: usize = 26;
const OTHER: usize = 27;

const CLASS: [u8; 256] = {
    let mut table = [OTHER as u8; 256];
    let mut b = 0;
    while b < 256 {
        let byte = b as u8;
        if byte.is_ascii_alphabetic() {
            table[b] = byte.to_ascii_lowercase() - b'a';
        } else if byte.is_ascii_digit() {
            table[b] = DIGIT as u8;
        }
        b += 1;
    }
    table
};

/// Which pairs of classes language seldom has: other letters, and letters beside digits.
const RARE: [u8; 1024] = {
    let mut table = [0; 1024];
    let mut a = 0;
    while a < 26 {
        let mut b = 0;
        while b < 26 {
            table[a * 32 + b] = 1;
            b += 1;
        }
        let mut i = 0;
        while i < COMMON[a].len() {
            table[a * 32 + (COMMON[a][i] - b'a') as usize] = 0;
            i += 1;
        }
        table[a * 32 + DIGIT] = 1;
        table[DIGIT * 32 + a] = 1;
        a += 1;
    }
    table
};

/// How many pairs are rare.
pub(crate) fn rare(text: &[u8]) -> usize {
    let mut before = OTHER;
    let mut count = 0;
    for b in text {
        let class = usize::from(CLASS.get(usize::from(*b)).copied().unwrap_or(OTHER as u8));
        count += usize::from(RARE.get(before * 32 + class).copied().unwrap_or_default());
        before = class;
    }
    count
}

/// How many pairs of each eight bytes of a text are rare: of the pairs that end there.
#[derive(Debug)]
pub(crate) struct Rarity(Vec<u8>);

impl Rarity {
    /// Bytes that are counted together.
    pub(crate) const STEP: usize = 8;

    pub(crate) fn of(text: &[u8]) -> Self {
        let mut before = OTHER;
        let count = |eight: &[u8]| {
            let pair = |b: &u8| {
                let class = usize::from(CLASS.get(usize::from(*b)).copied().unwrap_or(OTHER as u8));
                RARE.get(std::mem::replace(&mut before, class) * 32 + class).copied().unwrap_or_default()
            };
            eight.iter().map(pair).sum()
        };
        Self(text.chunks(Self::STEP).map(count).collect())
    }

    /// How many are in so many bytes, from a place on that is a multiple of eight, as their number is.
    pub(crate) fn within(&self, at: usize, many: usize) -> usize {
        let counts = self.0.get(at / Self::STEP..).unwrap_or_default();
        counts.iter().take(many / Self::STEP).map(|count| usize::from(*count)).sum()
    }
}

/// Whether bytes are one byte again and again: a line, or what fills something up. It is the encoding of nothing.
pub(crate) fn monotone(bytes: &[u8]) -> bool {
    bytes.first().is_none_or(|first| bytes.iter().all(|b| b == first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_few() {
        assert!(rare(b"the words of a language, and identifiers_of_programs") <= 1);
        for text in ["the words of a language", "q8Zr2LmX9vTbK4wJ", ""] {
            assert_eq!(Rarity::of(text.as_bytes()).within(0, 24), rare(text.as_bytes()));
        }
        let strange = Rarity::of(b"q8Zr2LmX9vTbK4wJ");
        assert_eq!((strange.within(0, 8), strange.within(8, 16)), (7, 8));
        assert!(rare(b"q8Zr2LmX9vTbK4wJ") > 10 && rare(b"xqzjvkwpfgqx") > 8);
    }
}
