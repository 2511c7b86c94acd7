//! Credentials in texts that are written with escapes.

use super::*;

#[test]
fn credentials_are_known_however_the_text_is_written() {
    let table = table();
    let a = |n| made(ALNUM, n);
    let pem = format!("-----BEGIN {} KEY-----\n{}\n{}\n-----END {0} KEY-----", "RSA PRIVATE", a(64), a(64));
    let docker = data_encoding::BASE64.encode(format!("me:{}", a(12)).as_bytes());
    let json = |text: &str| serde_json::json!({"path": "a/b", "content": format!("first\n{text}\nlast")}).to_string();
    let lines = |text: &str, line: &dyn Fn(usize, &str) -> String| {
        text.lines().enumerate().map(|(number, text)| line(number + 1, text)).collect::<Vec<_>>().join("\n")
    };
    let html = |text: &str| {
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;").replace('\'', "&#x27;");
        format!("<pre>{text}</pre>")
    };
    for (rule, text) in [
        ("stripe-key", format!("sk_{}_{}", "live", a(24))),
        ("aws-secret-access-key", format!("'AWS_SECRET_ACCESS_{}': '{}'", "KEY", a(40))),
        ("assigned-secret", format!("db_password = \"{}\"", a(16))),
        ("environment-key", format!("SOME_ISSUER_KEY={}", a(40))),
        ("adafruit-named-key", format!("ADAFRUIT_IO_KEY = \"{}\"", made(HEX, 32))),
        (
            "docker-config-auth",
            format!("{{\"auths\": {{\"https://index.docker.io/v1/\": {{\"auth\": \"{docker}\"}}}}}}"),
        ),
        ("dotnet-config-password", format!("<add key=\"SmtpPassword\" value=\"{}\"/>", a(14))),
        ("key-element", format!("<string name=\"hockey_key\">{}</string>", made(HEX, 32))),
        ("netrc-password", format!("machine x.example\n  login me\n  password {}\n", a(16))),
        ("azure-storage-account-key", format!("const accountKey = process.env.ACCOUNT_KEY || \"{}==\"", a(86))),
        ("url-token", format!("git clone https://{}@github.com/a/b.git", made(HEX, 40))),
        ("private-key", pem),
    ] {
        for (way, written) in [
            ("as it stands", text.clone()),
            ("in JSON", json(&text)),
            ("in JSON in JSON", serde_json::json!({"result": json(&text)}).to_string()),
            ("as HTML", html(&text)),
            ("as HTML twice", html(&html(&text))),
            ("coloured", lines(&text, &|_, line| format!("\u{1b}[1;32m{line}\u{1b}[0m"))),
            ("coloured, in JSON", json(&lines(&text, &|_, line| format!("\u{1b}[32m{line}\u{1b}[0m")))),
            ("numbered", lines(&text, &|number, line| format!("{number:6}\t{line}"))),
            ("numbered with arrows", lines(&text, &|number, line| format!("{number:5}→{line}"))),
            ("matches of a search", lines(&text, &|number, line| format!("conf/a.yml:{number}:{line}"))),
            ("quoted", lines(&text, &|_, line| format!("> {line}"))),
            ("added", lines(&text, &|_, line| format!("+{line}"))),
        ] {
            let hits = table.scan(written.as_bytes());
            assert_eq!(hits.iter().map(|hit| hit.rule).collect::<Vec<_>>(), [rule], "{way}: {written}");
        }
    }
}

#[test]
fn a_value_is_what_is_meant() {
    let table = table();
    let value = format!("{}&{}/{}", made(ALNUM, 7), made(HEX, 6), made(ALNUM, 5));
    for written in [
        format!("password: '{value}'"),
        format!("{{\"a\": \"password: \\\"{}\\\"\"}}", value.replace('/', "\\/").replace('&', "\\u0026")),
        format!("password: &#39;{}&#39;", value.replace('&', "&amp;")),
    ] {
        let hits = table.scan(written.as_bytes());
        let values: Vec<_> = hits.iter().map(|hit| String::from_utf8_lossy(hit.value(written.as_bytes()))).collect();
        assert_eq!(values, [value.as_str()], "{written}");
    }
}

/// The address of a contract is public, and a key is none.
#[test]
fn a_token_of_a_chain() {
    let table = table();
    let address = format!("0x{}", made(HEX, 40));
    for (name, want) in [("token", 0), ("api_key", 1), ("secret", 1)] {
        assert_eq!(table.scan(format!("{name}: \"{address}\"").as_bytes()).len(), want, "{name}");
    }
}

/// A number that looks like one of a card beside that word is none by its last digit, and published ones are none either.
#[test]
fn numbers_of_cards_and_people() {
    let table = table();
    for (text, want) in [
        ("card_number: 4452970210867908", Some(("payment-card", "4452970210867908"))),
        ("{\"card\": {\"number\": \"5284 5109 3584 3049\"}}", Some(("payment-card", "5284 5109 3584 3049"))),
        ("Kreditkarte Nr. 5284-5109-3584-3049 gilt bis", Some(("payment-card", "5284-5109-3584-3049"))),
        ("{\n \"card\": {\n  \"number\": \"4452970210867908\"", Some(("payment-card", "4452970210867908"))),
        ("card_number: 4452970210867907", None),
        ("SIM card, IMEI 352092451959267", None),
        ("cardboard box EAN 4006005474997, card_id: 4532848506950", None),
        ("visa application 4452970210867908", None),
        ("card 541248475646960624", None),
        ("order 4452970210867908", None),
        ("card ending in 7908, order 4452970210867908", None),
        ("card: 4242 4242 4242 4242", None),
        ("card: 378282246310005", None),
        ("card_hash: 4452970210867908a1", None),
        ("ssn=472-59-7812", Some(("us-social-security-number", "472-59-7812"))),
        ("\"social security number\": \"472-59-7812\"", Some(("us-social-security-number", "472-59-7812"))),
        ("customer_ssn: 472-59-7812", Some(("us-social-security-number", "472-59-7812"))),
        ("social security helpline 212-55-1234", None),
        ("classn 312-44-1234", None),
        ("ssn: 666-59-7812", None),
        ("ssn: 078-05-1120", None),
        ("phone 472-59-7812", None),
    ] {
        let hits = table.scan(text.as_bytes());
        let found = hits.first().map(|hit| (hit.rule, &text[hit.span.0..hit.span.1]));
        assert_eq!(found, want, "{text}");
        assert!(hits.iter().all(|hit| hit.confidence() == Confidence::Possible), "{text}");
    }
}

/// A name of a host or an account is no token, and a public key of an error reporter none either.
#[test]
fn addresses_without_a_token() {
    let table = table();
    for text in [
        "https://my-long-organisation-name@github.com/a/b.git".to_owned(),
        format!("https://{}@o{}.ingest.sentry.io/{}", made(HEX, 32), 4_507, 99),
        "ssh://git@github.com/a/b.git".to_owned(),
    ] {
        assert_eq!(table.scan(text.as_bytes()), [], "{text}");
    }
}

/// Keywords one behind the other, each with an escape: what is read anew is bounded by the text, and what stands behind them is not.
#[test]
fn what_is_read_as_it_is_meant_is_bounded() {
    let table = table();
    let line = format!("some_password=&quot;{}&quot; ", made(ALNUM, 16));
    for hostile in ["eyJ\\", "-----BEGIN \\n", "-----BEGIN A\n1: x\n", "kty\\", "password&amp;"] {
        let many = hostile.repeat((1 << 18) / hostile.len());
        assert_eq!(table.scan(format!("{line}{many}").as_bytes()).len(), 1, "{hostile}");
        // What is left may do for a few.
        let lines = format!("{line}{}", " ".repeat(MAX_PLAIN)).repeat(8);
        assert!(table.scan(format!("{many} {lines}").as_bytes()).len() < 8, "{hostile}");
    }
}
