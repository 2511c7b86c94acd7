mod configured;
mod issued;
mod written;

use super::*;

pub(crate) fn table() -> Credentials {
    Credentials::load(include_str!("../../../../profiles/detect/credentials.toml")).unwrap()
}

/// Text that no scanner of this repository takes for a secret, because it exists at run time only.
fn made(alphabet: &str, length: usize) -> String {
    let letters: Vec<char> = alphabet.chars().collect();
    let mut state = 0x9E37_79B9u32;
    std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        letters[(state >> 16) as usize % letters.len()]
    })
    .take(length)
    .collect()
}

fn uuid() -> String {
    let h = made(HEX, 32);
    format!("{}-{}-{}-{}-{}", &h[..8], &h[8..12], &h[12..16], &h[16..20], &h[20..])
}

const ALNUM: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const HEX: &str = "0123456789abcdef";

#[test]
fn every_rule_compiles_and_has_its_group() {
    for rule in table().rules {
        let regex = rule.regex().unwrap_or_else(|| panic!("{} does not compile", rule.row.id));
        assert!(regex.capture_names().flatten().any(|n| n == "secret"), "{}", rule.row.id);
        assert!(regex.captures_len() <= 8 && rule.row.window <= 16384 && rule.row.before <= 128, "{}", rule.row.id);
        assert!(rule.row.regex.starts_with('^'), "{} is not anchored", rule.row.id);
        assert!(rule.row.keywords.iter().all(|k| k.is_ascii() && k.len() >= 3), "{}", rule.row.id);
    }
}

#[test]
fn formats() {
    let table = table();
    let a = |n| made(ALNUM, n);
    let pem = format!("-----BEGIN {} KEY-----\n{}\n{}\n-----END", "RSA PRIVATE", a(64), a(64));
    let json = |text: &str| data_encoding::BASE64URL_NOPAD.encode(text.as_bytes());
    let claims = format!("{{\"sub\":\"{}\"}}", a(12));
    let seven = made("abcdefghijklmnopqrstuvwxyz0123456789", 28);
    let seven = format!("{}-{}-{}-{}", &seven[..7], &seven[7..14], &seven[14..21], &seven[21..]);
    let jwt = format!(" {}.{}.{}", json("{\"alg\":\"HS256\"}"), json(&claims), a(43));
    let not_json = format!(" ey{}.{}.{}", format_args!("J{}", a(30)), json(&claims), a(43));
    assert_eq!(table.scan(not_json.as_bytes()), []);
    for (rule, text) in [
        ("aws-access-key-id", format!("key AK{}{}", "IA", made("ABCDEFGHJKLMNPQR234567", 16))),
        ("aws-secret-access-key", format!("AWS_SECRET_ACCESS_{}={}", "KEY", a(40))),
        ("github-token", format!("gh{}_{}", "p", a(36))),
        ("github-fine-grained-token", format!("github_{}_{}", "pat", a(82))),
        ("gitlab-token", format!("gl{}-{}", "pat", a(20))),
        ("slack-token", format!("xo{}-{}", "xb", a(50))),
        ("stripe-key", format!("sk_{}_{}", "live", a(24))),
        ("anthropic-key", format!("sk-{}-api03-{}AA", "ant", a(93))),
        ("openai-key", format!("sk-{}-{}", "proj", a(80))),
        ("google-api-key", format!("AI{}{}", "za", a(35))),
        ("npm-token", format!("np{}_{}", "m", a(36))),
        ("pypi-token", format!("pypi-AgEIcHlwaS5vc{}{}", "mc", a(120))),
        ("private-key", pem.clone()),
        ("private-key", pem.replace('\n', "\\n")),
        ("jwt", jwt),
        ("url-password", format!("postgres://app:{}@db:5432/x", a(14))),
        ("authorization-header", format!("Authorization: {} {}", "Bearer", a(32))),
        ("assigned-secret", format!("db_password = \"{}\"", a(16))),
        ("assigned-secret", format!("API_TOKEN={}", made(HEX, 40))),
        ("curl-user", format!("curl -u me:{} x", a(12))),
        ("saas-token", format!("lin_{}_{}", "api", a(40))),
        ("vault-token", format!("hv{}.{}", "s", a(60))),
        ("aws-access-key-id", format!("key A3T{}", made("ABCDEFGHJKLMNPQR234567", 17))),
        ("mailchimp-key", format!("the key {}-us12", made(HEX, 32))),
        ("azure-client-secret", format!("value: {}8Q~{}", a(3), a(34))),
        ("maxmind-license-key", format!("x {}_{}_mmk", a(6), a(29))),
        ("curl-user", format!("curl -s --user me@example.net:{} https://x", a(12))),
        ("curl-user", format!("curl -u ':{}' https://x", a(12))),
        ("private-key", pem.replace('\n', "\"+\n\"")),
        // Each one of OpenSSH begins with lengths and names, which are runs of one letter in base64.
        (
            "private-key",
            pem.replace(&a(64), &format!("b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ{}{}", "A".repeat(16), a(30))),
        ),
        ("private-key", format!("-----BEGIN {} KEY-----\nMHcCA{}{}\n-----END", "EC PRIVATE", "QEEI", a(64))),
        ("private-key-der", format!("let key = \"MIIEvQIBADANBgkqhkiG9w0BAQEFAAS{}\"", a(600))),
        ("private-key-der", format!("\"MHcCA{}{}\"", "QEEI", a(120))),
        ("google-client-secret", format!("1-{}.apps.googleusercontent.com\n{}", made(HEX, 12), made(ALNUM, 24))),
        ("subscription-key", format!("'Ocp-Apim-Subscription-Key': '{}'", made(HEX, 32))),
        ("machine-key", format!("<machineKey validationKey=\"{}\"", made("0123456789ABCDEF", 128))),
        ("npm-login", format!("_auth={}", data_encoding::BASE64.encode(format!("me:{}", a(9)).as_bytes()))),
        ("code-climate-reporter", format!("CC_TEST_REPORTER_ID: {}", made(HEX, 64))),
        ("firefox-login", format!("\"encryptedPassword\":\"{}\"", a(60))),
        ("curl-option", format!("curl_easy_setopt(curl, CURLOPT_PASSWORD, \"{}\");", a(20))),
        ("secure-string", "ConvertTo-SecureString -String -Force dsjUE#$gds8s".replace('$', "!")),
        ("sql-password", "CREATE USER me IDENTIFIED BY 'SqLpa5sW0rD';".into()),
        ("environment-default", format!("os.getenv(\"SECRET_KEY\", \"{}\")", a(40))),
        ("environment-default", "os.environ.get('DB_PASSWORD') or 'at5G6zi!m'".into()),
        ("django-secret-key", "SECRET_KEY=r&lvybzry1*k+qq)=x-!=0yd5l5#1gxzk!82@ru25*ntos3_9^\n".into()),
        (
            "django-insecure-key",
            format!("KEY = 'django-insecure-{}'", made("abcdefghjkmnpqrstuvwxyz0123456789(=+^", 50)),
        ),
        ("private-key-der", format!("\"MIIG4wIBAA{}{}\"", "KC", a(600))),
        ("private-key-der", format!("\"MDECA{}{}\"", "QEEI", a(60))),
        ("google-storage-hmac-key", format!("GOOG1{}:{}", made("ABCDEFGHJKLMNPQR234567", 56), a(40))),
        ("told-secret", format!("the API key is {}, which you need", made(HEX, 32))),
        ("key-element", format!("<string name=\"issuer_key\">{}</string>", made(HEX, 32))),
        ("assigned-key", format!("Vapid Private Key: {}", a(43))),
        ("vault-token", format!("-vaultToken s.{}{}", "CAES", a(90))),
        ("sonar-token", format!("sq{}_{}", "co", a(60))),
        ("named-value", "{\"id\": 99, \"name\": \"db_password\", \"value\": \"Bell&Tom69#\"}".into()),
        ("concealed-value", "{\"label\": \"wifi\", \"value\": \"two words 1985\", \"type\": \"CONCEALED\"}".into()),
        ("password-in-a-table", "| ADMIN_PASSWORD | `Wint3r39` |".into()),
        ("one-time-password-seed", format!("TOTP_SEED={}", made("ABCDEFGHJKLMNPQR234567", 32))),
        (
            "one-time-password-seed",
            format!("\"name\": \"totp_seed\", \"value\": \"{}\"", made("ABCDEFGHJKLMNPQR234567", 16)),
        ),
        ("session-cookie", format!("Cookie: lang=en; PHPSESSID={}", a(26))),
        ("session-cookie", format!("Set-Cookie: connect.sid=s%3A{}.{}; Path=/", a(32), a(43))),
        (
            "seed-phrase",
            "| wallet seed phrase | `enforce duck chef amused team easily scatter miss pledge empower legal source`"
                .into(),
        ),
        ("recovery-codes", "recovery codes: 589f2-7a2ab\na81d7-eeb0f\n9119f-42886\n881ad-515ca\n".into()),
        ("assigned-password", "  db_password: \"harley.968X\"".into()),
        ("assigned-password", "DB_PASSWORD=reppep09!\n".into()),
        ("truenas-key", format!("\"auth.login_with_api_key\", \"params\": [\"8-{}\"]", a(64))),
        ("assigned-secret", "jwtsecret: \"7`D'}/vYR)T;W]5]EBrf;_&k>qX??]G&3CF=\"".into()),
        ("assigned-secret", format!("<GithubToken>\n\tff34885a{}\n</GithubToken>", "8624460a855540c6592698d2f1812843")),
        ("assigned-secret", format!("sheety token - '{}'", made("abcdefghjkmnpqrstuvwxyz0123456789", 64))),
        ("sendbird-named-key", format!("sendbird key {}", made(HEX, 40))),
        ("slack-webhook", format!("https://hooks.slack.com/services/T1234567{}/B12345678/{}", 8, a(24))),
        ("heroku-token", format!("HRKU-{}", uuid())),
        ("jwt", format!(" {}.{}.{}", json("{\"alg\":\"dir\"}"), a(40), a(43))),
        ("url-password", format!("smtps://me@mail.example:{}@smtp.mail.example:465", a(10))),
        ("adafruit-named-key", format!("ADAFRUIT_IO_KEY = \"{}\"", made(HEX, 32))),
        ("heroku-named-key", format!("heroku.auth => '{}'", uuid())),
        ("datadog-named-key", format!("\"datadog_api\": \"{}\"", made(HEX, 32))),
        ("twitter-named-key", format!("twitter_secret: {}", a(50))),
        ("telegram-bot-id-and-token", format!("bot 123456789:AA{}", a(33))),
        (
            "basic-authorization",
            format!("authorization: Basic {}", data_encoding::BASE64.encode(format!("me:{}", a(9)).as_bytes())),
        ),
        ("assigned-secret", format!("fbApiKey:            \"{}\",", made(HEX, 32))),
        ("assigned-secret", format!("define('API_KEY', '{}')", made(HEX, 32))),
        ("assigned-secret", format!("<api_key>{}</api_key>", made(HEX, 32))),
        ("assigned-secret", format!("{{\\\"token\\\":\\\"{}\\\"}}", a(24))),
        ("assigned-secret", format!("SECRET_KEY_PROD={}", made(HEX, 40))),
        ("assigned-password", "\"vm_password\": \"Blueskies!\"".into()),
        ("assigned-password", "DB_PASSWORD=mycoin!1\n".into()),
        ("environment-key", format!("SOME_ISSUER_KEY={}", a(32))),
        ("command-line-secret", format!("tool login --token {} x", a(24))),
        ("command-line-secret", "Connect-VIServer -Password VMware1!".into()),
        ("dotnet-config-password", "<add key=\"MailPassword\" value=\"Prestig$rel\"/>".into()),
        (
            "dotnet-network-credential",
            format!("new NetworkCredential(\"me@x.example\", \"{}\")", made("bcdfghjklmnpqrstvwxz", 16)),
        ),
        ("unix-password-hash", format!("root:$6${}${}:19000:0:", a(16), a(86))),
        ("unix-password-hash", format!("me:$2y$10${}", a(53))),
        ("newrelic-license-key", format!("license: {}NRAL", made(HEX, 36))),
        ("newrelic-key", format!("key NRAA-{}", made(HEX, 27))),
        ("kubeadm-token", format!("kubeadm join --token {}.{}", made(HEX, 6), made("bcdfghjklmnpqrstvwxz", 16))),
        ("salesforce-session", format!("00D{}!{}", a(12), a(96))),
        ("thingsboard-device-token", format!("coap://x.example/api/v1/{}/telemetry", a(20))),
        ("twitch-stream-key", format!("live_126031192_{}", a(30))),
        ("vault-unseal-key", format!("Unseal Key 1: {}", data_encoding::BASE64.encode(a(33).as_bytes()))),
        ("appsync-key", format!("key: da2-{}", made("abcdefghjkmnpqrstuvwxyz0123456789", 26))),
        ("azure-devops-named-key", format!("ado_pat = \"{}\"", made("abcdefghjkmnpqrstuvwxyz234567", 52))),
        ("netrc-password", format!("machine api.example.net login me password {}", a(9))),
        ("connection-string-password", format!("Server=db;User Id=app;Password={};", a(12))),
        ("otp-secret", format!("otpauth://totp/x:me?issuer=x&secret={}", made("ABCDEFGHJKLMNPQR234567", 32))),
        ("kubernetes-secret", format!("kind: Secret\nmetadata:\n  name: x\ndata:\n  key: {}==", a(22))),
        ("alchemy-token", format!("alc{}{}", "ht_", made(ALNUM, 30))),
        ("aiven-password", format!("AV{}{}", "NS_", made(ALNUM, 19))),
        ("amazon-mws-token", format!("amzn{}{}", ".mws.", uuid())),
        ("amazon-login-secret", format!("amzn1.oa{}{}", "2-cs.v1.", made(HEX, 64))),
        ("axiom-token", format!("xa{}{}", "at-", uuid())),
        ("backblaze-key", format!("K0{}{}", "05", made(ALNUM, 27))),
        ("brex-token", format!("bx{}{}", "t_", made(ALNUM, 36))),
        ("calcom-key", format!("cal_{}{}", "live_", made(HEX, 32))),
        ("cashfree-key", format!("cfsk_m{}{}_{}", "a_prod_", made(HEX, 32), made(HEX, 8))),
        ("cockroachdb-key", format!("CCD{}{}_{}", "B1_", made(ALNUM, 22), made(ALNUM, 40))),
        ("dbt-token", format!("db{}{}", "tc_", made(ALNUM, 43))),
        ("deno-token", format!("dd{}{}", "p_", made(ALNUM, 36))),
        ("discord-user-token", format!("mf{}{}", "a.", made(ALNUM, 84))),
        ("endor-key", format!("en{}{}", "dr+", made(ALNUM, 16))),
        ("firehydrant-token", format!("fh{}{}", "b-", made(HEX, 32))),
        ("helicone-key", format!("sk-heli{}-{seven}", "cone")),
        ("jenkins-secret", format!("{{AQA{}{}=}}", "AABAAA", made(ALNUM, 40))),
        ("jina-key", format!("ji{}{}{}", "na_", made(HEX, 32), made(ALNUM, 28))),
        ("klaviyo-key", format!("p{}{}", "k_", made(HEX, 34))),
        ("llamacloud-key", format!("ll{}{}", "x-", made(ALNUM, 48))),
        ("mailersend-token", format!("ml{}{}", "sn.", made(HEX, 64))),
        (
            "mercadopago-token",
            format!(
                "APP_{}{}-{}-{}-{}",
                "USR-",
                made("0123456789", 16),
                made("0123456789", 6),
                made(HEX, 32),
                made("0123456789", 9)
            ),
        ),
        ("mercury-token", format!("secret-token:mer{}{}", "cury_production_", made(ALNUM, 44))),
        ("omise-key", format!("sk{}{}", "ey_", made("abcdefghijklmnopqrstuvwxyz0123456789", 19))),
        ("onfido-token", format!("api_{}{}.{}", "live.", made(ALNUM, 11), made(ALNUM, 32))),
        ("polar-token", format!("polar{}{}", "_oat_", made(ALNUM, 43))),
        ("postman-collection-key", format!("PM{}{}", "AT-", made("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", 26))),
        ("pubnub-secret-key", format!("sec{}{}", "-c-", made(ALNUM, 48))),
        ("ramp-token", format!("ramp{}{}", "_sec_", made(ALNUM, 48))),
        ("razorpay-key", format!("rzp_{}{}", "live_", made(ALNUM, 14))),
        ("rootly-key", format!("roo{}{}", "tly_", made(HEX, 64))),
        (
            "runpod-key",
            format!(
                "rp{}{}{}",
                "a_",
                made("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", 40),
                made("abcdefghijklmnopqrstuvwxyz0123456789", 6)
            ),
        ),
        ("socket-key", format!("skt{}{}", "sec_", made(ALNUM, 43))),
        ("sourcegraph-gateway-token", format!("sg{}{}", "d_", made(HEX, 64))),
        ("telnyx-key", format!("KE{}{}_{}", "Y0", made("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", 31), made(ALNUM, 22))),
        ("tinybird-token", format!("p.{}J{}.{}", "ey", made(ALNUM, 60), made(ALNUM, 43))),
        ("together-key", format!("tgp{}{}", "_v1_", made(ALNUM, 43))),
        ("upcloud-token", format!("uc{}{}", "at_", made("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", 26))),
        ("valtown-token", format!("vt{}{}", "wn_", made(ALNUM, 27))),
        ("voyage-key", format!("p{}{}", "a-", made(ALNUM, 43))),
        ("yandex-oauth-token", format!("y{}{}", "0_", made(ALNUM, 55))),
        ("zuplo-key", format!("zp{}{}_{}", "ka_", made(HEX, 32), made(HEX, 8))),
        ("discord-bot-token", format!("token MZ{}.{}.{}", a(22), "aB3xYz", a(27))),
        ("discord-bot-token", format!("token AM{}.{}.{}", a(24), "aB3xYz", a(38))),
        ("authorization-header", format!("req.Header.Set(\"Authorization\", \"{} {}\")", "Bearer", a(32))),
        ("assigned-secret", format!("auth_token \"{}\"", a(24))),
        ("assigned-secret", format!("token = '{}'", made("bcdfghjklmnpqrstvwxz", 32))),
        (
            "private-key-in-base64",
            format!("client-key-data: {}", data_encoding::BASE64.encode(pem.replace("--\n", "--\r\n").as_bytes())),
        ),
    ] {
        let hits = table.scan(text.as_bytes());
        assert_eq!(hits.iter().map(|h| h.rule).collect::<Vec<_>>(), [rule], "{rule}");
        assert!(!hits[0].span.0.eq(&0), "{rule}: the prefix is not part of the secret");
    }
}

#[test]
fn passwords_that_everybody_knows_are_no_secrets() {
    for text in
        ["postgres://postgres:postgres@db:5432/x", "mongodb://root:Password@db/x", "redis://appuser:appuser@cache:6379"]
    {
        assert!(table().scan(text.as_bytes()).is_empty(), "{text}");
    }
    for text in [
        "postgres://postgres:tiger-postgres7@db:5432/x",
        "postgres://svc:Passw0rd@db.prod.example/x",
        "https://svc-Xk29d8skQw71:Xk29d8skQw71@api",
        "https://Xk29d8skQw71:Xk29d8skQw71@api",
    ] {
        assert_eq!(table().scan(text.as_bytes()).len(), 1, "{text}");
    }
}

#[test]
fn ordinary_text_has_none() {
    let table = table();
    for text in [
        "password: str = os.environ[\"DB_PASSWORD\"]",
        "14:SMTP_USER=\n15:SMTP_PASSWORD=\n17:SMTP_SECURITY=\n25:#S3_SECRET_ACCESS_KEY=\n28:#SNAIL_TRUSTED_PROXIES=\n",
        "token=${GITHUB_TOKEN}",
        "api_key: <your key here>",
        "secret=changeme-please-now",
        "password = 'xxxxxxxxxxxxxxxx'",
        "token: {{ secrets.DEPLOY_TOKEN }}",
        "AKIAIOSFODNN7EXAMPLE",
        "postgres://user:password@localhost/db",
        "the secret: everything that was said",
        "token = parser.next_token()",
        "https://example.org:8080/a@b",
        "access_token_url='https://example.org/oauth/access_token'",
        "API_KEY=test-key-12345678",
        "credentialsId: 'ff083f76-7804-4ef1-80e4-fe975bb9141b'",
        "jsonwebtoken:jjwt-jackson-0.11.2",
        "see com.example.SomeLongClassName1234.method.AnotherLongClassName12345678 there",
        "the token \"authorization_code\" is one",
        "secret: kubernetes-dashboard-certs-holder",
        "pa-ckages-of-a-rather-long-name-with-hyphens-1",
        "K00 is a number",
        "sk-learn-contrib-something-or-other",
        "\"nextPageToken\": \"CAUQAA3x9Zk2Lm8Qp\"",
        "csrf_token=8Zk2Lm8Qp4xW9vT1",
        "facebook: https://facebook.com/pages/x1",
        "linear-gradient(90deg, #aabbcc 0%, #001122 100%)",
        "twitter: someuser_with_a_long_name",
        "sentry-release=abcdefghij",
        "curl -u $USER:$PASSWORD https://x",
        "curl --user \"user:password\" https://x",
        "basic knowledge of the language and basic AAAAbbbb1234cccc",
        "machine learning login page password reset",
        "\"trust\", \"password\", \"scram-sha-256\", \"md5\"",
        "\"password\": \"Mot-de-passe1\"",
        "password = Settings.Db1Password",
        "getCredentials(-token someIdentifierName)",
        "dapiDataGetTopLongShortPositionRatio (params)",
        "let auth = ValidateRequestHeader::basic(name)",
        "openid_connect_auth = AuthorizationCodeGrant(request_validator)",
        "\"auth\": \"required-by-all-of-them\"",
        "getenv(\"SECRET_KEY\", \"insecure-for-tests-only\")",
        "password: \"^(?=.*[A-Z])(?=.*[0-9])[A-Za-z0-9]{8,}$\"",
        "identified by 'the name of its owner'",
        "| password | required | the password of the user |",
        "{\"name\": \"token_limit\", \"value\": \"4096000000\"}",
        "{\"name\": \"password_policy\", \"value\": \"at-least-eight-characters\"}",
        "sessionid=the-identifier-of-the-session; session_id=0123456789",
        "the seed phrase is a list of words that people write down and keep in a safe place",
        "recovery codes: see the page on two-factor authentication",
        "password = user.Password12",
        "the key is generated, the token is 0123456789abcdef, the secret is a-very-long-phrase-of-words",
        "<td class=\"primary_key\">customer_identifier_number</td>",
        "API key: 20260101-documentation, private key: /etc/ssl/private/server.key",
        "MAgEBBEACAgEBBDIBAAKC",
        "postgres://user:secret@localhost",
        "APIManagement.ServiceResource and AIoTDevice+AStorage",
        "PublicKeyToken=b77a5c561934e089",
        "token: eyJhbGciOiJSUzI1NiIsImtpZCI6...",
        "STORAGE_KEY = 'vueuse-color-scheme-of-this-page'",
        "CACHE_KEY=9f86d081884c7d659a2feaa0c55ad015",
        "POSTGRES_PASSWORD=postgres",
        "password: \"P@ssw0rd\"",
    ] {
        assert_eq!(table.scan(text.as_bytes()), [], "{text}");
    }
}

#[test]
fn many_issuers_are_known() {
    let table = table();
    let mut ids: Vec<&str> = table.rules.iter().map(|r| r.row.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), table.rules.len(), "each rule has a name of its own");
    assert!(ids.len() >= 150, "{}", ids.len());
}

#[test]
fn checksums_make_sure() {
    let table = table();
    // 30 characters and their CRC-32 in base 62, worked out here apart from the code that is tested.
    let body = made(ALNUM, 30);
    let mut crc = 0xFFFF_FFFFu32;
    for b in body.bytes() {
        crc ^= u32::from(b);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
        }
    }
    let digits = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let tail: String = (0..6).rev().map(|p| char::from(digits[(!crc / 62u32.pow(p) % 62) as usize])).collect();
    let confidence = |text: String| table.scan(text.as_bytes()).first().map(Hit::confidence);
    for prefix in ["ghp", "npm"] {
        assert_eq!(confidence(format!("{prefix}_{body}{tail}")), Some(Confidence::Certain), "{prefix}");
        assert_eq!(confidence(format!("{prefix}_{body}AAAAA0")), Some(Confidence::Likely), "{prefix}");
    }
}

#[test]
fn published_examples_are_no_secrets() {
    let token = format!("gh{}_{}", "p", made(ALNUM, 36));
    let mut table = table();
    assert!(table.published.iter().all(|p| p.len() == 16 && p.bytes().all(|b| b.is_ascii_hexdigit())));
    assert_eq!(table.scan(token.as_bytes()).len(), 1);
    table.published = vec![Digest::of(&token.as_bytes()[4..]).to_string()[..16].to_owned()];
    assert_eq!(table.scan(token.as_bytes()), []);
}

#[test]
fn a_broken_table_is_named() {
    for text in ["rule = 5", "[[rule]]\nid = \"x\"", "[[rule]]\nid = \"x\"\nkeywords = []\nregex = \"\"\nother = 1"] {
        let error = Credentials::load(text).unwrap_err().to_string();
        assert!(error.starts_with("profiles/detect/credentials.toml: "), "{error}");
    }
}

#[test]
fn cost_is_bounded() {
    let table = table();
    let each: Vec<String> = table.rules.iter().flat_map(|r| r.row.keywords.clone()).collect();
    let often =
        ["eyJ.", "token=", "://:a", "password", "curl -u ", "ibm ibm=", "machine a login b "].map(str::to_owned);
    for text in each.iter().chain(&often) {
        table.scan(text.repeat(8_000 / text.len()).as_bytes());
    }
    let many: String = (0..1000).map(|_| format!("gh{}_{} ", "p", made(ALNUM, 36))).collect();
    assert!(table.scan(many.as_bytes()).len() <= MAX_HITS);
    // What only its place tells does not use up the room of what has a form of its own.
    let places: String = (0..1000).map(|n| format!("password={}{n}\n", made(ALNUM, 20))).collect();
    let hits = table.scan(format!("{places}gh{}_{}", "p", made(ALNUM, 36)).as_bytes());
    assert!(hits.iter().any(|hit| hit.rule == "github-token") && hits.len() > 100, "{}", hits.len());
}
