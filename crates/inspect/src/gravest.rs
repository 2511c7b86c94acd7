//! Which findings of one message are kept where there are more than anybody reads.

use firedoor_model::{Confidence, Finding, Severity};

/// Most findings of one detector for one message. Where there are more, the gravest stay: what is beyond adds nothing to a decision.
pub const MAX_FINDINGS: usize = 16;

/// What is found, or will become a finding.
pub(crate) trait Graded {
    /// Rules of the user's are about detectors, so that findings of one must not take the room of another's.
    fn detector(&self) -> &str;
    fn grade(&self) -> (Severity, Confidence);
}

impl Graded for Finding {
    fn detector(&self) -> &str {
        &self.detector
    }

    fn grade(&self) -> (Severity, Confidence) {
        (self.severity, self.confidence)
    }
}

/// The gravest findings of each detector, by severity and then confidence, in the order in which they came. Whoever sends a message
/// chooses what stands first in it: were the first ones kept, trifles would hide what follows.
pub(crate) struct Gravest<T> {
    kept: Vec<T>,
}

impl<T> Default for Gravest<T> {
    fn default() -> Self {
        Self { kept: Vec::new() }
    }
}

impl<T: Graded> Gravest<T> {
    /// Keeps one; where its detector has no room left, the least grave goes, of equal ones the last.
    pub(crate) fn push(&mut self, one: T) {
        let of_same = self.kept.iter().enumerate().filter(|(_, other)| other.detector() == one.detector());
        if of_same.clone().count() >= MAX_FINDINGS
            && let Some((at, least)) = of_same.rev().min_by_key(|(_, other)| other.grade())
        {
            if least.grade() >= one.grade() {
                return;
            }
            self.kept.remove(at);
        }
        self.kept.push(one);
    }

    /// What is kept and fits, to be made graver.
    pub(crate) fn find(&mut self, fits: impl FnMut(&&mut T) -> bool) -> Option<&mut T> {
        self.kept.iter_mut().find(fits)
    }

    pub(crate) fn into_vec(self) -> Vec<T> {
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct One(&'static str, Severity, Confidence, usize);

    impl Graded for One {
        fn detector(&self) -> &str {
            self.0
        }

        fn grade(&self) -> (Severity, Confidence) {
            (self.1, self.2)
        }
    }

    fn check(found: impl IntoIterator<Item = (&'static str, Severity, Confidence)>, want: &[usize]) {
        let mut gravest = Gravest::default();
        for (number, (detector, severity, confidence)) in found.into_iter().enumerate() {
            gravest.push(One(detector, severity, confidence, number));
        }
        let kept: Vec<usize> = gravest.into_vec().into_iter().map(|one| one.3).collect();
        assert_eq!(kept, want);
    }

    #[test]
    fn the_gravest_stay_in_their_order() {
        let trifle = ("a/x", Severity::Medium, Confidence::Possible);
        let grave = ("a/x", Severity::High, Confidence::Likely);
        let trifles = || std::iter::repeat_n(trifle, MAX_FINDINGS);
        let first = |many: usize| (0..many).collect::<Vec<_>>();
        check(trifles(), &first(16));
        check(trifles().chain(trifles()), &first(16));
        check(trifles().chain([grave]), &[first(15), vec![16]].concat());
        check(trifles().chain([grave, trifle, grave]), &[first(14), vec![16, 18]].concat());
        check([grave].into_iter().chain(trifles()), &first(16));
        // Confidence counts where the severity is the same, and only there.
        let likelier = ("a/x", Severity::Medium, Confidence::Certain);
        check(trifles().chain([likelier, grave]), &[first(14), vec![16, 17]].concat());
        check(std::iter::repeat_n(grave, MAX_FINDINGS).chain([likelier]), &first(16));
        // Another detector has room of its own.
        check(trifles().chain([("a/y", Severity::Low, Confidence::Possible)]), &first(17));
    }
}
