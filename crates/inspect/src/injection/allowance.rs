//! How much may be done for one message beyond reading each of its strings once.

use super::places::Places;

/// Bytes that all strings of a message have in common for what they hold written in another way, and for what becomes longer by
/// being decoded.
const DECODED: usize = 512 << 10;
const INFLATED: usize = 256 << 10;
/// And for what regexes look at: those of the phrases of one's own, and those of all other languages, which cost twice as much and of
/// which a text of one language needs few.
const OWN: usize = 1 << 20;
const LANGUAGES: usize = 2 << 20;
/// So many times its bytes the regexes of each kind may look at in one text. Of the everyday texts that were measured all together need
/// two times theirs and a seventh, and those that need more are short, which is what the common bytes are for. Where words for agents stand
/// all over a text, the rules that look for them need six times its bytes: three forms of one, and three others.
const OWN_TIMES: usize = 6;
const LANGUAGES_TIMES: usize = 1;
/// Words to an agent are looked for apart: what they take is no order's. Where too little is left, nothing is said: they are no finding.
const HINTS: usize = 256 << 10;
const HINTS_TIMES: usize = 2;
/// And so many bytes besides: in an order that is short every regex of some twenty looks at all of it.
const OWN_LEAST: usize = 4 << 10;
const LANGUAGES_LEAST: usize = 512;

/// Texts of one message that the network is asked about, each of which takes a millisecond: half of them only those that the linear model
/// comes near to. And places that it is asked to doubt.
const OPINIONS: u32 = 64;

/// What is left for one message, string by string.
#[derive(Debug)]
pub(crate) struct Allowance {
    pub(super) hidden: Hidden,
    pub(super) searched: Searched,
    pub(super) opinions: Opinions,
}

impl Default for Allowance {
    fn default() -> Self {
        Self {
            hidden: Hidden { decoded: Common::of(DECODED), inflated: Common::of(INFLATED), places: Places::default() },
            searched: Searched { own: Common::of(OWN), languages: Common::of(LANGUAGES), hints: Common::of(HINTS) },
            opinions: Opinions { left: OPINIONS, doubts: OPINIONS, short: false },
        }
    }
}

impl Allowance {
    /// Whether something was left unread so far.
    pub(crate) fn short(&self) -> bool {
        let Self { hidden, searched, opinions } = self;
        opinions.short
            || [&hidden.decoded, &hidden.inflated, &searched.own, &searched.languages]
                .into_iter()
                .any(|common| common.short)
    }
}

/// For the network.
#[derive(Debug)]
pub(super) struct Opinions {
    left: u32,
    doubts: u32,
    short: bool,
}

impl Opinions {
    /// Whether it may be asked whether something is none. If not, that is one: nothing is left unread.
    pub(super) fn spare(&mut self) -> bool {
        let spare = self.doubts > 0;
        self.doubts = self.doubts.saturating_sub(1);
        spare
    }

    /// Whether it may be asked once more. What the linear model does not come near to never keeps it from being asked about what it does,
    /// and is no matter for the log.
    pub(super) fn take(&mut self, suspicious: bool) -> bool {
        if !suspicious && self.left <= OPINIONS / 2 {
            return false;
        }
        self.short |= self.left == 0;
        self.left = self.left.saturating_sub(1);
        !self.short
    }
}

/// For the texts inside texts.
#[derive(Debug)]
pub(super) struct Hidden {
    /// As long as what they were made of.
    pub(super) decoded: Common,
    /// The rest: compressed texts would use up what others need.
    pub(super) inflated: Common,
    /// Of the text that is being looked through: here to be used again for the next.
    pub(super) places: Places,
}

/// For the regexes of phrases.
#[derive(Debug)]
pub(super) struct Searched {
    own: Common,
    languages: Common,
    hints: Common,
}

/// Which regexes look at a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Search {
    Own,
    Languages,
    /// Those without weight.
    Hints,
}

impl Searched {
    /// How many bytes of those `wanted` they may look at in a text of so many bytes.
    pub(super) fn take(&mut self, text: usize, wanted: usize, search: Search) -> usize {
        let (common, times, least) = match search {
            Search::Own => (&mut self.own, OWN_TIMES, OWN_LEAST),
            Search::Languages => (&mut self.languages, LANGUAGES_TIMES, LANGUAGES_LEAST),
            Search::Hints => (&mut self.hints, HINTS_TIMES, 0),
        };
        let mut share = common.share(text.saturating_mul(times).saturating_add(least));
        let given = share.take(wanted);
        common.settle(&share);
        given
    }
}

/// What all strings have in common for one kind of work.
#[derive(Debug)]
pub(super) struct Common {
    left: usize,
    short: bool,
}

impl Common {
    fn of(left: usize) -> Self {
        Self { left, short: false }
    }

    /// What one string may use: as much as is its `own`, and of what is in common half of what is left, so that an earlier string never
    /// takes all that a later one needs.
    pub(super) fn share(&self, own: usize) -> Share {
        Share { own, most: own.saturating_add(self.left / 2), used: 0, short: false }
    }

    pub(super) fn settle(&mut self, share: &Share) {
        self.left = self.left.saturating_sub(share.used.saturating_sub(share.own));
        self.short |= share.short;
    }
}

/// What one string may use.
#[derive(Debug)]
pub(super) struct Share {
    own: usize,
    most: usize,
    used: usize,
    short: bool,
}

impl Share {
    /// Takes as much as is left of what is wanted, and remembers that it was too little.
    pub(super) fn take(&mut self, wanted: usize) -> usize {
        let given = wanted.min(self.most.saturating_sub(self.used));
        self.used += given;
        self.short |= given < wanted;
        given
    }

    /// The same without having taken anything: something was left out for another reason.
    pub(super) fn leave_out(&mut self) {
        self.short = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_takes_what_is_anothers() {
        let mut common = Common::of(1000);
        for (own, wanted, given, left, short) in [
            (100, 100, 100, 1000, false),
            (0, 10, 10, 990, false),
            (100, 10_000, 595, 495, true),
            (100, 10_000, 347, 248, true),
            (100, 100, 100, 248, true),
            (100, 150, 150, 198, true),
        ] {
            let mut share = common.share(own);
            assert_eq!(share.take(wanted), given);
            common.settle(&share);
            assert_eq!((common.left, common.short), (left, short));
        }
    }
}
