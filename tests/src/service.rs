//! A service over TLS that servers have a credential for.

use std::{
    io::{BufRead as _, BufReader, PipeWriter},
    path::PathBuf,
    process::Child,
    sync::mpsc::{Receiver, channel},
};

use serde_json::Value;

use crate::{Home, PATIENCE, finish};

/// A name that it goes by besides its address. Nobody looks it up.
pub const SERVICE: &str = "api.shop.example";

/// Makes an authority (`ca.pem`) and a certificate for this machine and [`SERVICE`] (`cert.pem`, `key.pem`) in a directory of the
/// home.
pub fn certify(home: &Home, directory: &str) -> PathBuf {
    let dir = home.directory(directory);
    let openssl = |args: &str| {
        let mut command = home.command("openssl");
        finish(command.args(args.split(' ')).current_dir(&dir)).expect_code(0);
    };
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
    openssl(&format!("req -x509 {key} -keyout ca.key -out ca.pem -days 2 -subj /CN={directory}"));
    openssl(&format!("req {key} -keyout key.pem -out req.pem -subj /CN=service"));
    home.write(&format!("{directory}/ext"), format!("subjectAltName=IP:127.0.0.1,DNS:{SERVICE}"));
    openssl("x509 -req -in req.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out cert.pem");
    dir
}

/// A service of `tests/servers/https_service.py`, with a certificate of an authority of its own.
pub struct Service {
    process: Child,
    /// A line lets what waits go on.
    pub stdin: PipeWriter,
    /// The requests that came.
    pub seen: Receiver<Value>,
    /// Where it is.
    pub port: u16,
}

impl Service {
    /// Starts one, with its certificates in a directory of the home.
    pub fn start(home: &Home, directory: &str) -> Self {
        let dir = certify(home, directory);
        let mut command = home.command(home.python());
        let (process, stdin, stdout) = home.spawn(command.arg(home.script("https_service.py")).current_dir(&dir));
        let mut stdout = BufReader::new(stdout);
        let mut line = String::new();
        stdout.read_line(&mut line).expect("its port");
        let (sender, seen) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines() {
                let Ok(line) = line else { return };
                if sender.send(serde_json::from_str(&line).expect("a request as JSON")).is_err() {
                    return;
                }
            }
        });
        Self { process, stdin, seen, port: line.trim().parse().expect("a port") }
    }

    /// An address of it.
    pub fn url(&self, path: &str) -> String {
        format!("https://127.0.0.1:{}{path}", self.port)
    }

    /// The next request that came.
    #[track_caller]
    pub fn next(&self) -> Value {
        self.seen.recv_timeout(PATIENCE).expect("a request")
    }

    /// No request has come.
    #[track_caller]
    pub fn saw_nothing(&self) {
        let seen: Vec<Value> = self.seen.try_iter().collect();
        assert!(seen.is_empty(), "{seen:?}");
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
