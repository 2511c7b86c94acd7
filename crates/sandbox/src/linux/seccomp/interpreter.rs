//! The kernel's reading of a filter, for tests: the few instructions that the assembler writes.

use nix::libc::{
    BPF_ABS, BPF_ALU, BPF_AND, BPF_JA, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, sock_filter,
};

/// What a filter is shown of a call.
pub(super) struct Shown {
    pub number: u32,
    pub arch: u32,
    pub args: [u64; 6],
}

impl Shown {
    /// `struct seccomp_data` in memory, little-endian.
    fn bytes(&self) -> Vec<u8> {
        let mut out = self.number.to_le_bytes().to_vec();
        out.extend(self.arch.to_le_bytes());
        out.extend(0u64.to_le_bytes());
        self.args.iter().for_each(|a| out.extend(a.to_le_bytes()));
        out
    }
}

/// Runs a filter to its return value. Panics on what the kernel's verifier would refuse.
pub(super) fn run(program: &[sock_filter], call: &Shown) -> u32 {
    let data = call.bytes();
    let mut accumulator = 0u32;
    let mut at = 0;
    loop {
        let i = program[at];
        let code = u32::from(i.code);
        at += 1;
        if code == BPF_LD | BPF_W | BPF_ABS {
            let offset = i.k as usize;
            assert_eq!(offset % 4, 0);
            accumulator = u32::from_le_bytes(data[offset..offset + 4].try_into().unwrap());
        } else if code == BPF_ALU | BPF_AND | BPF_K {
            accumulator &= i.k;
        } else if code == BPF_JMP | BPF_JEQ | BPF_K {
            at += usize::from(if accumulator == i.k { i.jt } else { i.jf });
        } else if code == BPF_JMP | BPF_JGE | BPF_K {
            at += usize::from(if accumulator >= i.k { i.jt } else { i.jf });
        } else if code == BPF_JMP | BPF_JA {
            at += i.k as usize;
        } else if code == BPF_RET | BPF_K {
            return i.k;
        } else {
            panic!("unknown instruction {code:#x}");
        }
    }
}
