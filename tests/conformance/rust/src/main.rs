//! The official Rust SDK's server and client for the matrix: what the server offers is the same in each language.
//!   firedoor-matrix-rust server --stdio|--http      over HTTP it prints its port
//!   firedoor-matrix-rust client ERA URL             what it sees of a server, as JSON
//!   firedoor-matrix-rust client ERA -- COMMAND…
mod client;
mod server;

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["server", "--stdio"] => server::stdio().await,
        ["server", "--http"] => server::http().await,
        ["client", era, "--", command, ..] => client::stdio(era == "modern", command, &args[4..]).await,
        ["client", era, url] => client::http(era == "modern", url).await,
        _ => Err("server --stdio|--http, or client legacy|modern URL|-- COMMAND".into()),
    }
}
