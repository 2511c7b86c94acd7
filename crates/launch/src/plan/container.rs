//! What there is to say about a server in a container. Its boundary is the container's, not ours: what is confined is the
//! `docker` program, and what it asks Docker's service to do happens outside of our sandbox.

use std::ffi::OsString;

use firedoor_model::container::container;

/// What the user should know, one note for each thing that opens the container.
pub(super) fn notes(tool: &str, args: &[OsString]) -> Vec<String> {
    let boundary = format!(
        "the server runs in a container: its boundary is {tool}'s, not Firedoor's. {tool} itself needs the service's socket: \
         firedoor grants add ENTRY --unix /var/run/docker.sock"
    );
    let words: Vec<&str> = args.iter().map(|a| a.to_str().unwrap_or_default()).collect();
    std::iter::once(boundary).chain(container(&words).openings.into_iter().map(|o| o.text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boundary_comes_first() {
        let args: Vec<OsString> = "run --rm -it --privileged mcp/x".split(' ').map(Into::into).collect();
        let notes = notes("docker", &args);
        assert!(notes[0].contains("boundary is docker's, not Firedoor's"), "{notes:?}");
        assert!(notes.len() == 2 && notes[1].contains("--privileged: it can do"), "{notes:?}");
    }
}
