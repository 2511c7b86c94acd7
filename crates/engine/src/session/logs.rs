//! Keeping the logs of what was read from growing, whoever speaks and however.

use super::ledger::{Ledger, Record, Way};
use crate::io::{Inlet, Lines, Outlet};

/// Gives back the memory of what was read and is dealt with. What the next engine would read stays: the ledger says where that
/// begins. `to` is where it goes.
pub(super) async fn shorten(way: Way, (inlet, lines): (&mut Inlet, &Lines), to: &Outlet, ledger: &Ledger) {
    if !inlet.is_long() {
        return;
    }
    if lines.skips() || to.is_gone() {
        // A line without an end must not be kept whole, nor what nobody takes. What came before it is kept until it is written.
        to.written().await;
        ledger.write(Record::Through(way, inlet.done(lines.held())));
    }
    // What is written later would note an offset of the log as it was.
    if to.is_empty() && inlet.renew(lines.held()) {
        return ledger.write(Record::Through(way, 0));
    }
    inlet.release(ledger.through(way).unwrap_or_else(|| inlet.done(lines.held())));
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::{
        fs::File,
        io::{self, Read, Write},
        os::fd::OwnedFd,
        rc::Rc,
    };

    use nix::sys::{
        memfd::{MFdFlags, memfd_create},
        stat::fstat,
    };
    use tokio::task::LocalSet;

    use super::*;
    use crate::io::{Line, Log};

    const LIMIT: usize = 1 << 20;

    fn memory() -> OwnedFd {
        memfd_create("t", MFdFlags::MFD_CLOEXEC).unwrap()
    }

    fn blocks(file: &OwnedFd) -> u64 {
        fstat(file).unwrap().st_blocks as u64 * 512
    }

    /// Reads a stream as a session does, and gives the most memory that its log needed. Each of the first chunks is written
    /// before the next comes.
    async fn longest(
        chunks: impl Iterator<Item = Vec<u8>>,
        written: usize,
        to: &Outlet,
        file: &OwnedFd,
        ledger: OwnedFd,
    ) -> u64 {
        let ledger = Rc::new(Ledger::open(ledger).unwrap().0);
        let (reader, mut writer) = io::pipe().unwrap();
        let log = Log::open(file.try_clone().unwrap(), None, 0).unwrap();
        let mut inlet = Inlet::new(reader.into(), Some(log)).unwrap();
        let mut lines = Lines::new(LIMIT);
        let mut longest = 0;
        for (n, chunk) in chunks.enumerate() {
            writer.write_all(&chunk).unwrap();
            let mut left = chunk.len();
            if n < written {
                to.written().await;
            }
            while left > 0 {
                left -= inlet.read(&mut lines).await.unwrap();
                while let Some((line, held)) = lines.next() {
                    let (noted, through) = (ledger.clone(), Record::Through(Way::Down, inlet.done(held)));
                    match line {
                        Line::Whole(line) => to.send(line, Box::new(move || noted.write(through))),
                        Line::TooLong { .. } => noted.write(through),
                    }
                }
                shorten(Way::Down, (&mut inlet, &lines), to, &ledger).await;
            }
            longest = longest.max(blocks(file));
        }
        longest
    }

    #[tokio::test]
    async fn no_way_of_writing_makes_a_log_grow() {
        const CHUNKS: usize = 1024;
        let with_a_byte_of_the_next = |n: usize| {
            let mut chunk = vec![b'x'; 32 << 10];
            chunk[if n == 0 { 100 } else { 0 }] = b'\n';
            chunk[(32 << 10) - 2] = b'\n';
            chunk
        };
        let without_an_end = |_| vec![b'x'; 32 << 10];
        type Writing<'w> = &'w dyn Fn(usize) -> Vec<u8>;
        let ways: [(&str, Writing<'_>); 2] =
            [("a byte of the next line", &with_a_byte_of_the_next), ("no line end", &without_an_end)];
        LocalSet::new()
            .run_until(async {
                for (name, way) in ways {
                    for gone in [false, true] {
                        let null = File::options().write(true).open("/dev/null").unwrap();
                        let (reader, writer) = io::pipe().unwrap();
                        drop(reader);
                        let to = Outlet::new(if gone { writer.into() } else { null.into() }, None).unwrap();
                        // How much is written between two looks depends on the machine, so each chunk is where somebody takes it.
                        let written = if gone { 0 } else { CHUNKS };
                        let longest = longest((0..CHUNKS).map(way), written, &to, &memory(), memory()).await;
                        // Of 32 MiB.
                        assert!(longest < 8 << 20, "{name}, {gone}: {longest}");
                    }
                }
            })
            .await;
    }

    #[tokio::test]
    async fn what_is_not_written_yet_is_kept_for_the_next_engine() {
        const LINE: usize = 8192;
        const ALL: usize = 512;
        const READ: usize = ALL / 2;
        LocalSet::new()
            .run_until(async {
                let (mut reader, writer) = io::pipe().unwrap();
                let to = Outlet::new(writer.into(), None).unwrap();
                let (file, ledger) = (memory(), memory());
                let client = std::thread::spawn(move || {
                    reader.read_exact(&mut vec![0; READ * LINE]).unwrap();
                    reader
                });
                // Each line says which it is, and comes with a byte of the next.
                let all: String = (0..ALL).map(|n| format!("{n:8191}\n")).collect();
                let (first, rest) = all.as_bytes().split_at(1);
                let chunks = std::iter::once(first).chain(rest.chunks(LINE)).map(<[u8]>::to_vec);
                longest(chunks, READ, &to, &file, ledger.try_clone().unwrap()).await;
                let _client = client.join().unwrap();
                assert!(blocks(&file) < ((ALL - READ / 2) * LINE) as u64);
                // The next engine.
                let (_, state) = Ledger::open(ledger).unwrap();
                let mut expected = state.down as usize / LINE;
                assert!((READ..ALL).contains(&expected) && state.down as usize == expected * LINE, "{}", state.down);
                let log = Log::open(file, None, state.down).unwrap();
                let (server, _writer) = io::pipe().unwrap();
                let mut next = Inlet::new(server.into(), Some(log)).unwrap();
                let mut lines = Lines::new(LIMIT);
                while expected < ALL {
                    next.read(&mut lines).await.unwrap();
                    while let Some((line, _)) = lines.next() {
                        assert_eq!(line, Line::Whole(format!("{expected:8191}\n").as_bytes()));
                        expected += 1;
                    }
                }
            })
            .await;
    }
}
