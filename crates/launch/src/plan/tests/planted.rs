//! Links that a server may have put in the place of something that was granted.

use super::*;

#[test]
fn a_link_that_the_server_may_have_made_opens_nothing() {
    let mut world = World::new();
    for (file, text) in
        [("home/proj/.git/x", ""), ("home/.bashrc", "x"), ("elsewhere/sets/x", "x"), ("home/proj/y/z", "")]
    {
        world.file(file, text);
    }
    symlink("../../.bashrc", world.at("home/proj/.git/config")).unwrap();
    symlink(world.at("home/.ssh"), world.at("home/proj/data")).unwrap();
    symlink(world.at("home/proj/data"), world.at("home/keys")).unwrap();
    symlink(world.at("elsewhere"), world.at("home/work")).unwrap();
    for (path, access, want) in [
        ("home/proj/.git/config", Access::Write, None),
        ("home/proj/data", Access::Read, None),
        ("home/proj/data/id", Access::Read, None),
        ("home/keys", Access::Read, None),
        ("home/proj/y", Access::Read, Some("home/proj/y")),
        ("home/work/sets", Access::Write, Some("elsewhere/sets")),
    ] {
        let grant = |path: &str, access| Grant { path: world.at(path), access };
        world.user.grants = vec![grant(path, access), grant("home/proj", Access::Write)];
        let run = world.run("gosrv");
        let grants = &run.step.confinement.grants;
        assert_eq!(self::access(grants, &world.at("home/proj")), Some(Access::Edit));
        for closed in ["home/.bashrc", "home/.ssh", "home/.ssh/id"] {
            assert_eq!(self::access(grants, &world.at(closed)), None, "{path}");
        }
        assert_eq!(want.is_none(), run.notes.join("").contains("grant it by this path"), "{path}: {:?}", run.notes);
        if let Some(want) = want {
            assert!(self::access(grants, &world.at(want)).is_some(), "{path}: {grants:?}");
        }
        // Where the server writes nothing beside it, the link is the user's.
        if access == Access::Read && path != "home/proj/y" {
            world.user.grants.pop();
            let grants = world.run("gosrv").step.confinement.grants;
            assert!(grants.iter().any(|g| g.path.starts_with(world.at("home/.ssh"))), "{path}: {grants:?}");
        }
    }
}

#[test]
fn an_argument_through_a_link_in_another_one_opens_nothing() {
    let mut world = World::new();
    world.profile = Some("filesystem".into());
    world.file("home/proj/x", "");
    symlink(world.at("home/data"), world.at("home/proj/sub")).unwrap();
    symlink(world.at("home/data"), world.at("home/mine")).unwrap();
    for (line, want) in [
        ("gosrv @/home/proj @/home/proj/sub", None),
        ("gosrv @/home/proj/sub @/home/proj", None),
        ("gosrv @/home/proj @/home/mine", Some(Access::Edit)),
        ("gosrv @/home/proj @/home/data", Some(Access::Edit)),
        ("gosrv @/home/proj/sub", Some(Access::Edit)),
    ] {
        let grants = world.run(line).step.confinement.grants;
        assert_eq!(access(&grants, &world.at("home/data")), want, "{line}");
    }
}
