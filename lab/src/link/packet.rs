//! Packets as a TUN device with a vnet header hands them over: up to 64 KiB of TCP payload in one
//! piece, to be cut into segments by whoever needs them ("TSO"). What a wire would carry is
//! computed here; so is cutting a piece in two where a queue is full or a segment is lost.
#![forbid(unsafe_code)]

/// Length of `struct virtio_net_hdr`, which precedes every packet.
pub const VNET_HDR: usize = 10;
/// Largest read: header and one full-size IP packet.
pub const MAX_PACKET: usize = VNET_HDR + 65_535;

const NEEDS_CSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_ECN: u8 = 0x80;
const TCP_FIN: u8 = 0x01;
const TCP_PSH: u8 = 0x08;
const TCP_CWR: u8 = 0x80;

/// One packet in the link, vnet header included.
#[derive(Debug, Clone)]
pub struct Packet {
    data: Vec<u8>,
    /// Wire packets that this becomes.
    segments: u32,
    /// Bytes of IP packets on the wire (no link-layer framing).
    wire_bytes: u32,
    /// When it was read, in ns of the engine's clock.
    pub arrived: u64,
}

/// Where the parts of an IPv4/TCP packet are.
struct Layout {
    ip: usize,
    tcp: usize,
    payload: usize,
}

impl Packet {
    /// Takes what a TUN device returned from one read.
    pub fn new(data: Vec<u8>, arrived: u64) -> Self {
        let mut p = Self {
            data,
            segments: 1,
            wire_bytes: 0,
            arrived,
        };
        p.measure();
        p
    }

    pub fn data(&self) -> &[u8] {
        &self.data
    }

    pub fn segments(&self) -> u32 {
        self.segments
    }

    pub fn wire_bytes(&self) -> u32 {
        self.wire_bytes
    }

    fn measure(&mut self) {
        let whole = self.data.len().saturating_sub(VNET_HDR) as u32;
        self.segments = 1;
        self.wire_bytes = whole;
        let (Some(layout), Some(gso)) = (self.layout(), self.gso_size()) else {
            return;
        };
        let payload = (self.data.len() - layout.payload) as u32;
        let headers = (layout.payload - layout.ip) as u32;
        self.segments = payload.div_ceil(gso).max(1);
        self.wire_bytes = payload + self.segments * headers;
    }

    /// Segment size of a packet that is still to be cut, `None` for an ordinary one.
    fn gso_size(&self) -> Option<u32> {
        let kind = self.data.get(1)? & !GSO_ECN;
        let size = u32::from(u16::from_ne_bytes([*self.data.get(4)?, *self.data.get(5)?]));
        (kind == GSO_TCPV4 && size > 0).then_some(size)
    }

    fn layout(&self) -> Option<Layout> {
        let ip = VNET_HDR;
        let first = *self.data.get(ip)?;
        if first >> 4 != 4 || *self.data.get(ip + 9)? != 6 {
            return None;
        }
        let tcp = ip + usize::from(first & 15) * 4;
        let payload = tcp + usize::from(*self.data.get(tcp + 12)? >> 4) * 4;
        (payload >= tcp + 20 && payload <= self.data.len()).then_some(Layout { ip, tcp, payload })
    }

    /// Cuts after `count` segments: `self` keeps those, the rest is returned. `None`, and nothing
    /// changed, when there is nothing to cut.
    pub fn split_off(&mut self, count: u32) -> Option<Packet> {
        let layout = self.layout()?;
        let gso = self.gso_size()?;
        if count == 0 || count >= self.segments {
            return None;
        }
        let kept = (count * gso) as usize;
        let cut = layout.payload + kept;
        let mut rest = Vec::with_capacity(layout.payload + self.data.len() - cut);
        rest.extend_from_slice(&self.data[..layout.payload]);
        rest.extend_from_slice(&self.data[cut..]);
        self.data.truncate(cut);
        self.data[layout.tcp + 13] &= !(TCP_FIN | TCP_PSH);

        rest[layout.tcp + 13] &= !TCP_CWR;
        let seq = be32(&rest, layout.tcp + 4).wrapping_add(kept as u32);
        rest[layout.tcp + 4..layout.tcp + 8].copy_from_slice(&seq.to_be_bytes());
        let id = be16(&rest, layout.ip + 4).wrapping_add(count as u16);
        rest[layout.ip + 4..layout.ip + 6].copy_from_slice(&id.to_be_bytes());

        for data in [&mut self.data, &mut rest] {
            finish_headers(data, &layout, gso);
        }
        self.measure();
        Some(Packet::new(rest, self.arrived))
    }

    /// Changes one byte of the TCP payload and keeps every checksum valid, as memory that went
    /// bad in a router does: TCP hands the byte on, and only a MAC or a hash above it can tell.
    /// False when there is no payload.
    pub fn corrupt(&mut self, position: usize) -> bool {
        let Some(layout) = self.layout() else {
            return false;
        };
        let payload = self.data.len() - layout.payload;
        if payload == 0 {
            return false;
        }
        let at = layout.payload + position % payload;
        let aligned = at - (at - layout.tcp) % 2;
        let word = |d: &[u8]| u16::from_be_bytes([d[aligned], *d.get(aligned + 1).unwrap_or(&0)]);
        let before = word(&self.data);
        self.data[at] ^= 0x55;
        let after = word(&self.data);
        // A checksum that is still to be made ("partial") will cover the changed byte anyway.
        if self.data[0] & NEEDS_CSUM == 0 {
            let field = layout.tcp + 16;
            // RFC 1624, equation 3.
            let sum = u32::from(!be16(&self.data, field)) + u32::from(!before) + u32::from(after);
            self.data[field..field + 2].copy_from_slice(&(!fold(sum)).to_be_bytes());
        }
        true
    }
}

/// Lengths, checksums and vnet header of one half after a cut.
fn finish_headers(data: &mut [u8], layout: &Layout, gso: u32) {
    let total = (data.len() - layout.ip) as u16;
    data[layout.ip + 2..layout.ip + 4].copy_from_slice(&total.to_be_bytes());
    data[layout.ip + 10..layout.ip + 12].fill(0);
    let header = fold(sum(&data[layout.ip..layout.tcp]));
    data[layout.ip + 10..layout.ip + 12].copy_from_slice(&(!header).to_be_bytes());

    // The packet's checksum is partial (it always is with segmentation offload): the field holds
    // the sum of the pseudo header, in which only the length changes.
    let tcp_len = (data.len() - layout.tcp) as u32;
    let pseudo = fold(sum(&data[layout.ip + 12..layout.ip + 20]) + 6 + tcp_len);
    data[layout.tcp + 16..layout.tcp + 18].copy_from_slice(&pseudo.to_be_bytes());

    if data.len() - layout.payload <= gso as usize {
        data[1] = GSO_NONE;
        data[4..6].fill(0);
    }
}

fn be16(d: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([d[at], d[at + 1]])
}

fn be32(d: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([d[at], d[at + 1], d[at + 2], d[at + 3]])
}

/// Sum of big-endian 16-bit words.
fn sum(d: &[u8]) -> u32 {
    d.chunks(2)
        .map(|c| u32::from(c[0]) << 8 | u32::from(*c.get(1).unwrap_or(&0)))
        .sum()
}

fn fold(mut s: u32) -> u16 {
    while s > 0xffff {
        s = (s & 0xffff) + (s >> 16);
    }
    s as u16
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A TCP packet as the kernel offers it to a device with segmentation offload.
    pub fn offloaded(payload: usize, gso: u16) -> Packet {
        let mut d = vec![0u8; VNET_HDR];
        d[0] = NEEDS_CSUM;
        if payload > usize::from(gso) {
            d[1] = GSO_TCPV4;
            d[4..6].copy_from_slice(&gso.to_ne_bytes());
        }
        d.extend([
            0x45, 0, 0, 0, 0, 7, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ]);
        let mut tcp = [0u8; 32];
        tcp[4..8].copy_from_slice(&1000u32.to_be_bytes());
        tcp[12] = 8 << 4;
        tcp[13] = 0x10 | TCP_PSH;
        d.extend(tcp);
        d.extend((0..payload).map(|i| (i % 251) as u8));
        let total = (d.len() - VNET_HDR) as u16;
        d[12..14].copy_from_slice(&total.to_be_bytes());
        Packet::new(d, 0)
    }

    #[test]
    fn the_wire_carries_headers_for_each_segment() {
        let p = offloaded(4000, 1448);
        assert_eq!((p.segments(), p.wire_bytes()), (3, 4000 + 3 * 52));
        let p = offloaded(0, 1448);
        assert_eq!((p.segments(), p.wire_bytes()), (1, 52));
    }

    #[test]
    fn a_cut_loses_no_byte_and_keeps_headers_right() {
        let whole = offloaded(4000, 1448);
        let mut first = whole.clone();
        let rest = first.split_off(1).unwrap();
        let payload = |p: &Packet| p.data()[p.layout().unwrap().payload..].to_vec();
        assert_eq!([payload(&first), payload(&rest)].concat(), payload(&whole));
        assert_eq!((first.segments(), rest.segments()), (1, 2));
        assert_eq!(first.wire_bytes() + rest.wire_bytes(), whole.wire_bytes());
        assert_eq!(be32(rest.data(), VNET_HDR + 24), 1000 + 1448);
        assert_eq!(be16(rest.data(), VNET_HDR + 4), 8);
        assert_eq!(first.data()[VNET_HDR + 33] & TCP_PSH, 0);
        assert_ne!(rest.data()[VNET_HDR + 33] & TCP_PSH, 0);
        for p in [&first, &rest] {
            assert_eq!(fold(sum(&p.data()[VNET_HDR..VNET_HDR + 20])), 0xffff);
            assert_eq!(
                usize::from(be16(p.data(), VNET_HDR + 2)),
                p.data().len() - VNET_HDR
            );
        }
        assert_eq!(first.data()[1], GSO_NONE);
        assert!(first.split_off(1).is_none());
    }

    #[test]
    fn corruption_leaves_a_full_checksum_valid() {
        let mut p = offloaded(101, 1448);
        let l = p.layout().unwrap();
        // Make the full checksum, as a device without offload would see it.
        let pseudo = sum(&p.data[l.ip + 12..l.ip + 20]) + 6 + (p.data.len() - l.tcp) as u32;
        let valid = |p: &Packet| fold(pseudo + sum(&p.data[l.tcp..])) == 0xffff;
        p.data[0] = 0;
        let c = !fold(pseudo + sum(&p.data[l.tcp..]));
        p.data[l.tcp + 16..l.tcp + 18].copy_from_slice(&c.to_be_bytes());
        assert!(valid(&p));
        for position in [0, 1, 50, 100, 1000] {
            let before = p.data.clone();
            assert!(p.corrupt(position));
            assert!(valid(&p), "position {position}");
            assert_ne!(before[l.payload..], p.data[l.payload..]);
        }
        assert!(!offloaded(0, 1448).corrupt(0));
    }
}
