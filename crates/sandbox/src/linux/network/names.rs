//! Names that were looked up, and the stand-in addresses that the server got for them.
//!
//! Each stand-in means one address of one name, so that a `connect` to it says which host is meant, and a program that tries
//! the addresses of a host one after the other still does. A connected socket shows its real peer (`getpeername`).

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    time::{Duration, Instant},
};

/// Names of one server. An honest one uses a few dozen.
const MAX_NAMES: usize = 4096;
/// Names among them that nobody granted, and that get a stand-in so that somebody can be asked when it is connected to.
const MAX_UNKNOWN: usize = 256;
/// Addresses of one name and family that are used.
const MAX_ADDRESSES: usize = 4;
/// Stand-ins reserved for each name.
const BLOCK: usize = 8;
/// 198.18.0.0/15, reserved for benchmarks (RFC 2544): nobody has these on a network.
const FIRST: u32 = Ipv4Addr::new(198, 18, 0, 0).to_bits();
/// A unique local prefix (RFC 4193) with random bits.
const FIRST_6: u128 = Ipv6Addr::new(0xfd9d, 0x3c5a, 0x71e4, 0xf12e, 0, 0, 0, 0).to_bits();
/// How long what was looked up counts as fresh.
const FRESH: Duration = Duration::from_secs(60);

/// What is known of one name.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub name: String,
    v4: Vec<IpAddr>,
    v6: Vec<IpAddr>,
    /// This machine's addresses at that time.
    pub own: Vec<IpAddr>,
    /// When it was looked up, if it ever was.
    at: Option<Instant>,
}

/// All names of one server.
#[derive(Default)]
pub(crate) struct Names {
    names: Vec<Name>,
    index: HashMap<String, usize>,
    unknown: usize,
}

impl Name {
    pub fn is_fresh(&self, now: Instant) -> bool {
        self.at.is_some_and(|at| now.duration_since(at) < FRESH)
    }

    /// All addresses.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.v4.iter().chain(&self.v6).copied()
    }
}

impl Names {
    pub fn get(&self, name: &str) -> Option<&Name> {
        self.names.get(*self.index.get(name)?)
    }

    /// Remembers what a name stands for now. `false` when there are too many names.
    pub fn learn(&mut self, name: &str, addresses: &[IpAddr], own: Vec<IpAddr>, now: Instant) -> bool {
        let of = |v4: bool| {
            let mut out: Vec<IpAddr> = Vec::new();
            for ip in addresses.iter().filter(|ip| ip.is_ipv4() == v4) {
                if out.len() < MAX_ADDRESSES && !out.contains(ip) {
                    out.push(*ip);
                }
            }
            out
        };
        let known = Name { name: name.to_owned(), v4: of(true), v6: of(false), own, at: Some(now) };
        if let Some(place) = self.index.get(name).and_then(|i| self.names.get_mut(*i)) {
            *place = known;
            return true;
        }
        self.add(known)
    }

    /// A stand-in for a name that is not looked up before somebody has agreed. `None` when there are too many.
    pub fn reserve(&mut self, name: &str) -> Option<IpAddr> {
        if !self.index.contains_key(name) {
            let unknown = Name { name: name.to_owned(), v4: Vec::new(), v6: Vec::new(), own: Vec::new(), at: None };
            if self.unknown >= MAX_UNKNOWN || !self.add(unknown) {
                return None;
            }
            self.unknown += 1;
        }
        self.index.get(name).map(|index| stand_in(*index, 0, true))
    }

    fn add(&mut self, name: Name) -> bool {
        let room = self.names.len() < MAX_NAMES;
        if room {
            self.index.insert(name.name.clone(), self.names.len());
            self.names.push(name);
        }
        room
    }

    /// The stand-ins for those addresses of a name that `allowed` lets through.
    pub fn stand_ins(&self, name: &str, v4: bool, allowed: impl Fn(IpAddr) -> bool) -> Vec<IpAddr> {
        let Some((index, known)) = self.index.get(name).and_then(|i| Some((*i, self.names.get(*i)?))) else {
            return Vec::new();
        };
        let real = if v4 { &known.v4 } else { &known.v6 };
        real.iter().enumerate().filter(|(_, ip)| allowed(**ip)).map(|(i, _)| stand_in(index, i, v4)).collect()
    }

    /// Those addresses of a name that `allowed` lets through, themselves.
    pub fn addresses(&self, name: &str, v4: bool, allowed: impl Fn(IpAddr) -> bool) -> Vec<IpAddr> {
        let known = self.get(name).into_iter().flat_map(|known| if v4 { &known.v4 } else { &known.v6 });
        known.copied().filter(|ip| allowed(*ip)).collect()
    }

    /// The one name that was looked up and has this address.
    pub fn only_name_of(&self, ip: IpAddr) -> Option<&str> {
        let mut with = self.names.iter().filter(|known| known.addresses().any(|own| own == ip));
        let first = with.next()?;
        with.next().is_none().then_some(first.name.as_str())
    }

    /// What a stand-in means now: a name and one of its addresses, if it has any of that family.
    pub fn meant_by(&self, stand_in: IpAddr) -> Option<(&Name, Option<IpAddr>)> {
        let offset = match stand_in {
            IpAddr::V4(ip) => ip.to_bits().checked_sub(FIRST)?,
            IpAddr::V6(ip) => u32::try_from(ip.to_bits().checked_sub(FIRST_6)?).ok()?,
        };
        let offset = usize::try_from(offset).ok()?;
        let known = self.names.get((offset / BLOCK).checked_sub(1)?)?;
        let real = if stand_in.is_ipv4() { &known.v4 } else { &known.v6 };
        // A name may have fewer addresses than when the program looked it up.
        let ip = (offset % BLOCK).checked_rem(real.len()).and_then(|i| real.get(i));
        Some((known, ip.copied()))
    }
}

/// The stand-in for one address of the name with this index.
fn stand_in(index: usize, address: usize, v4: bool) -> IpAddr {
    let offset = u32::try_from((index + 1) * BLOCK + address).unwrap_or(0);
    if v4 {
        Ipv4Addr::from_bits(FIRST + offset).into()
    } else {
        Ipv6Addr::from_bits(FIRST_6 + u128::from(offset)).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stand_ins_lead_back() {
        let mut names = Names::default();
        let now = Instant::now();
        let ips: Vec<IpAddr> = ["9.9.9.1", "9.9.9.2", "2606::1", "9.9.9.1"].map(|t| t.parse().unwrap()).into();
        assert!(names.learn("a.example", &ips, Vec::new(), now));
        assert!(names.learn("b.example", &ips[2..3], Vec::new(), now));
        let of = |name, v4| names.stand_ins(name, v4, |_| true);
        assert_eq!((of("a.example", true).len(), of("a.example", false).len()), (2, 1));
        assert_eq!((of("b.example", true).len(), of("c.example", true).len()), (0, 0));
        for (name, v4, i, want) in [
            ("a.example", true, 0, "9.9.9.1"),
            ("a.example", true, 1, "9.9.9.2"),
            ("a.example", false, 0, "2606::1"),
            ("b.example", false, 0, "2606::1"),
        ] {
            let stand_in = of(name, v4)[i];
            let (known, ip) = names.meant_by(stand_in).unwrap();
            assert_eq!((known.name.as_str(), ip), (name, want.parse().ok()), "{stand_in}");
        }
        assert_eq!(names.stand_ins("a.example", true, |ip| ip == ips[1]).len(), 1);
        assert_eq!(names.addresses("a.example", true, |ip| ip == ips[1]), ips[1..2]);
        assert_eq!(names.addresses("c.example", true, |_| true), [] as [IpAddr; 0]);
        assert_eq!((names.only_name_of(ips[0]), names.only_name_of(ips[2])), (Some("a.example"), None));
        let second = of("a.example", true)[1];
        names.learn("a.example", &ips[..1], Vec::new(), now);
        assert_eq!(names.meant_by(second).unwrap().1, Some(ips[0]), "fewer addresses than before");
        names.learn("a.example", &[], Vec::new(), now);
        assert_eq!(names.meant_by(second).unwrap().1, None, "no address any more");
        for other in
            ["198.18.0.0", "198.18.0.7", "198.18.200.1", "198.17.255.255", "127.0.0.1", "::1", "fd9d:3c5a:71e4:f12e::1"]
        {
            assert!(names.meant_by(other.parse().unwrap()).is_none(), "{other}");
        }
        assert!(names.get("a.example").unwrap().is_fresh(now));
        assert!(!names.get("a.example").unwrap().is_fresh(now + FRESH));
    }

    #[test]
    fn names_are_bounded() {
        let mut names = Names::default();
        let now = Instant::now();
        assert!((0..MAX_NAMES).all(|n| names.learn(&format!("n{n}.example"), &[], Vec::new(), now)));
        assert!(!names.learn("more.example", &[], Vec::new(), now));
        assert!(names.learn("n0.example", &[], Vec::new(), now));
        assert!(names.reserve("n0.example").is_some() && names.reserve("more.example").is_none());
    }

    #[test]
    fn names_nobody_granted_have_a_stand_in_and_no_address() {
        let mut names = Names::default();
        let now = Instant::now();
        let first = names.reserve("a.example").unwrap();
        assert_eq!(names.reserve("a.example"), Some(first));
        let meant = |names: &Names| names.meant_by(first).map(|(n, ip)| (n.name.clone(), ip, n.is_fresh(now))).unwrap();
        assert_eq!(meant(&names), ("a.example".into(), None, false));
        // Once it was looked up, the same stand-in leads to an address.
        let ip: IpAddr = "9.9.9.1".parse().unwrap();
        assert!(names.learn("a.example", &[ip], Vec::new(), now));
        assert_eq!(meant(&names), ("a.example".into(), Some(ip), true));
        assert_eq!((1..10_000).filter(|n| names.reserve(&format!("n{n}.example")).is_some()).count(), MAX_UNKNOWN - 1);
        assert!(names.learn("granted.example", &[ip], Vec::new(), now), "granted names still have room");
    }
}
