//! What ordinary text is full of: words are known by other bytes.

/// The four bytes that stand most often in English prose, documentation and messages of programs, the most common first.
#[rustfmt::skip]
pub(super) const COMMON_FOUR: &str = concat!(
    " thethe tioning  to ---- conion atioand serv andcont forhttpervenamervertypetest in for sionment staportgith",
    "ithuthubions.comring of conf is statversontefilewith promplestri comcommablerequonfient ctio usetrintingnfig",
    " thittpstoolnstathisted  witfromauthinst serhis texterro lib strientpackents frorrorate tatuatusith  ress th",
    "e thdateersi if  errhub.lienrom clieall rsio insamplfuncn th you thaeque reqort  chawork filcodescriptiogate",
    "ub.cb.co namexamxampuestquesntexjecthat  impread or stal precomptalljsonuse  not ret typconsver riptcriprate",
    "thatturners chan tese redingtus  auteturretuatewng ttewatimeewayest presdatamode fun httated expess tentress",
    "sourturentenourcangee courceinteocke runratiicatatesons regickers ingististregisbuilstrecatiformrustatch int",
    "are speclistackahtmlckag gitbackpathkagevalu as ed t datnter be  on not reathe s toonts  mcpin tble dockuild",
    " vals toage  addalueresocallmport thhe const cli--- entif therat docile impo. thled  trasingacketherhangtrea",
    "creas a .htm wor ---thor ared toigur newfigu can",
);

/// What stands most often side by side in English.
#[rustfmt::skip]
const COMMON: [&[u8; 2]; 56] = [
    b"e ", b" t", b"th", b"he", b"s ", b" a", b"in", b"er", b"an", b"d ", b"re", b"t ", b"on", b" s", b"n ", b" o", b" i", b"en",
    b"at", b"or", b"es", b"is", b"it", b"nd", b"y ", b" w", b"te", b"ti", b"ed", b"r ", b"st", b"al", b" c", b"ar", b"nt", b" b",
    b"ng", b"o ", b" f", b" p", b" m", b"to", b"se", b"ha", b"ve", b"ou", b"of", b"as", b"le", b"me", b" d", b" h", b"io", b"ea",
    b"de", b"co",
];

/// How common two bytes are side by side, roughly as a logarithm.
pub(super) fn commonness_of_two(a: u8, b: u8) -> u32 {
    let two = [a.to_ascii_lowercase(), b.to_ascii_lowercase()];
    let seldom = if COMMON.contains(&&two) { 0 } else { 12 };
    (commonness(two[0]) + commonness(two[1]) + 12).saturating_sub(seldom)
}

/// How common a byte is in English, code and JSON, roughly as a logarithm.
pub(super) fn commonness(b: u8) -> u32 {
    match b {
        b' ' | b'e' => 10,
        b't' | b'a' | b'o' | b'i' | b'n' | b's' | b'r' => 9,
        b'h' | b'l' | b'd' | b'c' | b'u' => 8,
        b'm' | b'p' | b'f' | b'g' | b'_' | b'-' | b'.' | b',' | b'"' | b':' | b'/' => 7,
        b'w' | b'y' | b'b' | b'v' | b'0'..=b'9' => 6,
        0x80.. => 6,
        b'k' | b'(' | b')' | b'=' => 5,
        _ => 3,
    }
}
