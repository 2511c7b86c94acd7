//! Who gets a profile by a name.

use super::*;

fn profile(world: &World, matches: &str) {
    let text = format!("description = \"d\"\nread = [\"~/.aws\"]\nenv = [\"SRV_TOKEN\"]\n[match]\n{matches}\n");
    world.file("home/.config/firedoor/profiles/mine.toml", &text);
}

fn opens(run: &Run, world: &World) -> bool {
    let opened = access(&run.step.confinement.grants, &world.at("home/.aws")).is_some();
    let token = var(&run.step.env, "SRV_TOKEN").is_some();
    assert_eq!((run.profile == "mine", token), (opened, opened), "{run:?}");
    assert_eq!(run.basis.subject.is_some(), opened);
    assert!(opened || run.notes.join("").contains("the profile mine is not used"), "{:?}", run.notes);
    opened
}

#[test]
fn a_file_of_the_project_gets_no_profile_by_its_name() {
    let mut world = World::new();
    profile(&world, "executable = [\"gosrv\"]");
    world.file("home/app/gosrv", "\u{7f}ELF");
    world.env.push(("SRV_TOKEN".into(), "v".into()));
    symlink(world.at("home/app/gosrv"), world.at("home/app/lnk")).unwrap();
    for (line, want) in [
        ("gosrv", true),
        ("@/bin/gosrv", true),
        ("./gosrv", false),
        ("@/home/app/gosrv", false),
        ("@/bin/../home/app/gosrv", false),
        ("../../bin/gosrv", false),
    ] {
        assert_eq!(opens(&world.run(line), &world), want, "{line}");
    }
    // A directory of programs in the project counts where the client has it in PATH, not where the entry says so.
    let project = format!("{}:{}", world.at("home/app").display(), world.at("bin").display());
    world.env[0].1 = project;
    assert!(opens(&world.run("gosrv"), &world));
    world.declared.insert("PATH".into());
    assert!(!opens(&world.run("gosrv"), &world));
    world.declared.clear();
    world.env[0].1 = format!(".:{}", world.at("bin").display());
    assert!(!opens(&world.run("gosrv"), &world));
    // Whoever names the profile means it.
    world.profile = Some("mine".into());
    assert_eq!(world.run("./gosrv").profile, "mine");
}

#[test]
fn a_module_of_the_project_gets_no_profile_by_its_name() {
    let world = World::new();
    profile(&world, "executable = [\"gosrv\", \"tool.wasm\"]");
    world.file("home/app/tool.wasm", "x");
    world.file("home/tools/tool.wasm", "x");
    world.file("bin/firedoor-wasm", "\u{7f}ELF");
    for (line, want) in [
        ("firedoor-wasm run tool.wasm", false),
        ("firedoor-wasm run @/home/app/tool.wasm", false),
        ("firedoor-wasm run @/home/tools/tool.wasm", true),
    ] {
        assert_eq!(world.run(line).profile == "mine", want, "{line}");
    }
}

#[test]
fn only_the_packages_own_program_gets_its_profile() {
    let mut world = World::new();
    profile(&world, "npm = [\"srv\"]");
    world.env.push(("SRV_TOKEN".into(), "v".into()));
    for (line, want) in [
        ("npx -y srv", true),
        ("npx -y -p srv srv", true),
        ("npx -y -p srv -p more srv", true),
        ("npx -y -p srv -p more other", false),
        ("npx -y -p srv other", false),
        ("npx -y -p srv node x.js", false),
        ("npx -y -p srv -c srv", false),
    ] {
        if let Plan::Install(step) = world.plan(line).unwrap() {
            World::npm_brings(&step, LOCK);
            let modules = step.step.cwd.join("npm/_npx/abc/node_modules");
            fs::create_dir_all(modules.join("more")).unwrap();
            for (name, file) in [("srv", "srv/s.js"), ("other", "more/o.js")] {
                fs::write(modules.join(file), "").unwrap();
                fs::remove_file(modules.join(".bin").join(name)).unwrap();
                symlink(Path::new("..").join(file), modules.join(".bin").join(name)).unwrap();
            }
            step.done(Millis(world.now)).unwrap();
        }
        assert_eq!(opens(&world.run(line), &world), want, "{line}");
    }
}
