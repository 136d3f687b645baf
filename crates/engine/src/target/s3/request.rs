//! Which request an op (or a step of a multipart upload) is, written into a lane.

use plimsoll_model::plan::PayloadSigning;
use plimsoll_model::{Op, OpKind};
use plimsoll_s3::checksum::{Base64Crc, content_md5};
use plimsoll_s3::head::{Action, Body, Heads, PayloadHash};
use plimsoll_s3::sign::{Sha256, sha256_hex};
use plimsoll_s3::{Crc, CrcKind, xml};

use super::config::Config;
use super::content::ObjectContent;
use super::exchange::{Exchange, Wants};
use super::lane::Lane;
use super::outgoing::{FLAT_BYTES, Source};

/// One request of an op.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    /// The op is this one request.
    Single,
    Initiate,
    /// Part `index` (from 0).
    Part(u32),
    Complete,
    Abort,
}

/// ETag and checksum of a part that was taken.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PartDone {
    pub etag: plimsoll_s3::response::Text<96>,
    pub checksum: Base64Crc,
}

/// What is known of an op's upload.
#[derive(Debug, Default)]
pub(super) struct Upload {
    pub id: String,
    pub parts: Vec<PartDone>,
}

/// Writes requests; owns scratch memory so that nothing is allocated per request.
#[derive(Debug)]
pub(super) struct Writer {
    key: Vec<u8>,
    source_key: Vec<u8>,
    prefix: Vec<u8>,
    /// Keys of a batch delete, one after another, and where each ends.
    batch: Vec<u8>,
    ends: Vec<usize>,
    pub verify: bool,
}

impl Writer {
    pub fn new(config: &Config, verify: bool) -> Self {
        let key = config.keys.max_bytes();
        let batch = config.object.delete_batch as usize;
        Self {
            key: Vec::with_capacity(key),
            source_key: Vec::with_capacity(key),
            prefix: Vec::with_capacity(key),
            batch: Vec::with_capacity(key * batch),
            ends: Vec::with_capacity(batch),
            verify,
        }
    }

    /// Room that the XML body of the longest request needs.
    pub fn text_room(config: &Config) -> usize {
        let batch = config.object.delete_batch as usize * (config.keys.max_bytes() + 40);
        let parts = if config.object.multipart {
            config.object.max_multipart_bytes.div_ceil(config.object.part_bytes.max(1)) as usize * 180
        } else {
            0
        };
        256 + batch.max(parts)
    }

    /// Puts the request into `lane.out` and says how its answer is to be taken.
    pub fn write(
        &mut self,
        lane: &mut Lane,
        (heads, config): (&mut Heads, &Config),
        (op, n): (&Op, u64),
        (call, upload): (Call, &Upload),
        unix_s: u64,
    ) -> Exchange {
        let out = &mut lane.out;
        out.head.clear();
        out.text.clear();
        out.source = Source::None;
        out.body_len = 0;
        out.expects = false;
        self.key.clear();
        let mut exchange = Exchange::IDLE;
        let mut object = |base: u64, length: u64| {
            out.source = Source::Object { object: op.key, base };
            out.body_len = length;
        };
        let md5;
        config.keys.push(op.key, &mut self.key);
        let action = match (call, op.kind) {
            (Call::Initiate, _) => {
                exchange.wants = Wants::Text;
                Action::CreateMultipart
            }
            (Call::Part(index), _) => {
                exchange.wants = Wants::Text;
                let base = u64::from(index) * config.object.part_bytes;
                object(base, config.object.part_bytes.min(op.length - base));
                Action::UploadPart { upload_id: &upload.id, number: index + 1 }
            }
            (Call::Complete, _) => {
                exchange.wants = Wants::Text;
                let parts = upload.parts.iter().zip(1u32..);
                let parts = parts.map(|(p, i)| (i, p.etag.as_bytes(), p.checksum.as_bytes()));
                xml::write_complete(parts, config.checksum, &mut out.text);
                Action::CompleteMultipart { upload_id: &upload.id }
            }
            (Call::Abort, _) => Action::AbortMultipart { upload_id: &upload.id },
            (Call::Single, OpKind::Put) => {
                // As a rule there is none; a document under status 200 may say that it failed.
                exchange.wants = Wants::Text;
                object(0, op.length);
                if op.length <= FLAT_BYTES && config.signing != PayloadSigning::Full {
                    config.content.prefetch(op.key, 0, op.length);
                }
                Action::PutObject
            }
            (Call::Single, OpKind::GetRange) => {
                // What a server says of the object's checksum (if it does) is not that of a part of its bytes.
                self.expect_object(&mut exchange, op, None);
                exchange.part_of_checked = config.checksum.is_some();
                Action::GetRange { first: op.offset, last: op.offset + op.length.max(1) - 1 }
            }
            (Call::Single, OpKind::Stat) => {
                exchange.head_request = true;
                Action::HeadObject
            }
            (Call::Single, OpKind::List) => {
                self.prefix.clear();
                config.keys.push_prefix(op.key, &mut self.prefix);
                Action::List {
                    prefix: text(&self.prefix),
                    delimiter: config.object.list_delimiter.as_deref(),
                    max_keys: config.object.list_max_keys,
                    token: None,
                    start_after: None,
                    url_encoding: false,
                }
            }
            (Call::Single, OpKind::Delete) => {
                exchange.wants = Wants::Text;
                Action::DeleteObject
            }
            (Call::Single, OpKind::DeleteBatch) => {
                exchange.wants = Wants::Text;
                self.batch_text(config, op.key, &mut out.text);
                md5 = content_md5(&out.text);
                Action::DeleteObjects { content_md5: &md5 }
            }
            (Call::Single, OpKind::Copy) => {
                exchange.wants = Wants::Text;
                self.source_key.clear();
                std::mem::swap(&mut self.key, &mut self.source_key);
                config.keys.push(config.object.copy_first + n, &mut self.key);
                Action::CopyObject { source: text(&self.source_key) }
            }
            // Everything else that a source may yield reads a whole object.
            (Call::Single, _) => {
                self.expect_object(&mut exchange, op, config.checksum);
                Action::GetObject
            }
        };
        if !out.text.is_empty() {
            out.source = Source::Text;
            out.body_len = out.text.len() as u64;
        }
        let hash;
        let sum;
        let mut body = Body::NONE;
        match out.source {
            Source::None => {}
            Source::Text => {
                hash = sha256_hex(&out.text);
                body = Body::new(out.body_len, PayloadHash::Sha256(&hash));
            }
            Source::Object { object, base } => {
                let content = &*config.content;
                hash = match config.signing {
                    PayloadSigning::Unsigned => [0; 64],
                    PayloadSigning::Pool => match content.known_hash(object, base, out.body_len) {
                        Some(h) => *h,
                        None => hash_of(content, object, base, out.body_len),
                    },
                    PayloadSigning::Full => hash_of(content, object, base, out.body_len),
                };
                let payload = if config.signing == PayloadSigning::Unsigned {
                    PayloadHash::Unsigned
                } else {
                    PayloadHash::Sha256(&hash)
                };
                body = Body::new(out.body_len, payload);
                if let Some(kind) = config.checksum {
                    sum = crc_of(content, kind, object, base, out.body_len);
                    body.checksum = sum.as_bytes();
                    lane.sent_checksum = sum;
                    exchange.sent = Some(kind);
                }
            }
        }
        out.expects = heads.expects_continue(&action, &body);
        heads.write(&mut out.head, &action, &self.key, &body, unix_s);
        exchange
    }

    fn expect_object(&self, exchange: &mut Exchange, op: &Op, checksum: Option<CrcKind>) {
        exchange.expected = op.length;
        exchange.checksum = checksum;
        if self.verify {
            exchange.wants = Wants::Compare { object: op.key, base: op.offset };
        }
    }

    fn batch_text(&mut self, config: &Config, first: u64, out: &mut Vec<u8>) {
        self.batch.clear();
        self.ends.clear();
        for i in 0..u64::from(config.object.delete_batch.max(1)) {
            config.keys.push(first + i, &mut self.batch);
            self.ends.push(self.batch.len());
        }
        let mut from = 0;
        let batch = &self.batch;
        let keys = self.ends.iter().map(|&end| {
            let k = &batch[from..end];
            from = end;
            k
        });
        xml::write_delete(keys, true, out);
    }
}

fn text(key: &[u8]) -> &str {
    // Keys are made of the prefix, which is a String, and hex digits.
    std::str::from_utf8(key).unwrap_or("")
}

fn hash_of(content: &ObjectContent, object: u64, base: u64, length: u64) -> [u8; 64] {
    let mut h = Sha256::default();
    content.each(object, base, length, |p| h.update(p));
    h.finish_hex()
}

fn crc_of(content: &ObjectContent, kind: CrcKind, object: u64, base: u64, length: u64) -> Base64Crc {
    let mut c = Crc::new(kind);
    content.each(object, base, length, |p| c.update(p));
    c.base64()
}
