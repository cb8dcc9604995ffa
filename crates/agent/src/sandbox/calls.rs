//! A seccomp filter for the one system call that Landlock does not restrict and that can end other processes:
//! setting the limits of another process of the same user. The filter rejects it. A process can still set its
//! own limits and read those of all processes.
//!
//! A filter does not know which process is a descendant, so a run cannot set the limits of its own running
//! children either. Other calls on a process of the same user need access to its memory, which Landlock
//! denies, or can only slow it down.

use std::io;

use rustix::io::Errno;
use seccompiler::{Error, apply_filter, sock_filter};

/// Whether the filter is active.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Filtered {
    Yes,
    /// This kernel has no filters, or the system call numbers of this architecture are unknown.
    Unknown,
}

/// Every way to make the call, as architecture and number: a kernel also accepts 32-bit calls, and on x86-64
/// those of the x32 ABI.
const CALLS: [(u32, u32); 6] = [
    (0xC000_003E, 302),
    (0xC000_003E, 302 | 0x4000_0000),
    (0x4000_0003, 340),
    (0xC000_00B7, 261),
    (0x4000_0028, 369),
    (0xC000_00F3, 261),
];
const MACHINE_IS_KNOWN: bool =
    cfg!(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"));

/// Offsets of number, architecture, process and new limit in the data that the kernel passes to a filter; the
/// pointer to the limit has two halves.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const PROCESS: u32 = 16;
const NEW_LIMIT: [u32; 2] = [32, 36];

const LOAD: u16 = 0x20;
const IF_EQUAL: u16 = 0x15;
const ANSWER: u16 = 0x06;

const ALLOW: u32 = 0x7FFF_0000;
const REFUSE: u32 = 0x0005_0000 | 1;

/// Permanently prevents the calling thread and its children from setting the limits of other processes.
pub(super) fn filter() -> io::Result<Filtered> {
    if !MACHINE_IS_KNOWN {
        return Ok(Filtered::Unknown);
    }
    let missing = [Errno::NOSYS, Errno::INVAL].map(Errno::raw_os_error);
    match apply_filter(&program()) {
        Ok(()) => Ok(Filtered::Yes),
        Err(Error::Seccomp(error)) if error.raw_os_error().is_some_and(|errno| missing.contains(&errno)) => {
            Ok(Filtered::Unknown)
        }
        Err(error) => Err(io::Error::other(error.to_string())),
    }
}

fn program() -> Vec<sock_filter> {
    let load = |k| sock_filter { code: LOAD, jt: 0, jf: 0, k };
    let answer = |k| sock_filter { code: ANSWER, jt: 0, jf: 0, k };
    let if_equal = |k, jt, jf| sock_filter { code: IF_EQUAL, jt, jf, k };
    let mut program = Vec::new();
    for (left, (architecture, number)) in (0..CALLS.len() as u8).rev().zip(CALLS) {
        // Jumps over the remaining checks and the `ALLOW` after them.
        let found = left * 4 + 1;
        program.extend([load(ARCHITECTURE), if_equal(architecture, 0, 2)]);
        program.extend([load(NUMBER), if_equal(number, found, 0)]);
    }
    program.push(answer(ALLOW));
    // The kernel uses only the lower half of the pid; 0 is the caller.
    program.extend([load(PROCESS), if_equal(0, 4, 0)]);
    program.extend([load(NEW_LIMIT[0]), if_equal(0, 0, 3)]);
    program.extend([load(NEW_LIMIT[1]), if_equal(0, 0, 1)]);
    program.extend([answer(ALLOW), answer(REFUSE)]);
    program
}

#[cfg(test)]
mod tests {
    use super::{ALLOW, ANSWER, CALLS, IF_EQUAL, LOAD, REFUSE, program};

    /// Interprets the program like the kernel, for the three kinds of instructions in use.
    fn answer(seen: [u32; 16]) -> u32 {
        let program = program();
        let (mut at, mut loaded) = (0, 0);
        loop {
            let step = &program[at];
            at += 1;
            match step.code {
                LOAD => loaded = seen[step.k as usize / 4],
                IF_EQUAL => at += usize::from(if loaded == step.k { step.jt } else { step.jf }),
                ANSWER => return step.k,
                other => panic!("no such instruction: {other}"),
            }
        }
    }

    fn call(architecture: u32, number: u32, process: u32, new_limit: u64) -> u32 {
        let mut seen = [0; 16];
        (seen[0], seen[1], seen[4]) = (number, architecture, process);
        (seen[8], seen[9]) = (new_limit as u32, (new_limit >> 32) as u32);
        answer(seen)
    }

    /// Breaks when one way to make the call is left open, or when a harmless call is rejected. The kernel's
    /// real behaviour is tested in `escaping.rs`.
    #[test]
    fn every_way_to_set_the_limits_of_others_is_refused_and_no_other_call() {
        for (architecture, number) in CALLS {
            for new_limit in [1, 1 << 32, 0x7FFF_1234_5678] {
                assert_eq!(call(architecture, number, 77, new_limit), REFUSE, "{architecture:x} {number}");
                assert_eq!(call(architecture, number, 0, new_limit), ALLOW);
            }
            assert_eq!(call(architecture, number, 77, 0), ALLOW);
            assert_eq!(call(architecture, number + 1, 77, 1), ALLOW);
        }
        assert_eq!(call(0xC000_003E, 340, 77, 1), ALLOW);
    }
}
