//! The hash of a stream, as it grows.

use xxhash_rust::xxh3::Xxh3Default;

/// XXH3-64. It guards against mistakes, not against malice: who speaks as an agent is the bus's to know.
#[derive(Clone, Default)]
pub struct StreamHash(Xxh3Default);

impl std::fmt::Debug for StreamHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("StreamHash").field(&self.text()).finish()
    }
}

impl StreamHash {
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Of all until now.
    pub fn text(&self) -> String {
        format!("{:016x}", self.0.digest())
    }
}
