//! `struct msghdr` and what it points to, decoded from our copy. Pure. Layouts: linux/socket.h, on 64-bit machines.

use nix::{errno::Errno, libc};

use super::address::SOCKADDR_MAX;

/// Size of `struct msghdr`.
pub(crate) const MSGHDR: usize = size_of::<libc::msghdr>();
/// Size of `struct mmsghdr`: a header, and the length sent.
pub(crate) const MMSGHDR: usize = size_of::<libc::mmsghdr>();
/// Size of `struct iovec`.
pub(crate) const IOVEC: usize = size_of::<libc::iovec>();
/// Where `struct msghdr` has what receiving writes to it.
pub(crate) const NAME_LENGTH_AT: u64 = std::mem::offset_of!(libc::msghdr, msg_namelen) as u64;
pub(crate) const CONTROL_LENGTH_AT: u64 = std::mem::offset_of!(libc::msghdr, msg_controllen) as u64;
pub(crate) const FLAGS_AT: u64 = std::mem::offset_of!(libc::msghdr, msg_flags) as u64;
/// Most blocks of one message (`UIO_MAXIOV`).
const MAX_BLOCKS: usize = 1024;
/// Longest control data. The kernel takes `net.core.optmem_max`, 20 KiB to 128 KiB; 253 descriptors need 1 KiB.
const MAX_CONTROL: usize = 8192;
/// Most descriptors of one message (`SCM_MAX_FD`).
const MAX_RIGHTS: usize = 253;
/// Size of `struct cmsghdr`.
const CMSGHDR: usize = size_of::<libc::cmsghdr>();

/// Where the parts of a message lie in the caller's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub name: u64,
    pub name_length: usize,
    pub blocks: u64,
    pub block_count: usize,
    pub control: u64,
    pub control_length: usize,
}

fn word(bytes: &[u8], at: usize) -> nix::Result<u64> {
    let bytes = bytes.get(at..).and_then(|b| b.first_chunk::<8>()).ok_or(Errno::EFAULT)?;
    Ok(u64::from_ne_bytes(*bytes))
}

fn half(bytes: &[u8], at: usize) -> nix::Result<i32> {
    let bytes = bytes.get(at..).and_then(|b| b.first_chunk::<4>()).ok_or(Errno::EFAULT)?;
    Ok(i32::from_ne_bytes(*bytes))
}

impl Header {
    pub fn decode(bytes: &[u8]) -> nix::Result<Self> {
        let bounded = |at, max, errno| {
            let value = usize::try_from(word(bytes, at)?).map_err(|_| errno)?;
            if value > max { Err(errno) } else { Ok(value) }
        };
        let name = word(bytes, 0)?;
        let name_length = usize::try_from(half(bytes, 8)?).map_err(|_| Errno::EINVAL)?;
        Ok(Self {
            name,
            // As the kernel does (`copy_msghdr_from_user`).
            name_length: if name == 0 { 0 } else { name_length.min(SOCKADDR_MAX) },
            blocks: word(bytes, 16)?,
            block_count: bounded(24, MAX_BLOCKS, Errno::EMSGSIZE)?,
            control: word(bytes, 32)?,
            control_length: bounded(40, MAX_CONTROL, Errno::ENOBUFS)?,
        })
    }
}

/// Addresses and lengths of the blocks of data.
pub(crate) fn blocks(bytes: &[u8]) -> nix::Result<Vec<(u64, usize)>> {
    let block = |b: &[u8]| {
        let length = usize::try_from(word(b, 8)?).map_err(|_| Errno::EINVAL)?;
        // As the kernel does (`import_iovec`): lengths are signed.
        isize::try_from(length).map_err(|_| Errno::EINVAL)?;
        Ok((word(b, 0)?, length))
    };
    bytes.chunks_exact(IOVEC).map(block).collect()
}

/// One control message.
struct Part {
    level: i32,
    kind: i32,
    /// Where its data are.
    at: usize,
    length: usize,
}

/// Cuts control data into its messages.
fn control_parts(control: &[u8]) -> nix::Result<Vec<Part>> {
    let mut at = 0;
    let mut found = Vec::new();
    while control.len().saturating_sub(at) >= CMSGHDR {
        let length = usize::try_from(word(control, at)?).map_err(|_| Errno::EINVAL)?;
        let end =
            at.checked_add(length).filter(|end| length >= CMSGHDR && *end <= control.len()).ok_or(Errno::EINVAL)?;
        let (level, kind) = (half(control, at + 8)?, half(control, at + 12)?);
        found.push(Part { level, kind, at: at + CMSGHDR, length: length - CMSGHDR });
        at = end.next_multiple_of(8);
    }
    Ok(found)
}

/// Finds the descriptors in the control data of a Unix socket, as offsets. Anything else than `SCM_RIGHTS` is refused:
/// credentials would be the guardian's.
pub(crate) fn rights(control: &[u8]) -> nix::Result<Vec<usize>> {
    let mut found = Vec::new();
    for part in control_parts(control)? {
        if (part.level, part.kind) != (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
            return Err(Errno::EACCES);
        }
        // What does not fill a whole number is ignored (`scm_fp_copy`).
        let count = part.length / 4;
        if found.len() + count > MAX_RIGHTS {
            return Err(Errno::EINVAL);
        }
        found.extend((0..count).map(|i| part.at + 4 * i));
    }
    Ok(found)
}

/// Whether the control data of a datagram are harmless: its type of service, and how it is cut into several. QUIC libraries
/// send these. The rest chooses routes, interfaces and addresses of origin.
pub(crate) fn datagram_options(control: &[u8]) -> nix::Result<()> {
    const HARMLESS: [(i32, i32); 3] =
        [(libc::SOL_IP, libc::IP_TOS), (libc::SOL_IPV6, libc::IPV6_TCLASS), (libc::SOL_UDP, libc::UDP_SEGMENT)];
    let harmless = control_parts(control)?.iter().all(|part| HARMLESS.contains(&(part.level, part.kind)));
    if harmless { Ok(()) } else { Err(Errno::EACCES) }
}

/// A descriptor's number in control data.
pub(crate) fn right(control: &[u8], at: usize) -> nix::Result<i32> {
    half(control, at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn control(messages: &[(u64, i32, i32, &[i32])]) -> Vec<u8> {
        let mut out = Vec::new();
        for (extra, level, kind, numbers) in messages {
            out.resize(out.len().next_multiple_of(8), 0);
            out.extend((16 + 4 * numbers.len() as u64).wrapping_add(*extra).to_ne_bytes());
            out.extend(level.to_ne_bytes());
            out.extend(kind.to_ne_bytes());
            numbers.iter().for_each(|n| out.extend(n.to_ne_bytes()));
        }
        out
    }

    #[test]
    fn descriptors_are_found_and_nothing_else_passes() {
        let (level, kind) = (libc::SOL_SOCKET, libc::SCM_RIGHTS);
        for (bytes, want) in [
            (control(&[]), Ok(vec![])),
            (control(&[(0, level, kind, &[3])]), Ok(vec![16])),
            (control(&[(0, level, kind, &[3]), (0, level, kind, &[4, 5])]), Ok(vec![16, 40, 44])),
            (control(&[(0, level, libc::SCM_CREDENTIALS, &[1, 2, 3])]), Err(Errno::EACCES)),
            (control(&[(0, libc::IPPROTO_IP, libc::IP_PKTINFO, &[1, 2, 3])]), Err(Errno::EACCES)),
            (control(&[(0, level, kind, &[3]), (0, level, libc::SCM_CREDENTIALS, &[1, 2, 3])]), Err(Errno::EACCES)),
            (control(&[(1, level, kind, &[3])]), Err(Errno::EINVAL)),
            (control(&[(u64::MAX - 5, level, kind, &[3])]), Err(Errno::EINVAL)),
            (control(&[(0, level, kind, &[3; 254])]), Err(Errno::EINVAL)),
            (vec![0; 16], Err(Errno::EINVAL)),
        ] {
            assert_eq!(rights(&bytes), want, "{bytes:?}");
        }
    }

    #[test]
    fn options_of_datagrams() {
        for (messages, want) in [
            (&[][..], Ok(())),
            (&[(0, libc::SOL_IP, libc::IP_TOS, &[2][..])], Ok(())),
            (&[(0, libc::SOL_IPV6, libc::IPV6_TCLASS, &[2]), (0, libc::SOL_UDP, libc::UDP_SEGMENT, &[1200])], Ok(())),
            (
                &[(0, libc::SOL_IP, libc::IP_TOS, &[2]), (0, libc::SOL_IP, libc::IP_PKTINFO, &[1, 2, 3])],
                Err(Errno::EACCES),
            ),
            (&[(0, libc::SOL_SOCKET, libc::SCM_RIGHTS, &[0])], Err(Errno::EACCES)),
            (&[(9, libc::SOL_IP, libc::IP_TOS, &[2])], Err(Errno::EINVAL)),
        ] {
            assert_eq!(datagram_options(&control(messages)), want, "{messages:?}");
        }
    }

    #[test]
    fn headers_are_bounded() {
        let header = |at: usize, value: u64| {
            let mut bytes = [0u8; MSGHDR];
            bytes[at..at + 8].copy_from_slice(&value.to_ne_bytes());
            Header::decode(&bytes)
        };
        assert!(header(24, 1024).is_ok() && header(40, 8192).is_ok());
        assert_eq!(header(24, 1025), Err(Errno::EMSGSIZE));
        assert_eq!(header(40, 8193), Err(Errno::ENOBUFS));
        assert_eq!(header(8, u64::from(u32::MAX)), Err(Errno::EINVAL));
        assert_eq!(header(8, 500).unwrap().name_length, 0, "no name, no length");
        assert_eq!(Header::decode(&[0; 40]), Err(Errno::EFAULT));
        assert_eq!(blocks(&[0xff; 16]), Err(Errno::EINVAL));
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (Header::decode(&bytes), blocks(&bytes));
            if let Ok(found) = rights(&bytes) {
                prop_assert!(found.iter().all(|at| right(&bytes, *at).is_ok()));
            }
        }
    }
}
