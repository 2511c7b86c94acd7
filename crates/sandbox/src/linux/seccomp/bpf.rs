//! A small assembler for classic BPF with labels, so that no jump distance is written by hand.

use nix::libc::{
    BPF_ABS, BPF_ALU, BPF_AND, BPF_JA, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, sock_filter,
};

use super::TooLong;

/// Longest program the kernel takes (`BPF_MAXINSNS`, linux/bpf_common.h).
const MAX_INSTRUCTIONS: usize = 4096;

// `struct seccomp_data` (linux/seccomp.h): nr at 0, arch at 4, instruction pointer at 8, six 64-bit arguments from 16.
const OFFSET_NR: u32 = 0;
const OFFSET_ARCH: u32 = 4;
const OFFSET_ARGS: u32 = 16;

/// A place in the program, known once it is [bound](Assembler::bind).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label(usize);

enum Line {
    Plain { code: u32, k: u32 },
    Jump { code: u32, k: u32, yes: Label, no: Label },
    Always { to: Label },
}

/// A program under construction.
#[derive(Default)]
pub(super) struct Assembler {
    lines: Vec<Line>,
    /// By label: the index of the line it stands before.
    labels: Vec<Option<usize>>,
}

impl Assembler {
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Puts a label before the next line.
    pub fn bind(&mut self, label: Label) {
        if let Some(place) = self.labels.get_mut(label.0) {
            *place = Some(self.lines.len());
        }
    }

    pub fn load_number(&mut self) {
        self.load(OFFSET_NR);
    }

    pub fn load_arch(&mut self) {
        self.load(OFFSET_ARCH);
    }

    /// Loads the low half of an argument. Both architectures here are little-endian.
    pub fn load_argument(&mut self, index: u8) {
        self.load(OFFSET_ARGS + 8 * u32::from(index));
    }

    fn load(&mut self, offset: u32) {
        self.lines.push(Line::Plain { code: BPF_LD | BPF_W | BPF_ABS, k: offset });
    }

    pub fn and(&mut self, mask: u32) {
        self.lines.push(Line::Plain { code: BPF_ALU | BPF_AND | BPF_K, k: mask });
    }

    pub fn if_equal(&mut self, value: u32, yes: Label, no: Label) {
        self.lines.push(Line::Jump { code: BPF_JMP | BPF_JEQ | BPF_K, k: value, yes, no });
    }

    pub fn if_at_least(&mut self, value: u32, yes: Label, no: Label) {
        self.lines.push(Line::Jump { code: BPF_JMP | BPF_JGE | BPF_K, k: value, yes, no });
    }

    /// Jumps, however far.
    pub fn jump(&mut self, to: Label) {
        self.lines.push(Line::Always { to });
    }

    pub fn ret(&mut self, value: u32) {
        self.lines.push(Line::Plain { code: BPF_RET | BPF_K, k: value });
    }

    /// Resolves the labels. Jumps lead forward, those with a condition by at most 255 instructions.
    pub fn assemble(&self) -> Result<Vec<sock_filter>, TooLong> {
        if self.lines.len() > MAX_INSTRUCTIONS {
            return Err(TooLong(self.lines.len()));
        }
        let distance = |from: usize, to: Label| {
            let target = self.labels.get(to.0).copied().flatten();
            target.and_then(|t| t.checked_sub(from + 1)).ok_or(TooLong(from))
        };
        let near = |from: usize, to: Label| u8::try_from(distance(from, to)?).map_err(|_| TooLong(from));
        let code16 = |code: u32| u16::try_from(code).map_err(|_| TooLong(0));
        let encode = |(at, line): (usize, &Line)| {
            Ok(match *line {
                Line::Plain { code, k } => sock_filter { code: code16(code)?, jt: 0, jf: 0, k },
                Line::Jump { code, k, yes, no } => {
                    sock_filter { code: code16(code)?, jt: near(at, yes)?, jf: near(at, no)?, k }
                }
                Line::Always { to } => {
                    let k = u32::try_from(distance(at, to)?).map_err(|_| TooLong(at))?;
                    sock_filter { code: code16(BPF_JMP | BPF_JA)?, jt: 0, jf: 0, k }
                }
            })
        };
        self.lines.iter().enumerate().map(encode).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_are_resolved_or_refused() {
        let mut a = Assembler::default();
        let (yes, no) = (a.label(), a.label());
        a.load_number();
        a.if_equal(7, yes, no);
        a.bind(no);
        a.ret(0);
        a.bind(yes);
        a.ret(1);
        let program = a.assemble().unwrap();
        assert_eq!((program[1].jt, program[1].jf), (1, 0));

        let unbound = a.label();
        a.if_equal(1, unbound, unbound);
        assert!(a.assemble().is_err(), "unbound label");

        let mut far = Assembler::default();
        let end = far.label();
        far.if_equal(1, end, end);
        (0..256).for_each(|_| far.ret(0));
        far.bind(end);
        far.ret(0);
        assert!(far.assemble().is_err(), "too far");

        let mut farther = Assembler::default();
        let end = farther.label();
        farther.jump(end);
        (0..300).for_each(|_| farther.ret(0));
        farther.bind(end);
        farther.ret(0);
        assert_eq!(farther.assemble().unwrap()[0].k, 300);

        let mut back = Assembler::default();
        let start = back.label();
        back.bind(start);
        back.if_equal(1, start, start);
        assert!(back.assemble().is_err(), "backward");
    }
}
