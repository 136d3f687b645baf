//! The two checksums that S3 carries in headers: CRC32C and CRC64NVME, big-endian and base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crc_fast::{CrcAlgorithm, Digest};
use md5::{Digest as _, Md5};

/// Which checksum goes into `x-amz-checksum-*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrcKind {
    /// Castagnoli's, 4 bytes: `x-amz-checksum-crc32c`.
    Crc32c,
    /// 8 bytes: `x-amz-checksum-crc64nvme`.
    Crc64Nvme,
}

impl CrcKind {
    /// Of the plan's setting; `None` for none.
    pub fn of(setting: plimsoll_model::plan::Checksum) -> Option<Self> {
        match setting {
            plimsoll_model::plan::Checksum::None => None,
            plimsoll_model::plan::Checksum::Crc32c => Some(Self::Crc32c),
            plimsoll_model::plan::Checksum::Crc64nvme => Some(Self::Crc64Nvme),
        }
    }

    /// The header that carries it, in lower case.
    pub fn header(self) -> &'static str {
        match self {
            Self::Crc32c => "x-amz-checksum-crc32c",
            Self::Crc64Nvme => "x-amz-checksum-crc64nvme",
        }
    }

    /// The value of `x-amz-checksum-algorithm`.
    pub fn algorithm(self) -> &'static str {
        match self {
            Self::Crc32c => "CRC32C",
            Self::Crc64Nvme => "CRC64NVME",
        }
    }

    /// Element of a part in the body of CompleteMultipartUpload.
    pub fn element(self) -> &'static str {
        match self {
            Self::Crc32c => "ChecksumCRC32C",
            Self::Crc64Nvme => "ChecksumCRC64NVME",
        }
    }

    fn bytes(self) -> usize {
        match self {
            Self::Crc32c => 4,
            Self::Crc64Nvme => 8,
        }
    }
}

/// A checksum in the making: over pieces, in order.
#[derive(Clone, Copy)]
pub struct Crc {
    kind: CrcKind,
    digest: Digest,
}

impl std::fmt::Debug for Crc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Crc({}, {:x})", self.kind.algorithm(), self.value())
    }
}

impl Crc {
    /// Of no data yet.
    pub fn new(kind: CrcKind) -> Self {
        let algorithm = match kind {
            CrcKind::Crc32c => CrcAlgorithm::Crc32Iscsi,
            CrcKind::Crc64Nvme => CrcAlgorithm::Crc64Nvme,
        };
        Self { kind, digest: Digest::new(algorithm) }
    }

    /// The next of the data, however it is cut.
    pub fn update(&mut self, data: &[u8]) {
        self.digest.update(data);
    }

    /// Of the data so far. A 32-bit checksum stands in the low half.
    pub fn value(&self) -> u64 {
        self.digest.finalize()
    }

    /// The text for the header; the second is its length.
    pub fn base64(&self) -> Base64Crc {
        let be = self.value().to_be_bytes();
        let mut text = [0u8; 12];
        let len = STANDARD
            .encode_slice(&be[8 - self.kind.bytes()..], &mut text)
            .expect("8 bytes are 12 characters of base64");
        Base64Crc { text, len: len as u8 }
    }
}

/// A checksum as its header has it.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Base64Crc {
    text: [u8; 12],
    len: u8,
}

impl Base64Crc {
    /// Padded base64: 8 or 12 characters.
    pub fn as_bytes(&self) -> &[u8] {
        &self.text[..self.len as usize]
    }
}

impl std::fmt::Debug for Base64Crc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.as_bytes()))
    }
}

/// The checksum of one buffer.
pub fn crc_of(kind: CrcKind, data: &[u8]) -> Base64Crc {
    let mut c = Crc::new(kind);
    c.update(data);
    c.base64()
}

/// `Content-MD5` of a body. DeleteObjects needs it on servers that know no newer checksum.
pub fn content_md5(data: &[u8]) -> [u8; 24] {
    let mut text = [0u8; 24];
    STANDARD.encode_slice(Md5::digest(data), &mut text).expect("16 bytes are 24 characters of base64");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_check_values() {
        // The catalogue of parametrised CRCs gives these for "123456789".
        let mut c = Crc::new(CrcKind::Crc32c);
        c.update(b"1234");
        c.update(b"56789");
        assert_eq!(c.value(), 0xe306_9283);
        assert_eq!(c.base64().as_bytes(), b"4waSgw==");
        let mut c = Crc::new(CrcKind::Crc64Nvme);
        c.update(b"123456789");
        assert_eq!(c.value(), 0xae8b_1486_0a79_9888);
        assert_eq!(c.base64().as_bytes(), b"rosUhgp5mIg=");
    }

    #[test]
    fn md5_of_rfc_1321() {
        // RFC 1321 A.5: MD5("") = d41d8cd98f00b204e9800998ecf8427e
        assert_eq!(&content_md5(b""), b"1B2M2Y8AsgTpgAmY7PhCfg==");
    }
}
