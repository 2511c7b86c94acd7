//! What the engine says about endpoints. A thread of its own, because it waits: it outlives engines, and starts another
//! when one dies, as shims do.

use std::{
    env,
    path::PathBuf,
    time::{Duration, Instant},
};

use firedoor_ipc::{
    Hello, PROTOCOL, Role,
    blocking::Connection,
    command::{Reply, Request},
    endpoint::{self, EndpointError},
    wire::WireError,
};
use firedoor_model::{EntryId, endpoint::Endpoint, paths::Paths};
use tokio::sync::mpsc::UnboundedSender;

/// While Firedoor is off, an engine is looked for this often.
const RETRY: Duration = Duration::from_millis(500);

/// Engines that may be lost within [`WINDOW`] before this program gives up.
const MAX_LOST: usize = 20;
const WINDOW: Duration = Duration::from_secs(60);

/// For the engine to take a word.
const LIMIT: Duration = Duration::from_secs(10);

/// News of the engine.
pub enum News {
    /// What is to be served.
    Serve {
        endpoints: Vec<Endpoint>,
        /// In bytes.
        max_message: usize,
        /// Another engine says it than before.
        anew: bool,
    },
    /// It was switched off, or stopped.
    Off,
    /// There will be none that this program can work for.
    End(String),
}

/// Where the engine is.
#[derive(Clone)]
pub struct Engine {
    pub paths: Paths,
    /// The program that is one.
    pub firedoor: PathBuf,
}

impl Engine {
    fn greeted(&self, socket: std::os::unix::net::UnixStream) -> Result<Connection, WireError> {
        let connection = Connection::new(socket);
        connection.send(&Hello { protocol: PROTOCOL, role: Role::Command, client: None }, &[])?;
        Ok(connection)
    }

    /// Tells the engine what became of an endpoint. Without one there is nobody to tell.
    pub fn tell(&self, entry: EntryId, port: u16, problem: Option<String>) {
        let state = Request::EndpointState { entry, port, problem };
        if let Ok(mut connection) =
            endpoint::connect(&self.paths).map_err(drop).and_then(|s| self.greeted(s).map_err(drop))
            && connection.send(&state, &[]).is_ok()
        {
            // Once it is answered, it is written down.
            let _ = connection.receive::<Reply>(Some(LIMIT));
        }
    }

    /// Listens to one engine after the other, until nobody listens to us.
    pub fn follow(&self, say: &UnboundedSender<News>) {
        let mut lost: Vec<Instant> = Vec::new();
        let mut may_start = true;
        while !say.is_closed() {
            let socket = match may_start {
                true => endpoint::connect_or_start(&self.paths, &self.firedoor, |name| env::var_os(name)),
                false => endpoint::connect(&self.paths),
            };
            let socket = match socket {
                Ok(socket) => socket,
                Err(EndpointError::Off) => {
                    may_start = false;
                    let _ = say.send(News::Off);
                    continue;
                }
                Err(EndpointError::NoEngine) if !may_start => {
                    std::thread::sleep(RETRY);
                    continue;
                }
                Err(e) => return drop(say.send(News::End(e.to_string()))),
            };
            may_start = match self.listen(socket, say) {
                Heard::Meant => {
                    let _ = say.send(News::Off);
                    false
                }
                Heard::Lost => true,
                Heard::Refused(why) => return drop(say.send(News::End(why))),
            };
            lost.retain(|then| then.elapsed() < WINDOW);
            lost.push(Instant::now());
            if lost.len() > MAX_LOST {
                return drop(say.send(News::End("the Firedoor engine keeps failing: see engine.log".into())));
            }
        }
    }

    fn listen(&self, socket: std::os::unix::net::UnixStream, say: &UnboundedSender<News>) -> Heard {
        let Ok(mut connection) = self.greeted(socket) else { return Heard::Lost };
        if connection.send(&Request::ServeEndpoints, &[]).is_err() {
            return Heard::Lost;
        }
        let mut anew = true;
        loop {
            match connection.receive::<Reply>(None) {
                Ok((Reply::Serve { endpoints, max_message }, _)) => {
                    let anew = std::mem::take(&mut anew);
                    if say.send(News::Serve { endpoints, max_message, anew }).is_err() {
                        return Heard::Meant;
                    }
                }
                Ok((Reply::Done { .. }, _)) => return Heard::Meant,
                Ok((Reply::Failed { text } | Reply::Refused { text }, _)) => return Heard::Refused(text),
                Ok(_) => return Heard::Refused("the engine gave an unexpected answer".into()),
                Err(_) => return Heard::Lost,
            }
        }
    }
}

/// How an engine was heard of last.
enum Heard {
    /// It ends, and this is meant.
    Meant,
    /// It is gone.
    Lost,
    Refused(String),
}
