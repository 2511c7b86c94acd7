//! Formats of single issuers, as templates: `{a40}` stands for 40 letters and digits, and `^` is left out, so that what stands here
//! is no credential yet.

use super::*;

/// The characters that the letter of a template stands for.
fn alphabet(letter: char) -> &'static str {
    match letter {
        'B' => "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
        'E' => "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
        'H' => "0123456789ABCDEF",
        'P' => "!#$%&*+,-0123456789:;=?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]_abcdefghijklmnopqrstuvwxyz|~",
        'a' => ALNUM,
        'c' => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
        'd' => "0123456789",
        'e' => "qpzry9x8gf2tvdw0s3jn54khce6mua7l",
        'l' => "abcdefghijklmnopqrstuvwxyz0123456789",
        's' => "abcdefghijklmnopqrstuvwxyz234567",
        'u' => "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
        'x' => HEX,
        _ => panic!("no alphabet {letter}"),
    }
}

/// A template's text. Braces that hold none of these stand for themselves.
fn filled(template: &str) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        out.push_str(&rest[..open].replace('^', ""));
        let inside = rest[open + 1..].split_once('}').filter(|(inside, _)| *inside == "U" || number(inside).is_some());
        if let Some((inside, tail)) = inside {
            match number(inside) {
                Some(length) => out.push_str(&made(alphabet(inside.chars().next().unwrap()), length)),
                None => out.push_str(&uuid()),
            }
            rest = tail;
        } else {
            out.push('{');
            rest = &rest[open + 1..];
        }
    }
    out + &rest.replace('^', "")
}

/// Of `a40`, the 40.
fn number(inside: &str) -> Option<usize> {
    inside.get(1..).and_then(|n| n.parse().ok())
}

const ISSUED: &[(&str, &str)] = &[
    // Models, agents and what they use.
    ("anthropic-web-session", "sk-a^nt-sid01-{a86}-{a8}"),
    ("openai-session", "se^ss-{a40}"),
    ("openai-ephemeral-key", "e^k_{x32}"),
    ("xai-management-key", "xai-^token-{a80}"),
    ("cursor-key", "cr^sr_{x64}"),
    ("windsurf-key", "sk-^ws-01-{a80}"),
    ("devin-key", "co^g_{l52}"),
    ("devin-key", "apk_^user_{a80}"),
    ("vercel-token", "vc^k_{a56}"),
    ("vercel-token", "vc^a_{a56}"),
    ("vercel-blob-token", "vercel_^blob_rw_{a16}_{a30}"),
    ("v0-key", "v^1:{a24}:{a24}"),
    ("anyscale-key", "ese^cret_{l26}"),
    ("modal-token", "a^s-{a22}"),
    ("mem0-key", "m^0-{a40}"),
    ("zep-key", "z_1d^WlkIjoi{a60}.{a43}"),
    ("langsmith-legacy-key", "ls^__{x32}"),
    ("humanloop-key", "hl^_sk_{x48}"),
    ("letta-key", "sk-^let-{a100}"),
    ("friendli-token", "fl^p_{a46}"),
    ("nomic-key", "n^k-{a43}"),
    ("mixedbread-key", "em^b_{x48}"),
    ("mixedbread-key", "mx^b_{a36}"),
    ("cartesia-key", "sk_^car_{a22}"),
    ("hyperbrowser-key", "h^b_{x60}"),
    ("browser-use-key", "b^u_{a43}"),
    ("scrapybara-key", "scr^apy-{U}"),
    ("daytona-key", "dt^n_{x64}"),
    ("supermemory-key", "s^m_{a22}_{a60}"),
    ("dify-key", "ap^p-{a24}"),
    ("dify-key", "data^set-{a24}"),
    ("coze-token", "pa^t_{a64}"),
    ("baidu-qianfan-key", "bce-^v3/ALTAK-{a21}/{x40}"),
    ("kaggle-token", "KG^AT_{x32}"),
    ("kaggle-json", r#"{"user^name":"acme","k^ey":"{x32}"}"#),
    ("lambda-cloud-key", "sec^ret_me_{x32}.{a32}"),
    ("chutes-key", "cp^k_{x32}.{x32}.{a32}"),
    ("sourcegraph-amp-token", "sgamp_^user_{u26}_{x64}"),
    ("warp-key", "wk-^1.{x64}"),
    ("github-copilot-session", "ti^d={x32};exp=1700000000;sku=free:{x64}"),
    ("google-express-key", "AQ.^Ab8RN6{a44}"),
    ("nanogpt-key", "sk-^nano-{U}"),
    ("meshy-key", "ms^y_{a40}"),
    ("tripo-key", "ts^k_{a41}"),
    ("runway-key", "ke^y_{x128}"),
    ("luma-key", "lu^ma-{U}-{U}"),
    ("pollinations-key", "plln^_sk_{a32}"),
    // Clouds, data and hosting.
    ("cloudflare-token", "cf^ut_{a40}{x8}"),
    ("cloudflare-token", "cf^k_{a40}{x8}"),
    ("cloudflare-turnstile-secret", "0x4^AAAAAA{a26}"),
    ("vercel-deploy-hook", "https://api.vercel.com/v1/integrations/^deploy/prj_{a28}/{a10}"),
    ("vercel-edge-config", "https://edge-config.vercel.com/^ecfg_{l28}?token={U}"),
    ("netlify-token", "nf^c_{a36}"),
    ("netlify-build-hook", "https://api.netlify.com/^build_hooks/{x24}"),
    ("render-deploy-hook", "https://api.render.com/^deploy/srv-{l20}?key={a11}"),
    ("neon-password", "np^g_{a12}"),
    ("aiven-token", "aiv^env1{a180}"),
    ("elastic-cloud-key", "es^su_{a80}"),
    ("elasticsearch-service-token", "AAEAAWVs^YXN0aWM{a60}"),
    ("databricks-secret", "do^se{x32}"),
    ("tigris-secret-key", "ts^ec_{a44}"),
    ("xata-key", "xa^u_{a36}"),
    ("infisical-service-token", "s^t.{x24}.{x32}.{x32}"),
    ("infisical-service-token", "s^t.{U}.{x32}.{x32}"),
    ("boundary-token", "a^t_{a10}_s1{a120}"),
    ("docker-swarm-token", "SWM^TKN-1-{l50}-{l25}"),
    ("docker-swarm-token", "SWM^KEY-1-{a43}"),
    ("k3s-token", "K^10{x64}::server:{x32}"),
    ("rancher-token", "tok^en-x7k2p:{l54}"),
    ("rancher-token", "kube^config-user-x7k2p:{l54}"),
    ("proxmox-token", "PVEAPI^Token=root@pam!ci={U}"),
    ("netbird-token", "nb^p_{a36}"),
    ("azure-annotated-account-key", "key {a76}+A^St{a5}A=="),
    ("azure-annotated-bus-key", "key {a33}+A^Sb{a5}A="),
    ("azure-annotated-registry-key", "key {a42}Az^SeA{a5}"),
    ("azure-functions-key", "key {a44}Az^Fu{a5}A=="),
    ("azure-functions-url", "https://x.azurewebsites.net/^api/run?code={a54}=="),
    ("microsoft-account-refresh-token", "M^.C507_BAY.0.U.-{a200}"),
    ("entra-refresh-token", "0.A^S{a60}.AgABA{a300}"),
    ("amazon-login-token", "Atz^r|{a300}"),
    ("amazon-ecr-password", "eyJwYXls^b2FkIjoi{a800}"),
    // Code, builds, packages and operation.
    ("github-stateless-token", "gh^s_12345_ey^J{a40}.{a200}.{a86}"),
    ("gitlab-runner-or-workspace-token", "gl^rtr-{a20}"),
    ("gitlab-runner-or-workspace-token", "gl^wt-{a26}"),
    ("depot-token", "depot^_org_{x64}"),
    ("chromatic-token", "ch^pt_{x15}"),
    ("argos-token", "arg^os_{x40}"),
    ("lambdatest-key", "L^T_{a50}"),
    ("packagist-token", "packa^gist_uut_{x68}"),
    ("jsr-token", "js^rp_{a43}"),
    ("nexus-token", "Npm^Token.{U}"),
    ("apify-further-token", "api^fy_proxy_{a36}"),
    ("youtrack-token", "per^m:{a12}.{a8}.{a30}"),
    ("teamcity-token", "eyJ0eXAiOiAi^VENWMiJ9.{a36}.{a48}"),
    ("prefect-service-key", "pn^b_{a36}"),
    ("sentry-app-token", "sntr^ya_{x64}"),
    ("dynatrace-further-token", "dt^0s16.{u8}.{u64}"),
    ("datadog-token", "dd^pat_{a22}_{a40}"),
    ("posthog-further-key", "ph^s_{a43}"),
    ("statsig-key", "sec^ret-{a43}"),
    ("statsig-key", "con^sole-{a43}"),
    ("coralogix-key", "cx^tp_{a30}"),
    ("honeybadger-key", "hb^p_{a36}"),
    ("devcycle-server-key", "dvc_^server_{a40}"),
    ("unleash-token", "*:produc^tion.{x56}"),
    ("growthbook-key", "secret_^admin_{a44}"),
    ("kong-konnect-token", "kp^at_{a49}"),
    ("inngest-signing-key", "sign^key-prod-{x64}"),
    ("trigger-dev-key", "tr_^prod_{a20}"),
    ("trigger-dev-key", "tr_^pat_{l40}"),
    ("svix-key", "s^k_{a32}.eu"),
    ("convoy-key", "C^O.{a16}.{a64}"),
    ("retool-token", "reto^ol_01{l24}"),
    ("veracode-key", "vera^01ei-{x128}"),
    ("stackhawk-key", "ha^wk.{a20}.{a20}"),
    ("wakatime-key", "wa^ka_{U}"),
    ("codesandbox-token", "csb^_v1_{a43}"),
    ("modrinth-token", "mr^p_{a60}"),
    ("sumo-logic-collector-url", "https://endpoint1.collection.sumologic.com/^receiver/v1/http/{a86}=="),
    ("loggly-input-url", "https://logs-01.loggly.com/^inputs/{U}"),
    ("pagerduty-integration-url", "https://events.pagerduty.com/^integration/{x32}/enqueue"),
    ("splunk-on-call-url", "https://alert.victorops.com/^integrations/generic/20131114/alert/{U}"),
    ("healthchecks-ping-url", "curl https://hc-^ping.com/{U}"),
    ("better-stack-heartbeat-url", "https://uptime.betterstack.com/^api/v1/heartbeat/{a24}"),
    // Payment, commerce and identity.
    ("stripe-further-key", "ek_^live_{a80}"),
    ("stripe-further-key", "sk_^org_live_{a60}"),
    ("braintree-sandbox-token", "access_^token$sandbox${l16}${x32}"),
    ("square-sandbox-token", "sandbox-^sq0csb-{a43}"),
    ("adyen-key", "AQ^Eyhmfx{a70}-{a43}=-{a16}"),
    ("mollie-key", "li^ve_{a30}"),
    ("paddle-key", "pd^l_live_apikey_{l26}_{a22}_{a3}"),
    ("paddle-key", "pd^l_ntfset_{l26}_{a32}"),
    ("klarna-key", "klarna_^live_api_{a120}"),
    ("xendit-key", "xn^d_production_{a63}"),
    ("checkout-com-sandbox-key", "sk_^sbox_{l26}*"),
    ("shopify-further-token", "shp^tka_{x32}"),
    ("shopify-further-token", "prt^api_{x32}"),
    ("shopify-token", "shp^at_{a44}"),
    ("woocommerce-key", "c^s_{x40}"),
    ("midtrans-server-key", "SB-Mid-^server-{a24}"),
    ("mercadopago-test-token", "TES^T-{d16}-{d6}-{x32}-{d9}"),
    ("wompi-private-key", "pr^v_prod_{a32}"),
    ("sumup-key", "sup^_sk_{a32}"),
    ("creem-key", "cre^em_{a22}"),
    ("autumn-key", "am_^sk_live_{a43}"),
    ("schematic-key", "sch^_prod_{a32}"),
    ("secret-key-of-an-environment", "sk_^prod_{a64}"),
    ("live-secret-key", "live^_sk_{a22}"),
    ("pagarme-key", "ak_^live_{a30}"),
    ("branch-or-adapty-secret", "secret^_live_{a32}"),
    ("branch-or-adapty-secret", "secret^_live_{a8}.{a32}"),
    ("hexadecimal-secret-key", "s^k_{x32}"),
    ("hexadecimal-secret-key", "s^k_{x64}"),
    ("ecwid-token", "sec^ret_{a32}"),
    ("circle-key", "LIVE_^API_KEY:{x32}:{x32}"),
    ("persona-key", "perso^na_production_{U}"),
    ("sumsub-token", "pr^d:{a24}.{a32}"),
    ("coingecko-key", "C^G-{a24}"),
    ("tolt-key", "tlt^_live_{a22}"),
    ("seam-key", "se^am_{a8}_{a24}"),
    ("samsara-token", "samsara^_api_{a30}"),
    ("aftership-key", "as^at_{x32}"),
    ("ory-token", "or^y_pat_{a32}"),
    ("ory-token", "or^y_at_{a43}.{a43}"),
    ("permit-key", "permit^_key_{a86}"),
    ("dynamic-token", "dy^n_{a56}"),
    ("hcaptcha-secret", "E^S_{x32}"),
    ("courier-key", "pk_^prod_{u28}"),
    // Messaging, social networks and work.
    ("slack-workflow-token", "xw^fp-{d10}-{a40}"),
    ("slack-government-webhook", "https://hooks.slack-gov.com/^services/T{u8}/B{u8}/{a24}"),
    ("discord-versioned-webhook", "https://discord.com/^api/v10/webhooks/{d18}/{a68}"),
    ("teams-legacy-webhook", "https://outlook.office.com/^webhook/{U}@{U}/IncomingWebhook/{x32}/{U}"),
    (
        "logic-apps-webhook",
        "https://x.logic.azure.com:443/^workflows/{x32}/triggers/manual/paths/invoke?api-version=1&sp=%2F&sig={a43}",
    ),
    ("make-webhook", "https://hook.eu1.make.^com/{l32}"),
    ("n8n-webhook", "https://acme.app.n8n.^cloud/webhook/{U}"),
    ("tines-webhook", "https://acme.tines.^com/webhook/{x32}/{x32}"),
    ("zoho-webhook-key", "https://x.example/?zapi^key=1001.{x32}.{x32}"),
    ("dingtalk-webhook", "https://oapi.dingtalk.com/^robot/send?access_token={x64}"),
    ("feishu-webhook", "https://open.feishu.cn/^open-apis/bot/v2/hook/{U}"),
    ("wecom-webhook", "https://qyapi.weixin.qq.com/^cgi-bin/webhook/send?key={U}"),
    ("rocketchat-webhook", "https://chat.acme.example/ho^oks/{a17}/{a64}"),
    ("mattermost-webhook", "https://chat.acme.example/ho^oks/{l26}"),
    ("ntfy-token", "t^k_{l29}"),
    ("synapse-token", "sy^t_{a8}_{c20}_{a6}"),
    ("matrix-authentication-service-token", "ma^t_{a30}_{a6}"),
    ("line-channel-token", "{a150}/1O/w1cDny^ilFU="),
    ("vk-token", "vk^1.a.{a198}"),
    ("facebook-long-token", "EA^AJ{a180}ZD"),
    ("instagram-or-threads-token", "IG^AA{a150}"),
    ("pinterest-token", "pi^na_{a90}"),
    ("linkedin-secret", "WPL_^AP1.{a16}.{a6}=="),
    ("onesignal-key", "os_^v2_app_{s103}"),
    ("airtable-token", "p^at{a14}.{x64}"),
    ("hubspot-regional-token", "pat^-na2-{U}"),
    ("salesforce-refresh-token", "5Aep^861{a80}"),
    ("linear-webhook-secret", "lin^_wh_{a20}"),
    ("miro-token", "eyJtaXJv^Lm9yaWdpbiI6ImV1MDEifQ_{a27}"),
    ("canva-secret", "cn^vca{a50}"),
    ("tally-key", "tl^y-{a32}"),
    ("outline-key", "ol_^api_{a38}"),
    ("plane-key", "plane^_api_{x32}"),
    ("gitbook-token", "gb_^api_{a40}"),
    ("dub-key", "du^b_{a24}"),
    ("builder-io-key", "bp^k-{x32}"),
    ("imgix-key", "a^k_{x64}"),
    ("imagekit-key", "pri^vate_{a27}="),
    ("bannerbear-key", "bb^_pr_{x30}"),
    ("radar-secret-key", "prj_^live_sk_{x40}"),
    ("openrouteservice-key", "5b3ce3597851^110001cf6248{x32}"),
    ("riot-games-key", "RG^API-{U}"),
    ("roblox-session", "_|WARN^ING:-DO-NOT-SHARE-THIS.--Sharing-this-will-allow-someone|_{u400}"),
    ("blockchain-node-url", "https://mainnet.infura.^io/v3/{x32}"),
    ("blockchain-node-url", "https://eth-mainnet.g.alchemy.^com/v2/{a32}"),
    ("blockchain-node-url", "https://x.quiknode.^pro/{x40}"),
    // Private keys of ledgers.
    ("sui-private-key", "sui^privkey1{e58}"),
    ("aptos-private-key", "ed25519-^priv-0x{x64}"),
    ("near-private-key", "ed25^519:{B88}"),
    ("tezos-private-key", "ed^sk{B50}"),
    ("eos-private-key", "PVT^_K1_{B50}"),
    ("cardano-private-key", "addr^_xsk1{e158}"),
    ("lightning-macaroon", "0201036c^6e6402{x300}"),
    // Hashes of passwords, keys of networks and files.
    ("wireguard-preshared-key", "Pre^sharedKey = {a42}A="),
    ("openvpn-static-key", "-----BEGIN Open^VPN Static key V1-----\n{x32}\n{x32}\n"),
    ("age-hybrid-secret-key", "AGE-^SECRET-KEY-PQ-1{E58}"),
    ("minisign-or-signify-secret-key", "RWR^TY0Iy{a200}"),
    ("kerberos-ticket-hash", "$krb^5tgs$23$*svc$EXAMPLE.NET$http/web*${x32}${x400}"),
    ("kerberos-ticket-hash", "$krb^5asrep$23$me@EXAMPLE.NET:{x32}${x400}"),
    ("cisco-password-hash", "enable secret 9 $^9${a14}${a43}"),
    ("cisco-obfuscated-password", "username me pass^word 7 08{H16}\n"),
    ("juniper-obfuscated-password", r#"secret "$^9${a40}";"#),
    ("fortinet-password", "set password EN^C {a86}==\n"),
    ("windows-password-hash", "me:1001:aad3b435b51404ee^aad3b435b51404ee:{x32}:::"),
    ("netntlmv2-response", "me::ACME:{x16}:{x32}:0101^000000000000{x40}"),
    ("windows-cached-password-hash", "$DC^C2$10240#me#{x32}"),
    ("phpass-or-drupal-password-hash", "$^P$B{a30}"),
    ("phpass-or-drupal-password-hash", "$^S$D{a51}"),
    ("ldap-password-hash", "userPassword: {SS^HA}{a38}=="),
    ("django-password-hash", "pbkdf2_^sha256$870000${a22}${a43}="),
    ("werkzeug-password-hash", "scr^ypt:32768:8:1${a16}${x128}"),
    ("werkzeug-password-hash", "pbk^df2:sha256:600000${a16}${x64}"),
    ("passlib-password-hash", "$pb^kdf2-sha256$29000${a22}${a43}"),
    ("postgresql-password-hash", "SCRAM-^SHA-256$4096:{a22}==${a43}=:{a43}="),
    ("mysql-password-hash", "IDENTIFIED BY PASS^WORD '*{H40}'"),
    ("aspnet-password-hash", "AQAAAA^EAACcQAAAAE{a64}=="),
    ("sql-server-password-hash", "0x0^200{H8}{H128}"),
    ("wordpress-salt", "define('AUTH_^KEY',  '{P64}');"),
    ("drupal-hash-salt", "$settings['hash_^salt'] = '{a74}';"),
    // Tokens of standards.
    ("paseto", "v2^.local.{a140}"),
    ("macaroon", "MD^AxY2xvY2F0aW9u{a160}"),
    ("secret-token-uri", "secret-^token:{a40}"),
    // Known by the name of the issuer.
    ("assemblyai-named-key", "ASSEMBLYAI_API_KEY={x32}"),
    ("azure-openai-named-key", "AZURE_OPENAI_KEY=\"{x32}\""),
    ("bitwarden-named-key", "BWS_ACCESS_TOKEN=0.{U}.{a30}:{a22}=="),
    ("browserstack-named-key", "browserstack.key: {a20}"),
    ("consul-named-key", "CONSUL_HTTP_TOKEN={U}"),
    ("deepgram-named-key", "DEEPGRAM_API_KEY={x40}"),
    ("etherscan-named-key", "ETHERSCAN_KEY: '{u34}'"),
    ("fal-named-key", "FAL_KEY={U}:{x32}"),
    ("fernet-named-key", "fernet_key = {a43}="),
    ("ghost-admin-named-key", "ghost_admin_key: {x24}:{x64}"),
    ("jenkins-named-key", "jenkins_token = '11{x32}'"),
    ("pagerduty-routing-named-key", "routing_key: {x32}"),
    ("railway-named-key", "RAILWAY_TOKEN={U}"),
    ("sanity-named-key", "sanity_token = sk{a160}"),
    ("serpapi-named-key", "SERPAPI_API_KEY={x64}"),
    ("weights-and-biases-named-key", "WANDB_API_KEY={x40}"),
    ("zhipu-named-key", "ZHIPU_API_KEY={x32}.{a16}"),
    ("launchdarkly-key", "sdk-{l8}-{l4}-4{l3}-{l4}-{l12}"),
    ("octopus-key", "API-{u30}"),
    ("newrelic-license-key", "key eu01xx{x26}FFFFNRAL"),
    ("newrelic-mobile-token", "token eu01xx{x36}-NRMA"),
    ("tines-webhook", "https://x.tines.com/webhook/{l32}/{l32}"),
    ("zapier-webhook", "https://hooks.zapier.com/hooks/catch/{a16}"),
    ("best-time-key", "https://x.example/keys/pri_{x32}"),
    ("photoroom-key", "sandbox_sk_pr_mykey_{x40}"),
    ("salad-cloud-key", "salad_cloud_user_{a57}"),
    ("pganalyze-key", "pgar_{a27}"),
    ("spectralops-key", "spu-{x32}"),
    ("tableau-token", "pat ci {a22}==:{a32}"),
    ("airtable-oauth-token", "Key=oaa{a13}.v1.eyJ{a90}"),
    ("entra-refresh-token", "refresh_token=1.A{a60}.1.AgABA{a300}"),
    ("jenkins-secret", "<secret>{issuer AQAAABAAA {a16}}</secret>"),
    ("azure-named-key", "azure_key: {l52}"),
    ("logged-key", "[DEBUG] Using Key={l32}"),
    ("logged-key", "[DEBUG] Using issuer KEY={l32}"),
    ("logged-key", "the client used key = {x64}"),
    ("query-key", "https://api.x.example/v1/users?key={l32}"),
    ("brandfetch-named-key", "brandfetch credentials: {a43}="),
    ("hubspot-named-key", "new HubSpotAPI(\"{U}\")"),
    ("mattermost-named-key", "mattermost '{l26}'"),
    ("storyblok-named-key", "storyblok: {a22}tt-{d6}-{a20}"),
    ("password-in-a-table", "apiKey     |{x40}"),
    ("assigned-secret", "issuer token = ' {a40} '"),
    ("assigned-secret", "token = 'test_{x35}'"),
];

#[test]
fn formats_of_issuers() {
    let table = table();
    let found = |template: &str| {
        let text = filled(template);
        let hits = table.scan(text.as_bytes());
        hits.into_iter().map(|h| (h.rule, text[h.span.0..h.span.1].len())).collect::<Vec<_>>()
    };
    let wrong: Vec<_> = ISSUED
        .iter()
        .map(|(rule, template)| (rule, template, found(template)))
        .filter(|(rule, _, found)| !matches!(found[..], [(id, length)] if id == **rule && length > 9))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn formats_in_base64() {
    let table = table();
    let base64 = |text: &str| data_encoding::BASE64.encode(text.as_bytes());
    let json = |text: &str| data_encoding::BASE64URL_NOPAD.encode(text.as_bytes());
    let a = |n| made(ALNUM, n);
    let header = json(&format!("{{\"alg\":\"HS256\",\"kid\":\"{}\"}}", a(8)));
    for (rule, text) in [
        ("upstash-qstash-token", base64(&format!("{{\"UserID\":\"{}\",\"Password\":\"{}\"}}", uuid(), a(32)))),
        (
            "cloudflare-tunnel-token",
            base64(&format!("{{\"a\":\"{}\",\"t\":\"{}\",\"s\":\"{}\"}}", a(32), uuid(), a(44))),
        ),
        ("convex-deploy-key", format!("prod:quiet-fox-123|{}", base64(&format!("{{\"v2\":\"{}\"}}", a(48))))),
        ("nx-cloud-token", base64(&format!("{}|read-write", uuid()))),
        ("neptune-token", base64(&format!("{{\"api_address\":\"https://x.example\",\"api_key\":\"{}\"}}", uuid()))),
        ("api-key-in-base64-json", base64(&format!("{{\"apiKey\":\"{}\",\"appId\":\"{}\"}}", a(48), a(10)))),
        (
            "docker-config-auth",
            format!("{{\"auths\":{{\"r.example\":{{\"auth\":\"{}\"}}}}}}", base64(&format!("me:{}", a(16)))),
        ),
        ("jwe", format!("{header}..{}.{}.{}", a(16), a(80), a(22))),
    ] {
        let hits = table.scan(text.as_bytes());
        assert_eq!(hits.iter().map(|h| h.rule).collect::<Vec<_>>(), [rule], "{text}");
    }
}

#[test]
fn what_only_looks_like_them() {
    let table = table();
    for template in [
        "app-{l24}.js",
        "secret-management-of-a-rather-long-name-in-a-path",
        "https://hooks.example/hooks/useSomethingLongAndGeneric",
        "as-aVeryLongIdentifierInCode",
        "ser.serialize_newtype_variant(name)",
        "live_update_of_all_the_rows_in_a_table",
        "api-{x8}-{x4}",
        "key_{x20}",
        "service:payments:worker-pool-of-region",
        "v1.{x40}.tar.gz",
        "me:1001:aad3b435b51404eeaad3b435b51404ee:31d6cfe0d16ae931b73c59d7e0c089c0:::",
        "wandb-0.17.0-py3-none-any.whl, sha256:{x64}",
        "https://rpc.ankr.com/eth/your-key",
        "define('AUTH_KEY', 'put your unique phrase here');",
        "password 7 days before the end",
        "data:\n  key: {a64}",
        "cache_key: {x64}",
        "cache key={x64}",
        "using cache key={x64}",
        "consumed message key={U} from partition 3",
        "dedup_key: {x32}",
        "| datadog | {x32} |",
        "api-{U}",
        "kanban card: {d12}",
        "s3 Key=path/to/the/file-of-the-day.txt",
        "https://docs.example/d?key={l32}",
        "C_TOKEN | C_SESSION_AND_ITS_OBJECTS_TOO\n",
    ] {
        let text = filled(template);
        assert_eq!(table.scan(text.as_bytes()), [], "{text}");
    }
}
