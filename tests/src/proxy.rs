//! A proxy for HTTPS.

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

/// A proxy that is asked for connections (RFC 9110 §9.3.6). Every host is one port of this machine.
pub struct Proxy {
    /// Where it listens.
    pub port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    /// Starts one that leads to this port.
    pub fn start(to: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let (port, asked) = (listener.local_addr().expect("its address").port(), Arc::default());
        let seen: Arc<Mutex<Vec<String>>> = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let seen = Arc::clone(&seen);
                thread::spawn(move || carry(stream, &seen, to));
            }
        });
        Self { port, asked }
    }

    /// What it was asked for since the last time.
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().expect("no thread has failed"))
    }
}

fn carry(mut inner: TcpStream, seen: &Mutex<Vec<String>>, to: u16) {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        if inner.read(&mut byte).unwrap_or(0) == 0 {
            return;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("a head in ASCII");
    let words: Vec<&str> = head.split(' ').collect();
    seen.lock().expect("no thread has failed").push(format!("{} {}", words[0], words[1]));
    let mut outer = TcpStream::connect(("127.0.0.1", to)).expect("the service listens");
    inner.write_all(b"HTTP/1.1 200 OK\r\n\r\n").expect("the client listens");
    let (mut from, mut back) = (inner.try_clone().expect("a copy"), outer.try_clone().expect("a copy"));
    let up = thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut back);
        let _ = back.shutdown(Shutdown::Write);
    });
    let _ = std::io::copy(&mut outer, &mut inner);
    let _ = inner.shutdown(Shutdown::Both);
    let _ = up.join();
}
