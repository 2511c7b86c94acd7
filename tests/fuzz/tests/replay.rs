//! Every file of the corpus, through its target.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

/// A file that takes longer is one that something takes too long for. Most take microseconds.
const LIMIT: Duration = Duration::from_secs(10);

#[test]
fn the_corpus_holds() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut names: Vec<_> = fs::read_dir(&corpus).unwrap().map(|d| d.unwrap().file_name()).collect();
    let mut targets: Vec<_> = firedoor_fuzz::TARGETS.iter().map(|(name, _)| std::ffi::OsString::from(name)).collect();
    names.sort();
    targets.sort();
    assert_eq!(names, targets, "each target has a folder");
    for (name, target) in firedoor_fuzz::TARGETS {
        let files: Vec<_> = fs::read_dir(corpus.join(name)).unwrap().map(|f| f.unwrap().path()).collect();
        assert!(!files.is_empty(), "{name}");
        for file in files {
            let started = Instant::now();
            let bytes = fs::read(&file).unwrap();
            std::panic::catch_unwind(|| target(&bytes)).unwrap_or_else(|_| panic!("{}", file.display()));
            assert!(started.elapsed() < LIMIT, "{} took {:?}", file.display(), started.elapsed());
        }
    }
}
