//! Where the programs are that the tests start.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::LazyLock,
};

/// The programs, which must lie in one directory.
pub const PROGRAMS: [&str; 3] = ["firedoor", "firedoor-shim", "firedoor-remote"];

/// The runtime of WebAssembly tools, if it was built: only its own tests need it, and it takes long.
pub fn built_wasm() -> Option<&'static str> {
    Some("firedoor-wasm").filter(|name| built().join(name).is_file())
}

/// The directory with our programs: `FIREDOOR_BIN_DIR`, else the one of the build that this test belongs to.
pub fn built() -> PathBuf {
    let named = env::var_os("FIREDOOR_BIN_DIR").map(PathBuf::from);
    let place = named.unwrap_or_else(|| {
        // target/debug/deps/test-0123456789abcdef
        let own = env::current_exe().expect("the test's own path");
        own.ancestors().nth(2).expect("a test lies in deps/ below its build").to_path_buf()
    });
    for program in PROGRAMS {
        let path = place.join(program);
        assert!(
            path.is_file(),
            "{} is missing: run `cargo build -p firedoor-cli -p firedoor-shim -p firedoor-remote` first, or set FIREDOOR_BIN_DIR",
            path.display()
        );
    }
    place
}

/// The folder of this crate.
pub fn sources() -> &'static Path {
    // A build directory may have been filled by another clone, which is gone. Cargo says to each test where it is, too.
    static SOURCES: LazyLock<PathBuf> = LazyLock::new(|| {
        let built = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        if built.is_dir() { built } else { env::var_os("CARGO_MANIFEST_DIR").map_or(built, PathBuf::from) }
    });
    &SOURCES
}

/// Whether every user may enter a directory. Toolchains installed for root alone are of no use to other users.
fn open_to_all(directory: &Path) -> bool {
    fs::canonicalize(directory).is_ok_and(|real| {
        real.ancestors().all(|part| fs::metadata(part).is_ok_and(|m| m.permissions().mode() & 0o001 != 0))
    })
}

/// `PATH` for what the tests start. With `for_others`, without directories that only root may enter.
pub fn search_path(for_others: bool) -> String {
    let path = env::var_os("PATH").unwrap_or_default();
    let kept = env::split_paths(&path).filter(|directory| !for_others || open_to_all(directory));
    env::join_paths(kept).expect("PATH was split before").into_string().expect("PATH is UTF-8")
}
