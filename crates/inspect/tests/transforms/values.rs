//! Private values of a few forms, made anew for each test and the same in every run. None stands in the repository.

/// Numbers without a pattern (xorshift64).
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % bound
    }

    fn of(&mut self, alphabet: &[u8], length: usize) -> String {
        (0..length).map(|_| char::from(alphabet[self.below(alphabet.len())])).collect()
    }
}

const ALNUM: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const WORDS: [&str; 24] = [
    "harbour",
    "invoice",
    "Tomas",
    "seven",
    "clinic",
    "refused",
    "Thursday",
    "margin",
    "Okafor",
    "bridge",
    "twelve",
    "pending",
    "severance",
    "north",
    "audit",
    "Ines",
    "copper",
    "transfer",
    "delayed",
    "winter",
    "lawyer",
    "quarter",
    "settled",
    "ninety",
];

/// One value of each form.
pub(crate) const FORMS: [fn(&mut Numbers) -> String; 6] = [
    |n| format!("{}{}", "AKIA", n.of(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16)),
    |n| format!("{}_{}", "ghp", n.of(ALNUM, 36)),
    |n| format!("{}://svc:{}@db.corp.internal:5432/orders", "postgres", n.of(ALNUM, 18)),
    |n| n.of(b"0123456789abcdef", 40),
    |n| {
        let words: Vec<&str> = (0..14).map(|_| WORDS[n.below(WORDS.len())]).collect();
        format!("Salary review: {}", words.join(" "))
    },
    |n| {
        let lines: Vec<String> =
            (0..4).map(|_| n.of(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", 64)).collect();
        let (begin, end) = ("-----BEGIN OPENSSH", "-----END OPENSSH");
        format!("{begin} PRIVATE KEY-----\n{}\n{end} PRIVATE KEY-----", lines.join("\n"))
    },
];
