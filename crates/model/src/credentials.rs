//! Where cloud machines keep their credentials.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Addresses at which clouds answer a machine's questions about itself, besides the link-local ones.
const METADATA: [IpAddr; 3] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)), // Alibaba Cloud
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),   // Azure
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),     // Oracle Cloud
];

/// Where a NAT64 address leads to: 64:ff9b::/96 carries an IPv4 address (RFC 6052 §2.1), which is how networks without
/// IPv4 reach the rest. Other addresses lead to themselves.
pub fn embedded(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(ip) if ip.segments().first_chunk() == Some(&[0x64, 0xff9b, 0, 0, 0, 0]) => {
            Ipv4Addr::from_bits((ip.to_bits() & u128::from(u32::MAX)) as u32).into()
        }
        _ => address,
    }
}

/// Whether a machine in a cloud may get its credentials there: link-local addresses (169.254.169.254 of most clouds), and
/// those that single clouds use besides. A configuration must not be enough to ask there.
pub fn keeps_credentials(address: IpAddr) -> bool {
    match embedded(address.to_canonical()) {
        IpAddr::V4(ip) => ip.is_link_local() || METADATA.contains(&ip.into()),
        IpAddr::V6(ip) => ip.is_unicast_link_local() || is_amazons(ip),
    }
}

/// The network of Amazon's services for its machines (fd00:ec2::/32), fd00:ec2::254 among them.
fn is_amazons(ip: Ipv6Addr) -> bool {
    ip.segments().starts_with(&[0xfd00, 0xec2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_clouds_answer() {
        for (text, want) in [
            ("169.254.169.254", true),
            ("169.254.0.1", true),
            ("fe80::1", true),
            ("fd00:ec2::254", true),
            ("::ffff:169.254.169.254", true),
            ("64:ff9b::a9fe:a9fe", true),
            ("100.100.100.200", true),
            ("168.63.129.16", true),
            ("192.0.0.192", true),
            ("100.100.100.201", false),
            ("10.0.0.1", false),
            ("127.0.0.1", false),
            ("fd12::1", false),
            ("8.8.8.8", false),
        ] {
            assert_eq!(keeps_credentials(text.parse().unwrap()), want, "{text}");
        }
    }
}
