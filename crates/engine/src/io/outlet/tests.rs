use std::{
    io::{Read, Seek},
    os::unix::net::UnixStream,
};

use tokio::task::LocalSet;

use super::*;

#[tokio::test]
async fn what_is_sent_arrives_in_order_when_the_reader_is_slow() {
    LocalSet::new()
        .run_until(async {
            let (mut reader, writer) = io::pipe().unwrap();
            let outlet = Outlet::new(writer.into(), None).unwrap();
            let mut want = Vec::new();
            for i in 0..5_000u32 {
                let line = format!("{i}:{}\n", "x".repeat(600));
                outlet.send(line.as_bytes(), Box::new(|| {}));
                want.extend_from_slice(line.as_bytes());
            }
            let read = tokio::task::spawn_blocking(move || {
                let mut got = Vec::new();
                reader.read_to_end(&mut got).unwrap();
                got
            });
            outlet.room().await;
            outlet.0.until(|i| i.queued.get() == 0).await;
            outlet.close();
            drop(outlet);
            assert!(read.await.unwrap() == want);
        })
        .await;
}

/// Bytes that a reader has not taken hold nobody up: not those who are full, nor those who are not any more.
#[tokio::test]
async fn a_socket_that_was_full_goes_on_each_time_its_reader_takes_something() {
    LocalSet::new()
        .run_until(async {
            let (writer, mut reader) = UnixStream::pair().unwrap();
            let outlet = Outlet::new(writer.into(), None).unwrap();
            for round in 0..20u8 {
                let message = vec![round; 700_000];
                outlet.send(&message, Box::new(|| {}));
                assert!(outlet.0.queued.get() > 0, "a socket does not take all of it");
                let mut copy = reader.try_clone().unwrap();
                let read = tokio::task::spawn_blocking(move || {
                    let mut got = vec![0; 700_000];
                    copy.read_exact(&mut got).map(|()| got)
                });
                outlet.written().await;
                assert!(read.await.unwrap().unwrap() == message);
                // What is short goes at once.
                outlet.send(b"short", Box::new(|| {}));
                assert_eq!(outlet.0.queued.get(), 0);
                let mut short = [0; 5];
                reader.read_exact(&mut short).unwrap();
            }
            // Its reader goes while it is full.
            outlet.send(&vec![0; 700_000], Box::new(|| {}));
            tokio::task::yield_now().await;
            drop(reader);
            outlet.broken().await;
        })
        .await;
}

#[tokio::test]
async fn a_reader_that_goes_is_noticed_while_idle() {
    LocalSet::new()
        .run_until(async {
            let (reader, writer) = io::pipe().unwrap();
            let (a, b) = UnixStream::pair().unwrap();
            let (pipe, socket) = (Outlet::new(writer.into(), None).unwrap(), Outlet::new(a.into(), None).unwrap());
            pipe.send(b"x", Box::new(|| {}));
            socket.send(b"x", Box::new(|| {}));
            assert!(pipe.0.state.get() == State::Open && socket.0.state.get() == State::Open);
            drop((reader, b));
            pipe.broken().await;
            socket.broken().await;
        })
        .await;
}

#[tokio::test]
async fn the_next_engine_goes_on_at_the_byte_where_this_one_was_killed() {
    use nix::sys::memfd::{MFdFlags, memfd_create};
    LocalSet::new()
        .run_until(async {
            let (mut reader, writer) = io::pipe().unwrap();
            let file = memfd_create("t", MFdFlags::MFD_CLOEXEC).unwrap();
            let end = Rc::new(Cell::new(0));
            let remainder = || {
                let noted = end.clone();
                Remainder::new(file.try_clone().unwrap(), end.get(), move |end| noted.set(end))
            };
            let open = || Outlet::new(writer.try_clone().unwrap().into(), Some(remainder())).unwrap();
            let mut want = Vec::new();
            let mut got = Vec::new();
            let mut chunk = vec![0; 7001];
            for round in 0..40u8 {
                // More than the pipe holds, then a new engine.
                let outlet = open();
                let message = vec![b'a' + round % 26; 150_000 + usize::from(round)];
                let sure = Rc::new(Cell::new(false));
                let told = sure.clone();
                outlet.0.until(|i| i.queued.get() == 0).await;
                outlet.send(&message, Box::new(move || told.set(true)));
                assert!(sure.get());
                want.extend(message);
                outlet.0.enter(State::Broken);
                drop(outlet);
                let next = open();
                while next.0.queued.get() > 0 {
                    let count = reader.read(&mut chunk).unwrap();
                    got.extend_from_slice(&chunk[..count]);
                    tokio::task::yield_now().await;
                    let _ = next.0.flush();
                }
                next.0.enter(State::Broken);
            }
            drop(writer);
            let rest = tokio::task::spawn_blocking(move || {
                let mut rest = Vec::new();
                reader.read_to_end(&mut rest).map(|_| rest)
            });
            got.extend(rest.await.unwrap().unwrap());
            assert!(got == want);
            assert!(nix::sys::stat::fstat(&file).unwrap().st_blocks * 512 < 1 << 20);
        })
        .await;
}

#[tokio::test]
async fn closing_closes_the_descriptor_while_the_outlet_lives() {
    LocalSet::new()
        .run_until(async {
            let (mut reader, writer) = io::pipe().unwrap();
            let outlet = Outlet::new(writer.into(), None).unwrap();
            outlet.send(b"last", Box::new(|| {}));
            outlet.close();
            let read = tokio::task::spawn_blocking(move || {
                let mut text = String::new();
                reader.read_to_string(&mut text).map(|_| text)
            });
            assert_eq!(read.await.unwrap().unwrap(), "last");
            drop(outlet);
        })
        .await;
}

#[tokio::test]
async fn files_and_devices_are_written_by_a_thread() {
    LocalSet::new()
        .run_until(async {
            let mut file = tempfile::tempfile().unwrap();
            let outlet = Outlet::new(file.try_clone().unwrap().into(), None).unwrap();
            outlet.send(b"one\n", Box::new(|| {}));
            outlet.send(b"two\n", Box::new(|| {}));
            outlet.close();
            outlet.0.until(|i| i.state.get() == State::Closed).await;
            file.rewind().unwrap();
            let mut text = String::new();
            file.read_to_string(&mut text).unwrap();
            assert_eq!(text, "one\ntwo\n");
            let full = Outlet::new(File::options().write(true).open("/dev/full").unwrap().into(), None).unwrap();
            full.send(b"x", Box::new(|| {}));
            full.broken().await;
        })
        .await;
}
