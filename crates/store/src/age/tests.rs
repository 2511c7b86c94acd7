use super::*;

fn identity() -> Identity {
    Identity::read(include_str!("tests/identity.txt")).unwrap()
}

/// Written by age 1.1.1, the reference implementation.
#[test]
fn what_age_has_written_opens() {
    let identity = identity();
    assert_eq!(open(&identity, include_bytes!("tests/short.age")).unwrap(), b"made up by age\n");
    assert_eq!(open(&identity, include_bytes!("tests/empty.age")).unwrap(), b"");
    // For two recipients, of which the second is ours.
    assert_eq!(open(&identity, include_bytes!("tests/two.age")).unwrap(), b"for two\n");
    let wrapped = include_bytes!("tests/passphrase.age");
    assert_eq!(open_with_passphrase("correct horse made up", wrapped).unwrap(), b"under a passphrase\n");
    assert_eq!(open_with_passphrase("correct horse made-up", wrapped), Err(AgeError::Passphrase));
    assert_eq!(open(&identity, wrapped), Err(AgeError::NotFor));
    assert_eq!(open_with_passphrase("correct horse made up", include_bytes!("tests/short.age")), Err(AgeError::NotFor));
}

#[test]
fn identities_are_those_of_age() {
    let text = include_str!("tests/identity.txt");
    let line = text.lines().last().unwrap();
    assert_eq!(identity().text(), line);
    assert!(text.contains(&format!("# public key: {}\n", identity().recipient())), "{text}");
    let new = Identity::generate().unwrap();
    assert_eq!(Identity::read(&new.text()).unwrap().recipient(), new.recipient());
    let other = line.replace('Q', "P");
    for bad in [
        "",
        "# comment\n",
        &line.to_lowercase(),
        &other,
        &line[..40],
        &identity().recipient(),
        &format!("{line}\n{line}\n"),
    ] {
        assert!(Identity::read(bad).is_none(), "{bad}");
    }
    assert!(!format!("{new:?}").contains(&new.text()));
}

#[test]
fn what_is_sealed_opens_whatever_its_length() {
    let (identity, other) = (identity(), Identity::generate().unwrap());
    for length in [0, 1, 100, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 3 * CHUNK + 5] {
        let plain: Vec<u8> = (0..length).map(|n| u8::try_from(n % 251).unwrap()).collect();
        let sealed = seal(&identity, &plain).unwrap();
        assert_eq!(open(&identity, &sealed).unwrap(), plain, "{length}");
        assert_eq!(open(&other, &sealed), Err(AgeError::NotFor));
    }
    let sealed = seal_with_work("made up", b"plain", 4).unwrap();
    assert_eq!(open_with_passphrase("made up", &sealed).unwrap(), b"plain");
    assert_eq!(open_with_passphrase("made  up", &sealed), Err(AgeError::Passphrase));
}

#[test]
fn what_was_changed_or_cut_off_does_not_open() {
    let identity = identity();
    let sealed = seal(&identity, b"made up").unwrap();
    for at in 0..sealed.len() {
        for bit in [1, 0x20, 0x80] {
            let mut bad = sealed.clone();
            bad[at] ^= bit;
            assert!(open(&identity, &bad).is_err(), "{at}");
        }
        assert!(open(&identity, &sealed[..at]).is_err(), "{at}");
        assert!(open_with_passphrase("x", &sealed[..at]).is_err(), "{at}");
    }
    let long = seal(&identity, &vec![7; 2 * CHUNK]).unwrap();
    let chunk = CHUNK + TAG;
    // Cut between two chunks, two of them swapped, something behind the end.
    assert!(open(&identity, &long[..long.len() - chunk]).is_err());
    let mut swapped = long[..long.len() - 2 * chunk].to_vec();
    swapped.extend_from_slice(&long[long.len() - chunk..]);
    swapped.extend_from_slice(&long[long.len() - 2 * chunk..long.len() - chunk]);
    assert!(open(&identity, &swapped).is_err());
    assert!(open(&identity, &[long.as_slice(), b"x"].concat()).is_err());
}

#[test]
fn a_head_that_is_not_as_it_has_to_be_is_refused() {
    let identity = identity();
    let code = "A".repeat(43);
    let check = |head: &str| {
        let file = format!("age-encryption.org/v1\n{head}");
        open(&identity, file.as_bytes()).unwrap_err()
    };
    const BAD: AgeError = AgeError::Damaged("its head cannot be read");
    for bad in [
        String::new(),
        format!("--- {code}\n"),
        format!("-> X25519\n{code}\n--- {code}\n"),
        format!("-> X25519 {code}\n{code}\n---{code}\n"),
        format!("-> X25519 {code} {code}\n{code}\n--- {code}\n"),
        format!("-> X25519  {code}\n{code}\n--- {code}\n"),
        format!("-> X25519 {code}\r\n{code}\n--- {code}\n"),
        format!("-> X25519 {code}=\n{code}\n--- {code}\n"),
        // Its last sign carries bits that count for nothing.
        format!("-> X25519 {}B\n{code}\n--- {code}\n", &code[1..]),
        format!("-> scrypt {} 010\n{code}\n--- {code}\n", "A".repeat(22)),
        format!("-> scrypt {} +4\n{code}\n--- {code}\n", "A".repeat(22)),
        format!("-> other\n{}\n--- {code}\n", "A".repeat(65)),
        "A".repeat(20_000),
        format!("-> {}\n\n--- {code}\n", "A".repeat(20_000)),
    ] {
        assert_eq!(check(&bad), BAD, "{bad:?}");
    }
    // Other programs' recipients beside ours are no fault.
    assert_eq!(check(&format!("-> other a b\n{}\n\n--- {code}\n", "A".repeat(64))), AgeError::NotFor);
    assert_eq!(check(&format!("-> X25519 {code}\n{code}\n--- {code}\n")), AgeError::NotFor);
    let heavy = format!("age-encryption.org/v1\n-> scrypt {} 30\n{code}\n--- {code}\n", "A".repeat(22));
    assert_eq!(open_with_passphrase("x", heavy.as_bytes()), Err(AgeError::Work(30)));
    assert_eq!(open(&identity, b"age-encryption.org/v2\n"), Err(AgeError::NotAge));
}
