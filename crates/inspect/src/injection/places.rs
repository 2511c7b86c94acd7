//! Where in a text there may be something of the ways to hide another in it: one pass for all of them, 64 bytes at once.

use wide::u8x16;

pub(super) use crate::lanes::BLOCK;
use crate::lanes::{LANES, is, within};

/// Bytes behind a block that are looked at with it.
const AHEAD: usize = 2;

/// What stands where in a block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Block {
    /// A digit or a sign that may stand for a letter, with a letter behind it.
    pub(super) leet: u64,
    /// What words with such digits and signs are made of.
    pub(super) leets: u64,
    /// A letter behind nothing but such digits and signs, behind which stands another letter.
    pub(super) between: u64,
    /// A mark behind a letter.
    pub(super) marks: u64,
    /// What base64 of both alphabets, base32 and hex are written with.
    pub(super) encoded: u64,
    /// What names of programs are made of.
    pub(super) named: u64,
    /// Where within a name a new word begins.
    pub(super) borders: u64,
    /// The same byte as two further, and another between them.
    pub(super) pairs: u64,
    /// What escapes begin with: `&`, `\`, `%` and `=`.
    pub(super) escapes: u64,
    /// Line ends.
    pub(super) lines: u64,
    /// Bytes of characters beyond ASCII.
    pub(super) beyond: u64,
}

impl Block {
    /// What stands in either.
    fn or(self, other: Self) -> Self {
        Self {
            leet: self.leet | other.leet,
            leets: self.leets | other.leets,
            between: self.between | other.between,
            marks: self.marks | other.marks,
            encoded: self.encoded | other.encoded,
            named: self.named | other.named,
            borders: self.borders | other.borders,
            pairs: self.pairs | other.pairs,
            escapes: self.escapes | other.escapes,
            lines: self.lines | other.lines,
            beyond: self.beyond | other.beyond,
        }
    }
}

/// Which of a block's numbers.
pub(super) type Kind = fn(&Block) -> u64;

/// The blocks of a text, which take a little more room than it does. To be used again for the next one: most strings are short.
#[derive(Debug, Default)]
pub(super) struct Places {
    blocks: Vec<Block>,
    /// Bytes of the text.
    length: usize,
    /// All blocks' bits.
    any: Block,
}

impl Places {
    #[cfg(test)]
    pub(super) fn of(text: &str) -> Self {
        let mut places = Self::default();
        places.read(text.as_bytes());
        places
    }

    /// Looks at a text.
    pub(super) fn read(&mut self, text: &[u8]) {
        self.blocks.clear();
        (self.length, self.any) = (text.len(), Block::default());
        let mut before = Before::default();
        for at in (0..text.len()).step_by(BLOCK) {
            let rest = text.get(at..).unwrap_or_default();
            let block = match rest.first_chunk() {
                Some(part) => block(part, &mut before),
                None => {
                    let mut part = [0; BLOCK + AHEAD];
                    part.iter_mut().zip(rest).for_each(|(slot, b)| *slot = *b);
                    block(&part, &mut before)
                }
            };
            self.any = self.any.or(block);
            self.blocks.push(block);
        }
    }

    /// Whether there is one of a kind anywhere.
    pub(super) fn any(&self, kind: Kind) -> bool {
        kind(&self.any) != 0
    }

    /// Whether there are so many.
    pub(super) fn several(&self, kind: Kind, least: usize) -> bool {
        let mut left = least;
        self.any(kind)
            && self.blocks.iter().any(|block| {
                left = left.saturating_sub(kind(block).count_ones() as usize);
                left == 0
            })
    }

    /// How many there are from one place to another.
    pub(super) fn count(&self, kind: Kind, (from, to): (usize, usize)) -> usize {
        let (first, last) = (from / BLOCK, to.div_ceil(BLOCK));
        let blocks = self.blocks.get(first..last).unwrap_or_default().iter().zip(first..);
        let count = |(block, number): (&Block, usize)| {
            let before = from.saturating_sub(number * BLOCK);
            let behind = ((number + 1) * BLOCK).saturating_sub(to);
            (kind(block) >> before << before << behind).count_ones() as usize
        };
        blocks.map(count).sum()
    }

    /// The numbers of a kind, from a block on.
    pub(super) fn numbers(&self, kind: Kind, first: usize) -> impl Iterator<Item = u64> {
        self.blocks.get(first..).unwrap_or_default().iter().map(kind)
    }

    /// Those from a place on, of so many bytes that lie in one block.
    pub(super) fn bits(&self, kind: Kind, at: usize, many: usize) -> u64 {
        self.blocks.get(at / BLOCK).map_or(0, kind) >> (at % BLOCK) & !(u64::MAX << many)
    }

    /// The first one from a place on.
    pub(super) fn next(&self, kind: Kind, from: usize) -> Option<usize> {
        let first = from / BLOCK;
        let mut left = u64::MAX << (from % BLOCK);
        self.blocks.get(first..)?.iter().zip(first..).find_map(|(block, number)| {
            let bits = kind(block) & std::mem::replace(&mut left, u64::MAX);
            (bits != 0).then(|| number * BLOCK + bits.trailing_zeros() as usize)
        })
    }

    /// Where they are from a place on.
    pub(super) fn each(&self, kind: Kind, from: usize) -> impl Iterator<Item = usize> {
        let first = from / BLOCK;
        let mut left = u64::MAX << (from % BLOCK);
        let blocks = self.blocks.get(first..).unwrap_or_default().iter().zip(first..);
        blocks.flat_map(move |(block, number)| {
            let mut bits = kind(block) & std::mem::replace(&mut left, u64::MAX);
            std::iter::from_fn(move || {
                let bit = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
                bits &= bits - 1;
                Some(number * BLOCK + bit)
            })
        })
    }

    /// Whether the text is ASCII.
    pub(super) fn ascii(&self) -> bool {
        self.any.beyond == 0
    }

    pub(super) fn length(&self) -> usize {
        self.length
    }
}

/// What the last byte before a block is.
#[derive(Default)]
struct Before {
    letter: bool,
    /// One of the digits and signs behind a letter.
    between: bool,
    small: bool,
    separator: bool,
}

/// Which of a block's bytes are letters and digits of ASCII.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Letters {
    pub(super) small: u64,
    pub(super) capitals: u64,
    pub(super) digits: u64,
}

impl Letters {
    /// Of at most so many bytes as a block has.
    pub(super) fn of(part: &[u8]) -> Self {
        let mut bytes = [0; BLOCK];
        bytes.iter_mut().zip(part).for_each(|(slot, b)| *slot = *b);
        let mut out = Self::default();
        for (lanes, at) in bytes.as_chunks::<LANES>().0.iter().zip((0..).step_by(LANES)) {
            let some = u8x16::new(*lanes);
            let note = |number: &mut u64, some: u8x16| *number |= u64::from(some.to_bitmask()) << at;
            note(&mut out.small, within(some, b'a', b'z'));
            note(&mut out.capitals, within(some, b'A', b'Z'));
            note(&mut out.digits, within(some, b'0', b'9'));
        }
        out
    }
}

/// Looks at a block and what stands behind it.
#[inline]
fn block(part: &[u8; BLOCK + AHEAD], before: &mut Before) -> Block {
    let mut out = Block::default();
    let (mut letters, mut capitals, mut digits, mut separators) = (0, 0, 0, 0);
    let (mut signs, mut encoding, mut marks) = (0, 0, 0);
    for at in (0..BLOCK).step_by(LANES) {
        let some = |at: usize| u8x16::new(part.get(at..).and_then(|p| p.first_chunk()).copied().unwrap_or_default());
        let (b, next, second) = (some(at), some(at + 1), some(at + 2));
        let note = |number: &mut u64, some: u8x16| *number |= u64::from(some.to_bitmask()) << at;
        let (underscore, plus, backslash, equals) = (is(b, b'_'), is(b, b'+'), is(b, b'\\'), is(b, b'='));
        let same = b.simd_eq(next);
        note(&mut letters, within(b | u8x16::splat(0x20), b'a', b'z'));
        note(&mut capitals, within(b, b'A', b'Z'));
        note(&mut digits, within(b, b'0', b'9'));
        note(&mut separators, underscore | plus | is(b, b'.'));
        note(&mut signs, plus | is(b, b'!') | is(b, b'@') | is(b, b'$'));
        note(&mut encoding, underscore | plus | equals | is(b, b'/') | is(b, b'-'));
        let alone = backslash | is(b, b'<') | is(b, b'*') | is(b, b'`') | is(b, b'^') | is(b, 0xC2);
        let doubled = same & (underscore | is(b, b'~'));
        let pair = is(b, b']') & is(next, b'(') | is(b, b'{') & is(next, b'}');
        note(&mut marks, alone | doubled | pair);
        let alternate = b.simd_eq(second);
        note(&mut out.pairs, alternate ^ alternate & same);
        note(&mut out.escapes, backslash | equals | is(b, b'&') | is(b, b'%'));
        note(&mut out.lines, is(b, b'\n'));
        note(&mut out.beyond, b);
    }
    // Of the byte before each.
    let behind = |bits: u64, first: bool| bits << 1 | u64::from(first);
    let small = letters & !capitals;
    let letter_next = letters >> 1 | u64::from(part.get(BLOCK).is_some_and(u8::is_ascii_alphabetic)) << (BLOCK - 1);
    let stand = signs | digits;
    out.leet = stand & letter_next;
    out.leets = stand | letters;
    // A row of those begins behind a letter: one added there is carried to the byte behind the row.
    let begin = stand & (behind(letters, before.letter) | u64::from(before.between));
    let (carried, over) = stand.overflowing_add(begin);
    out.between = (carried & !stand | u64::from(before.between)) & letters;
    out.marks = marks & behind(letters, before.letter);
    out.encoded = letters | digits | encoding;
    out.named = letters | digits | separators;
    out.borders = behind(separators, before.separator) & (letters | digits) | behind(small, before.small) & capitals;
    let last = |bits: u64| bits >> (BLOCK - 1) != 0;
    *before = Before { letter: last(letters), between: over, small: last(small), separator: last(separators) };
    out
}

#[cfg(test)]
mod tests {
    use super::{
        super::{encoded, joined, leet},
        *,
    };

    proptest::proptest! {
        #[test]
        fn as_one_by_one(text in "([a-cA-C0-9_.+!@$=/\\-<*`^~{}\\]()&%\\\\\n ]|\\PC){0,200}") {
            let places = Places::of(&text);
            let bytes = text.as_bytes();
            let byte = |at: usize| bytes.get(at).copied().unwrap_or_default();
            let before = |at: usize| at.checked_sub(1).map_or(0, byte);
            let check = |kind: Kind, is: &dyn Fn(usize) -> bool| {
                let want: Vec<usize> = (0..bytes.len()).filter(|at| is(*at)).collect();
                proptest::prop_assert_eq!(places.each(kind, 0).collect::<Vec<_>>(), want.clone());
                proptest::prop_assert_eq!(places.any(kind), !want.is_empty());
                for (from, to) in [(0, bytes.len()), (bytes.len() / 3, bytes.len() / 2), (65, 128)] {
                    let (from, to) = (from.min(bytes.len()), to.min(bytes.len()));
                    let some: Vec<usize> = want.iter().copied().filter(|at| (from..to.max(from)).contains(at)).collect();
                    proptest::prop_assert_eq!(places.count(kind, (from, to.max(from))), some.len());
                    let on: Vec<usize> = want.iter().copied().filter(|at| *at >= from).collect();
                    proptest::prop_assert_eq!(places.next(kind, from), on.first().copied());
                    proptest::prop_assert_eq!(places.each(kind, from).collect::<Vec<_>>(), on);
                    proptest::prop_assert!(places.several(kind, want.len()) || want.is_empty());
                    proptest::prop_assert!(!places.several(kind, want.len() + 1));
                }
                Ok(())
            };
            for part in bytes.chunks(BLOCK) {
                let bits = |is: fn(&u8) -> bool| (0..).zip(part).map(|(at, b)| u64::from(is(b)) << at).sum::<u64>();
                let want = Letters {
                    small: bits(u8::is_ascii_lowercase),
                    capitals: bits(u8::is_ascii_uppercase),
                    digits: bits(u8::is_ascii_digit),
                };
                proptest::prop_assert_eq!(Letters::of(part), want);
            }
            check(|b| b.leet, &|at| leet::stands(byte(at)) > 0 && byte(at + 1).is_ascii_alphabetic())?;
            check(|b| b.leets, &|at| !leet::ends(&byte(at)))?;
            check(|b| b.between, &|at| {
                let stand = (0..at).rev().take_while(|at| leet::stands(byte(*at)) > 0).count();
                byte(at).is_ascii_alphabetic() && stand > 0 && before(at - stand).is_ascii_alphabetic()
            })?;
            check(|b| b.marks, &|at| before(at).is_ascii_alphabetic() && match byte(at) {
                b'<' | b'*' | b'`' | b'^' | b'\\' | 0xC2 => true,
                b'_' | b'~' => byte(at) == byte(at + 1),
                b']' => byte(at + 1) == b'(',
                b'{' => byte(at + 1) == b'}',
                _ => false,
            })?;
            check(|b| b.encoded, &|at| encoded::in_run(byte(at)))?;
            check(|b| b.named, &|at| byte(at).is_ascii_alphanumeric() || joined::separates(byte(at)))?;
            check(|b| b.borders, &|at| joined::begins(&[before(at), byte(at)]))?;
            check(|b| b.pairs, &|at| byte(at) == byte(at + 2) && byte(at) != byte(at + 1))?;
            check(|b| b.escapes, &|at| b"&\\%=".contains(&byte(at)))?;
            check(|b| b.lines, &|at| byte(at) == b'\n')?;
            check(|b| b.beyond, &|at| byte(at) >= 0x80)?;
        }
    }
}
