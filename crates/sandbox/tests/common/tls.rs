//! A TLS server with an authority of its own.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

pub const PYTHON: &str = "/usr/bin/python3";
pub const NAME: &str = "tls.firedoor.test";

/// A TLS server for [`NAME`] and `localhost`, with an authority of its own.
pub struct Tls {
    server: Child,
    pub port: u16,
}

impl Tls {
    /// Starts it, and leaves `ca.pem` in the directory.
    pub fn start(dir: &Path) -> Self {
        let text = r#"
import http.server, ssl, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.send_response(200); self.send_header("Content-Length", "5"); self.end_headers(); self.wfile.write(b"hello")
    def log_message(self, *a): pass
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("cert.pem", "key.pem")
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
"#;
        let openssl = |args: &str| {
            let done = Command::new("openssl").args(args.split(' ')).current_dir(dir).stderr(Stdio::null()).status();
            assert!(done.unwrap().success(), "openssl {args}");
        };
        openssl(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=test",
        );
        openssl(&format!(
            "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key.pem -out req.pem -subj /CN={NAME}"
        ));
        fs::write(dir.join("ext"), format!("subjectAltName=DNS:{NAME},DNS:localhost")).unwrap();
        openssl("x509 -req -in req.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out cert.pem");
        let mut server =
            Command::new(PYTHON).args(["-c", text]).current_dir(dir).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { server, port: line.trim().parse().unwrap() }
    }
}

impl Drop for Tls {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
