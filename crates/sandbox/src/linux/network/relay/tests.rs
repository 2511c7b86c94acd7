use std::thread;

use nix::poll::{PollFd, PollTimeout, poll};

use super::*;

fn arrived() -> (TcpStream, Relay) {
    let door = Door::open(false).unwrap();
    let program = TcpStream::connect(door.address().unwrap()).unwrap();
    let from = program.local_addr().unwrap();
    let to = "a.example:80".parse().unwrap();
    (program, Relay::new(Pid::this(), to, door, from, Instant::now()))
}

/// Lets it go on for as long as something happens, at most until it is over.
fn drive(mut relay: Relay) {
    loop {
        let mut fds: Vec<_> = relay.watched().map(|(fd, flags)| PollFd::new(fd, flags)).collect();
        poll(&mut fds, PollTimeout::from(10_000u16)).unwrap();
        if !relay.advance(Instant::now()) {
            return;
        }
    }
}

fn is_reset(stream: &mut TcpStream) -> bool {
    stream.read(&mut [0]).is_err_and(|e| e.kind() == io::ErrorKind::ConnectionReset)
}

#[test]
fn only_the_socket_it_was_made_for_comes_in() {
    let door = Door::open(false).unwrap();
    let at = door.address().unwrap();
    let mut strangers = [(); 3].map(|()| TcpStream::connect(at).unwrap());
    let program = TcpStream::connect(at).unwrap();
    let own = door.accept(program.local_addr().unwrap()).unwrap().unwrap();
    assert_eq!(own.peer_addr().unwrap(), program.local_addr().unwrap());
    assert!(strangers.iter_mut().all(is_reset));
    assert!(door.accept(program.local_addr().unwrap()).unwrap().is_none());
    drop(door);
    assert!(TcpStream::connect(at).is_err());
}

#[test]
fn dropping_resets() {
    let (mut program, mut relay) = arrived();
    assert!(relay.advance(Instant::now()) && relay.is_asked() && relay.is_unsettled());
    program.write_all(b"never read").unwrap();
    assert!(relay.sweep(Instant::now()), "it waits");
    drop(relay);
    assert!(is_reset(&mut program));
    // Also one that never arrived where it was led.
    let (mut program, relay) = arrived();
    drop(relay);
    assert!(is_reset(&mut program));
}

#[test]
fn what_is_led_elsewhere_begins_with_the_key() {
    let there = TcpListener::bind("127.0.0.1:0").unwrap();
    let (mut program, mut relay) = arrived();
    let (name, key) = ("a.example".to_owned(), "a key".to_owned());
    let led = Led { name, port: 80, at: there.local_addr().unwrap().port(), key };
    assert!(relay.lead(&led, Instant::now()));
    program.write_all(b", and what was said").unwrap();
    program.shutdown(Shutdown::Write).unwrap();
    let driven = thread::spawn(move || drive(relay));
    let (mut stream, _) = there.accept().unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    assert_eq!(said, "a key, and what was said");
    stream.write_all(b"heard").unwrap();
    drop(stream);
    let mut heard = String::new();
    program.read_to_string(&mut heard).unwrap();
    assert_eq!(heard, "heard");
    driven.join().unwrap();
}

#[test]
fn what_came_to_nothing_is_over() {
    let (program, mut relay) = arrived();
    let now = Instant::now();
    assert!(relay.sweep(now) && !relay.sweep(now + ARRIVAL), "it did not arrive in time");
    assert!(relay.advance(now) && relay.sweep(now + ARRIVAL), "it has arrived");
    drop(program);
    assert!(!relay.sweep(now), "nothing said, and gone");
    let (_program, mut relay) = arrived();
    relay.look_up();
    assert!(!relay.connect([], now), "no address");
}

#[test]
fn bytes_go_both_ways_after_an_address_that_refuses() {
    let refusing = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let host = TcpListener::bind("127.0.0.1:0").unwrap();
    let (mut program, mut relay) = arrived();
    relay.look_up();
    assert!(relay.connect([refusing, host.local_addr().unwrap()], Instant::now()));
    let relaying = thread::spawn(move || drive(relay));
    // Both say more than all buffers hold, half close, and hear everything.
    let talk = |mut stream: TcpStream, own: u8| {
        let mut out = stream.try_clone().unwrap();
        let saying = thread::spawn(move || {
            out.write_all(&vec![own; 8 << 20]).unwrap();
            out.shutdown(Shutdown::Write).unwrap();
        });
        let mut heard = Vec::new();
        stream.read_to_end(&mut heard).unwrap();
        saying.join().unwrap();
        heard
    };
    let other = thread::spawn(move || talk(host.accept().unwrap().0, b'h'));
    program.set_nonblocking(false).unwrap();
    let heard = talk(program.try_clone().unwrap(), b'p');
    assert_eq!((heard.len(), heard.iter().all(|b| *b == b'h')), (8 << 20, true));
    assert_eq!(other.join().unwrap(), vec![b'p'; 8 << 20]);
    relaying.join().unwrap();
    assert_eq!(program.read(&mut [0]).unwrap(), 0, "closed in peace");
}

#[test]
fn an_end_that_is_cut_off_cuts_the_other() {
    let host = TcpListener::bind("127.0.0.1:0").unwrap();
    let (mut program, mut relay) = arrived();
    relay.look_up();
    assert!(relay.connect([host.local_addr().unwrap()], Instant::now()));
    let relaying = thread::spawn(move || drive(relay));
    let (mut there, _) = host.accept().unwrap();
    program.write_all(b"x").unwrap();
    there.read_exact(&mut [0]).unwrap();
    reset_on_close(&there, true).unwrap();
    drop(there);
    relaying.join().unwrap();
    assert!(is_reset(&mut program));
}
