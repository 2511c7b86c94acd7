//! What a command line of docker or podman starts, and what opens the container.
//!
//! Sources: `docker run --help` (Docker 28), `podman run --help` (podman 5).

/// Options of `run` and `create` that take no value; every other one does.
const SWITCHES: &[&str] = &[
    "-d",
    "--detach",
    "--disable-content-trust",
    "--help",
    "--init",
    "-i",
    "--interactive",
    "--no-healthcheck",
    "--oom-kill-disable",
    "--privileged",
    "-P",
    "--publish-all",
    "-q",
    "--quiet",
    "--read-only",
    "--replace",
    "--rm",
    "--sig-proxy",
    "-t",
    "--tty",
    "--use-api-socket",
];
/// Sockets of container services: whoever reaches one is root on this machine, or as good as.
const SERVICES: &[&str] = &["docker.sock", "podman.sock", "containerd.sock", "crio.sock"];

/// What a command line of docker or podman starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Container {
    /// The image, as written.
    pub image: Option<String>,
    /// What opens the container.
    pub openings: Vec<Opening>,
}

/// An option that opens a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The option and what it does, with text from the command line.
    pub text: String,
    /// It mounts a path, which may be what the server is for; every other one takes a part of the boundary away.
    pub path: bool,
}

/// Reads the arguments of docker or podman.
pub fn container(words: &[&str]) -> Container {
    let mut found = Container::default();
    let Some(at) = words.iter().position(|w| matches!(*w, "run" | "create")) else { return found };
    let mut rest = words.iter().skip(at + 1);
    while let Some(word) = rest.next() {
        // The image; what follows is the server's own.
        if *word == "--" {
            found.image = rest.next().map(|image| (*image).to_owned());
            break;
        }
        if !word.starts_with('-') {
            found.image = Some((*word).to_owned());
            break;
        }
        let (option, inline) = word.split_once('=').map_or((*word, None), |(o, v)| (o, Some(v)));
        // Short switches may be joined: `-it`, `-ivPATH:PATH`.
        let short = !option.starts_with("--") && option.len() > 2;
        let switch = SWITCHES.contains(&option)
            || (short && option.chars().skip(1).all(|c| SWITCHES.contains(&format!("-{c}").as_str())));
        let (option, value) = if switch {
            (option.to_owned(), inline.unwrap_or_default())
        } else if short {
            let joined = word.char_indices().skip(1).find(|(_, c)| !SWITCHES.contains(&format!("-{c}").as_str()));
            let (start, letter) = joined.unwrap_or((1, '-'));
            let value = word.get(start + letter.len_utf8()..).unwrap_or_default();
            let value = if value.is_empty() { rest.next().copied().unwrap_or_default() } else { value };
            (format!("-{letter}"), value)
        } else {
            (option.to_owned(), inline.or_else(|| rest.next().copied()).unwrap_or_default())
        };
        found.openings.extend(opens(&option, value));
    }
    found
}

/// What one option opens.
fn opens(option: &str, value: &str) -> Option<Opening> {
    let said =
        |what: &str| Some(Opening { text: format!("the container is started with {option}: {what}"), path: false });
    let off = matches!(value, "false" | "0" | "f" | "F" | "FALSE" | "False");
    match option {
        "--privileged" if !off => said("it can do to this machine what root can"),
        "--use-api-socket" if !off => said("it can start containers that do to this machine what root can"),
        "-v" | "--volume" => mount(option, value.split(':').next()?, value.split(':').nth(2).is_some_and(reads_only)),
        "--mount" => {
            let field = |names: &[&str]| {
                value.split(',').filter_map(|f| f.split_once('=')).find(|(n, _)| names.contains(n)).map(|(_, v)| v)
            };
            let read_only = value.split(',').any(|f| matches!(f, "readonly" | "ro" | "readonly=true" | "ro=true"));
            mount(option, field(&["source", "src"])?, read_only)
        }
        "--volumes-from" => said("it has the volumes of another container"),
        "--device" => said("it can use a device of this machine"),
        "--net" | "--network" if value == "host" => {
            said("it is in this machine's own network and reaches what listens only here")
        }
        "--pid" | "--ipc" | "--uts" | "--userns" | "--cgroupns" if value == "host" => {
            said("it shares this machine's, not one of its own")
        }
        "--cap-add" => said("it has a privilege of root's besides the usual ones"),
        "--security-opt" if value.contains("unconfined") || value.contains("disable") => {
            said("a protection of containers is off")
        }
        _ => None,
    }
}

/// A mount of a path of this machine; a name without a slash is a volume of the service's.
fn mount(option: &str, source: &str, read_only: bool) -> Option<Opening> {
    if !source.contains('/') && source != "." && source != ".." && source != "~" {
        return None;
    }
    let service = SERVICES.iter().any(|s| source.ends_with(s));
    // The root, or all that the system or the user has.
    let whole =
        matches!(source, "/" | "/etc" | "/proc" | "/sys" | "/dev" | "/home" | "/root" | "~" | "$HOME" | "${HOME}");
    let what = if service {
        "with this socket it can start containers that do to this machine what root can"
    } else if read_only {
        "it reads this path of yours, and Firedoor does not see it"
    } else {
        "it reads and writes this path of yours, and Firedoor does not see it"
    };
    Some(Opening { text: format!("the container is started with {option} {source}: {what}"), path: !service && !whole })
}

fn reads_only(options: &str) -> bool {
    options.split(',').any(|o| matches!(o, "ro" | "readonly"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_open_a_container() {
        for (line, want) in [
            ("run -i --rm mcp/time", vec![]),
            ("run -i --rm -e A=b --env C mcp/x --privileged", vec![]),
            ("run --rm -it --privileged mcp/x", vec!["--privileged: it can do"]),
            ("run --privileged=false mcp/x", vec![]),
            ("run -v /home/u/p:/p mcp/x", vec!["-v /home/u/p: it reads and writes"]),
            ("run -iv/home/u:/p:ro mcp/x", vec!["-v /home/u: it reads this path"]),
            ("run -v data:/p mcp/x", vec![]),
            ("run --volume=/var/run/docker.sock:/var/run/docker.sock mcp/x", vec!["docker.sock: with this socket"]),
            ("run --mount type=bind,src=/a,dst=/b,readonly mcp/x", vec!["--mount /a: it reads this path"]),
            ("run --mount type=volume,src=a,dst=/b mcp/x", vec![]),
            ("run --net host --pid=host mcp/x", vec!["--net: it is in", "--pid: it shares"]),
            (
                "--context c run --cap-add SYS_ADMIN --security-opt seccomp=unconfined mcp/x",
                vec!["--cap-add", "--security-opt"],
            ),
            ("run --name --privileged mcp/x", vec![]),
            ("run", vec![]),
            ("ps", vec![]),
        ] {
            let openings = container(&line.split(' ').collect::<Vec<_>>()).openings;
            assert_eq!(openings.len(), want.len(), "{line}: {openings:?}");
            for (opening, want) in openings.iter().zip(want) {
                assert!(opening.text.contains(want), "{line}: {opening:?}");
            }
        }
    }
}
