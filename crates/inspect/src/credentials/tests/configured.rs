//! Credentials of systems that are set up by hand: routers, wallets, commands, cookies, recovery.

use super::*;

const WORDS: &str = "orbit velvet canyon mimic harvest glue topic rescue woman lunar flavor siege";

#[test]
fn credentials_of_settings_commands_and_recovery() {
    let table = table();
    let a = |n| made(ALNUM, n);
    let base32 = |n| made("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", n);
    let fours = |letters: &str, n: usize, between: &str| {
        let all = made(letters, n * 4);
        (0..n).map(|i| &all[i * 4..i * 4 + 4]).collect::<Vec<_>>().join(between)
    };
    let numbered = WORDS.split(' ').zip(1..).map(|(word, n)| format!("{n}. {word}")).collect::<Vec<_>>().join("\n");
    let chosen = format!("Kes{}trel_{}#", a(4), 72);
    let bytes = (0..64u32).map(|n| (n * 37 % 256).to_string()).collect::<Vec<_>>().join(", ");
    let account = data_encoding::BASE64
        .encode(format!("{{\n  \"type\": \"service_account\",\n \"x\": \"{}\"}}", a(500)).as_bytes());
    for (rule, text) in [
        ("wallet-words", format!("Wallet backup (write it down!):\n{WORDS}\n")),
        ("wallet-words", format!("electrum restore \"{WORDS}\" -w ./w")),
        ("seed-phrase", format!("words: {WORDS}\nhot wallet")),
        ("numbered-seed-phrase", format!("Ledger recovery phrase\n{numbered}\n")),
        (
            "recovery-password",
            "Recovery Key:\n\n  649781-051777-093753-649781-051777-093753-649781-051777\n".to_owned(),
        ),
        (
            "recovery-key",
            format!("Apple account recovery key: {}", fours("ABCDEFGHJKLMNPQRSTUVWXYZ0123456789", 7, "-")),
        ),
        ("recovery-codes", format!("npm recovery codes for priya:\n{}\n{}\n", made(HEX, 64), made(HEX, 64))),
        (
            "listed-backup-codes",
            "Keep these backup codes safe.\n\n1. 1831 4764\n2. 6418 2592\n3. 7877 3803\n4. 4911 1300\n".to_owned(),
        ),
        (
            "grouped-recovery-code",
            format!("in the authenticator app: {}", fours("abcdefghijklmnopqrstuvwxyz234567", 8, " ")),
        ),
        ("command-password", format!("openssl enc -d -pbkdf2 -pass pass:{chosen}")),
        ("piped-passphrase", format!("echo -n '{chosen}' | cryptsetup luksOpen /dev/sdb1 data -")),
        ("chpasswd-password", format!("echo 'tom:{chosen}' | sudo chpasswd")),
        ("command-line-password", format!("mysql -h db.internal -u keiko -p{chosen} gateway")),
        ("command-line-password", format!("redis-cli -h cache -p 6379 -a {} ping", a(24))),
        ("command-line-password", format!("docker login registry.example -u emeka -p '{chosen}'")),
        ("command-line-password", format!("ldapsearch -x -D 'cn=svc' -w '{chosen}' -b 'dc=x'")),
        ("command-line-password", format!("gpg --batch --passphrase '{chosen}' -d a.gpg")),
        ("mapped-drive-password", format!("net use Z: \\\\fs\\media /user:HALCYON\\ines {chosen}")),
        ("snmp-community", format!("snmp-server community {} RW 15", a(14))),
        ("router-secret", format!(" neighbor x\nusername net privilege 15 secret 0 {}\n", a(16))),
        ("router-secret", format!("crypto isakmp key {} address 192.0.2.40", a(24))),
        ("router-password", format!("line vty 0 4\n password {}\n login\n", a(14))),
        ("fortigate-password", format!("    set psksecret {}\n", a(26))),
        ("keepalived-password", format!("auth_type PASS\n  auth_pass {}\n}}", a(8))),
        ("hostapd-passphrase", format!("ssid=guest\nwpa_passphrase={}\n", a(16))),
        ("wifi-passphrase", format!("key-mgmt=wpa-psk\npsk={}\n", a(16))),
        ("wireguard-key", format!("private-key {}A=\n", a(42))),
        ("sql-set-password", format!("SET PASSWORD FOR 'root'@'localhost' = PASSWORD('{}');", a(16))),
        ("password-of-a-builder", format!(".username(\"postgres\").password(\"{chosen}\")")),
        ("jdbc-password", format!("getConnection(\"jdbc:postgresql://db/x\", \"svc\", \"{chosen}\");")),
        ("pgpass", format!("# ~/.pgpass\ndb.example:5432:reporting:bram:{}\n", a(16))),
        (
            "terraform-default",
            format!("variable \"issuer_token\" {{\n  sensitive = true\n  default   = \"{}\"\n}}", a(32)),
        ),
        ("one-time-password-in-code", format!("totp = pyotp.TOTP('{}')", base32(32))),
        ("microsoft-session", format!("Set-Cookie: ESTSAUTH={}; Path=/", a(90))),
        ("session-cookie-of-a-service", format!("li_at={}; lang=en", a(80))),
        ("session-cookie-in-a-table", format!(".x.example\tPBSESSION\t{}\n", made(HEX, 40))),
        ("cookie-member", format!("{{\"name\": \"sessionid\",\n  \"value\": \"{}\"}}", a(32))),
        ("aligned-password", format!("  user      lumen\n  password  {}\n", a(16))),
        ("told-secret", format!("The passphrase of the key is <b>{}</b>.", a(20))),
        ("told-password", format!("and the password is Spr{}*31x! .", a(3))),
        ("password-with-a-remark", format!("repo password (or all is lost): {chosen}")),
        ("keypair-bytes", format!("# ~/.config/solana/id.json\n[{bytes}]")),
        ("service-account-in-base64", format!("GOOGLE_CREDENTIALS_B64={account}")),
        ("onion-service-key", format!("ADD_ONION ED25519-V3:{}== Port=80", a(86))),
        ("azure-storage-account-key", format!("AZURE_STORAGE_KEY=\"{}==\"", a(86))),
    ] {
        let hits = table.scan(text.as_bytes());
        assert!(hits.iter().any(|hit| hit.rule == rule), "{rule}: {text}: {hits:?}");
    }
}

#[test]
fn what_is_like_them() {
    let table = table();
    let id = uuid();
    for text in [
        "my wallet was gone when they came back from the long walk along the river and then went home",
        "The recovery key: see page 12. The backup codes: 1. open the page 2. press the button 3. print",
        "Recovery Key: 649782-051777-093753-649781-051777-093753-649781-051777",
        "mysql -u root -p gateway < dump.sql; docker login registry.example -u me -p $TOKEN",
        "redis-cli -a \"$REDIS_PASSWORD\" ping; mongosh -u admin -p <password>",
        "set password policy; router password recovery; password (at least eight characters): required",
        "db.example:5432:reporting:bram:*",
        "variable \"issuer_token\" {\n  type = string\n  default = \"\"\n}",
        &format!("SNYK_ORG_ID=\"{id}\""),
        "VITE_POSTHOG_KEY=phc_W2VE1sUtJ8gMWaIXbR9Dfgy23XKz4VnY5o7a773bgTG",
        "mongodb+srv://<username>:<password>@cluster0.owa8i.example/",
        "using RSA key B1D2BD1375BECB784CF4F8C4D73CF638C53C06BE",
        "psk=changeme-psk\n",
    ] {
        let hits = table.scan(text.as_bytes());
        assert!(hits.is_empty(), "{text}: {hits:?}");
    }
}
