//! WebAssembly.

use super::*;

#[test]
fn modules_are_run_by_our_runtime() {
    let mut world = World::new();
    world.file("bin/firedoor-wasm", "\u{7f}ELF");
    world.file("home/tools/t.wasm", "\0asm");
    world.file("home/data/sub/y", "y");
    world.declared.insert("TOKEN".into());
    world.env.push(("TOKEN".into(), "t".into()));
    let run =
        world.run("@/bin/firedoor-wasm run --memory 9 --dir @/home/data::/data --env TOKEN @/home/tools/t.wasm -x");
    assert_eq!(run.profile, "wasm");
    assert_eq!(run.step.program, world.at("bin/firedoor-wasm"));
    let args = |run: &Run| {
        let words: Vec<_> = run.step.args.iter().map(|a| a.to_string_lossy()).collect();
        let line = words.join(" ").replace(world.root.to_str().unwrap(), "@");
        let (before, cache) = line.split_once("--cache ").unwrap();
        format!("{before}{}", cache.split_once(' ').unwrap().1)
    };
    let tail = "-- @/home/tools/t.wasm -x";
    assert_eq!(args(&run), format!("run --memory 9 --dir @/home/data::/data --env TOKEN --net {tail}"));
    assert!(
        matches!(run.identity.as_ref().map(|i| &i.what), Some(What::Script { path, .. }) if path.ends_with("t.wasm"))
    );
    let granted = |run: &Run, path: &str| {
        run.step.confinement.grants.iter().find(|g| g.path == world.at(path)).map(|g| g.access.asked())
    };
    assert_eq!(granted(&run, "home/data"), Some(Access::Write));
    assert_eq!(granted(&run, "home/tools/t.wasm"), Some(Access::Read));
    assert_eq!(granted(&run, "home/tools"), None);
    // What the user grants is opened inside, too.
    let mut granting = World::new();
    granting.file("bin/firedoor-wasm", "\u{7f}ELF");
    granting.file("t.wasm", "\0asm");
    granting.user.grants = vec![
        Grant { path: granting.at("home/data"), access: Access::Read },
        Grant { path: granting.at("t.wasm"), access: Access::Read },
    ];
    let run = granting.run("@/bin/firedoor-wasm run @/t.wasm");
    let words: Vec<String> = run.step.args.iter().map(|a| a.to_string_lossy().into_owned()).collect();
    let data = granting.at("home/data").display().to_string();
    assert!(words.windows(2).any(|w| w == ["--dir-ro".to_owned(), format!("{data}::{data}")]), "{words:?}");
    assert!(run.notes.iter().any(|n| n.contains("directories only")), "{:?}", run.notes);
}

#[test]
fn modules_that_are_not_there() {
    let world = World::new();
    world.file("bin/firedoor-wasm", "\u{7f}ELF");
    world.file("t.wasm", "\0asm");
    let error = |line: &str| world.plan(line).unwrap_err().to_string();
    assert!(error("@/bin/firedoor-wasm run absent.wasm").contains("was not found"));
    // Here our runtime is not installed beside the test.
    assert!(error("wasmtime run @/t.wasm").contains("install Firedoor again"));
    assert!(error("@/t.wasm").contains("install Firedoor again"));
}
