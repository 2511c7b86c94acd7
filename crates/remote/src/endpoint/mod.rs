//! `firedoor-remote --endpoints`: listens on this machine for clients that start no programs.
//!
//! Each endpoint has a port and a path of its own, behind which there is one server. A session of a client starts a shim,
//! as a client would that starts programs; so what passes is judged by a session of the engine like any other, and the
//! server is confined like any other. This program parses what processes of the same user send, once they have named the
//! path, and nothing of any server but the kinds and ids of its messages, after the engine has judged them. It cannot be
//! confined itself: what it starts would be confined with it.
//!
//! Architecture invariant: a message's bytes are passed on as they came; only line breaks between tokens become spaces.

mod answer;
mod control;
mod gate;
mod rate;
mod server;
mod session;
mod stateless;
mod stream;
mod visit;

use std::{
    cell::{Cell, OnceCell, RefCell},
    collections::HashMap,
    convert::Infallible,
    env, io,
    net::SocketAddr,
    path::PathBuf,
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use firedoor_ipc::{endpoint as ipc, tcp};
use firedoor_model::{EntryId, endpoint::Endpoint, paths::sibling};
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, mpsc},
    task::AbortHandle,
};

use self::{
    control::{Engine, News},
    gate::Gate,
    visit::Connection,
};
use crate::listener;

/// What this program is started with.
pub const ENDPOINTS: &str = "--endpoints";

/// Most connections at once, of all endpoints. Others wait in the system's queue.
const MAX_CONNECTIONS: usize = 768;

/// For the head of a request to arrive, and for a connection on which no other comes. undici keeps a connection shorter
/// than a server says, so that it does not write to one that is being closed.
const HEAD: Duration = Duration::from_secs(60);

/// Longest head of a request, in bytes.
const MAX_HEAD: usize = 64 << 10;

/// Most headers of one.
const MAX_HEADERS: usize = 100;

/// Ports that are tried for a new endpoint, below those that the system gives to outgoing connections
/// (/proc/sys/net/ipv4/ip_local_port_range begins at 32768): at the next login it is still free.
const PORTS: std::ops::Range<u16> = 20_000..32_768;
const TRIES: usize = 64;

/// A port that is taken is tried again this often.
const AGAIN: Duration = Duration::from_secs(5);

/// Sessions whose client has gone are looked for this often.
const ROUND: Duration = Duration::from_secs(2);

/// An endpoint that is served, or is to be.
struct Served {
    gate: RefCell<Option<Rc<Gate>>>,
    /// Why it is not served yet, if that is known.
    problem: RefCell<Option<String>>,
    endpoint: Endpoint,
    task: AbortHandle,
}

/// Serves until there is nothing to serve.
pub async fn serve() -> Result<(), String> {
    let paths = ipc::paths(|name| env::var_os(name)).map_err(|e| e.to_string())?;
    let beside = |name| sibling(name).map_err(|e| format!("Firedoor's own directory is not known: {e}"));
    // Another may have outlived its engine: it finds the next one by itself.
    let Some(_only) = ipc::only_one(&paths.runtime.join("endpoints.lock")).map_err(|e| e.to_string())? else {
        return Ok(());
    };
    let engine = Engine { paths, firedoor: beside("firedoor")? };
    let (say, mut hear) = mpsc::unbounded_channel();
    let follower = engine.clone();
    std::thread::Builder::new()
        .name("engine".into())
        .spawn(move || follower.follow(&say))
        .map_err(|e| format!("no thread can be started: {e}"))?;
    let house = Rc::new(House {
        engine,
        shim: beside("firedoor-shim")?,
        off: Rc::default(),
        places: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
        served: RefCell::default(),
    });
    let mut round = tokio::time::interval(ROUND);
    loop {
        tokio::select! {
            news = hear.recv() => match news {
                Some(News::Serve { endpoints, max_message, anew }) => {
                    house.off.set(false);
                    house.serve(endpoints, max_message);
                    if anew {
                        house.tell_all();
                    }
                }
                Some(News::Off) => house.off.set(true),
                Some(News::End(why)) => return Err(why),
                None => return Err("the engine's thread has ended".into()),
            },
            _ = round.tick() => {
                house.tidy();
                // Its next start brings it back.
                if house.off.get() && house.is_idle() {
                    return Ok(());
                }
            }
        }
    }
}

/// Everything that is served.
struct House {
    engine: Engine,
    shim: PathBuf,
    off: Rc<Cell<bool>>,
    places: Arc<Semaphore>,
    served: RefCell<HashMap<EntryId, Rc<Served>>>,
}

impl House {
    /// Serves these, and no others.
    fn serve(self: &Rc<Self>, endpoints: Vec<Endpoint>, max_message: usize) {
        let mut served = self.served.borrow_mut();
        let same = |known: &Endpoint, new: &Endpoint| {
            known.key == new.key && known.target == new.target && (known.port == new.port || known.port == 0)
        };
        served.retain(|entry, known| {
            let stays = endpoints.iter().any(|new| new.entry == *entry && same(&known.endpoint, new));
            if !stays {
                known.close();
            }
            stays
        });
        for endpoint in endpoints {
            if served.contains_key(&endpoint.entry) {
                continue;
            }
            let (house, wanted) = (self.clone(), endpoint.clone());
            let task = tokio::task::spawn_local(async move { house.listen(wanted, max_message).await });
            let new = Served {
                gate: RefCell::default(),
                problem: RefCell::default(),
                endpoint: endpoint.clone(),
                task: task.abort_handle(),
            };
            served.insert(endpoint.entry, Rc::new(new));
        }
    }

    fn gates(&self) -> Vec<Rc<Gate>> {
        self.served.borrow().values().filter_map(|served| served.gate.borrow().clone()).collect()
    }

    fn tidy(&self) {
        self.gates().iter().for_each(|gate| gate.tidy());
    }

    fn is_idle(&self) -> bool {
        self.gates().iter().all(|gate| gate.count() == 0)
    }

    /// Listens at one endpoint.
    async fn listen(self: Rc<Self>, endpoint: Endpoint, max_message: usize) {
        let listener = self.bound(&endpoint).await;
        let Ok(ours) = listener.local_addr() else { return };
        self.tell(&endpoint.entry, ours.port(), None).await;
        let gate = Gate::new(endpoint.clone(), ours.port(), max_message, self.shim.clone(), self.off.clone());
        if let Some(served) = self.served.borrow().get(&endpoint.entry) {
            served.problem.take();
            served.gate.replace(Some(gate.clone()));
        }
        // They end with the task that listens.
        let mut connections = tokio::task::JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                Some(_) = connections.join_next() => continue,
            };
            match accepted {
                Ok((stream, theirs)) => {
                    let Ok(place) = self.places.clone().acquire_owned().await else { return };
                    let gate = gate.clone();
                    connections.spawn_local(async move {
                        converse(gate, stream, theirs, ours).await;
                        drop(place);
                    });
                }
                // Out of descriptors: some come back.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }

    /// The endpoint's own port, however long it is taken: a configuration says it, so it is never another.
    async fn bound(&self, endpoint: &Endpoint) -> TcpListener {
        let served = self.served.borrow().get(&endpoint.entry).cloned();
        loop {
            let bound = match endpoint.port {
                0 => any_port(),
                port => listener::bind(port),
            };
            let problem = match bound {
                Ok(listener) => return listener,
                Err(e) if e.kind() == io::ErrorKind::AddrInUse => {
                    format!(
                        "port {} is taken by another program: end that, or remove and add the endpoint",
                        endpoint.port
                    )
                }
                Err(e) => format!("port {} cannot be used: {e}", endpoint.port),
            };
            let before = served.as_ref().and_then(|served| served.problem.replace(Some(problem.clone())));
            if before.as_ref() != Some(&problem) {
                self.tell(&endpoint.entry, endpoint.port, Some(problem)).await;
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Tells an engine that has just come what is served, and what is not.
    fn tell_all(self: &Rc<Self>) {
        for served in self.served.borrow().values() {
            let port = served.gate.borrow().as_ref().map(|gate| gate.port);
            let problem = served.problem.borrow().clone();
            let (house, entry, own) = (self.clone(), served.endpoint.entry.clone(), served.endpoint.port);
            if port.is_some() || problem.is_some() {
                let port = port.unwrap_or(own);
                tokio::task::spawn_local(async move { house.tell(&entry, port, problem).await });
            }
        }
    }

    async fn tell(&self, entry: &EntryId, port: u16, problem: Option<String>) {
        let (engine, entry) = (self.engine.clone(), entry.clone());
        // It is told again when it asks what is served.
        let _ = tokio::task::spawn_blocking(move || engine.tell(entry, port, problem)).await;
    }
}

impl Served {
    fn close(&self) {
        self.task.abort();
        if let Some(gate) = self.gate.take() {
            gate.close_all();
        }
    }
}

/// A port that is free, at random.
fn any_port() -> io::Result<TcpListener> {
    let mut error = io::Error::from(io::ErrorKind::AddrInUse);
    for _ in 0..TRIES {
        let mut random = [0; 4];
        getrandom::fill(&mut random).map_err(|e| io::Error::other(e.to_string()))?;
        let port = PORTS.start + (u32::from_ne_bytes(random) % u32::from(PORTS.end - PORTS.start)) as u16;
        match listener::bind(port) {
            Ok(listener) => return Ok(listener),
            Err(e) => error = e,
        }
    }
    Err(error)
}

/// Serves one connection, of a process of the same user.
async fn converse(gate: Rc<Gate>, stream: TcpStream, theirs: SocketAddr, ours: SocketAddr) {
    let Some(socket) = tcp::other_end(theirs, ours).ok().filter(tcp::OtherEnd::is_ours) else { return };
    // A small message should not wait for another.
    let _ = stream.set_nodelay(true);
    let connection = Rc::new(Connection { gate, socket, client: OnceCell::new() });
    let service = service_fn(move |request| {
        let connection = connection.clone();
        async move { Ok::<_, Infallible>(connection.visit(request).await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(MAX_HEAD).max_headers(MAX_HEADERS);
    // Whoever breaks off has said what it wanted.
    let _ = http.serve_connection(TokioIo::new(stream), service).await;
}
