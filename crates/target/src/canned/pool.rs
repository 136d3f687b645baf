//! The bytes that GET answers: made once, shared by all connections, sent from where they are.

/// Bodies longer than this repeat the pool. It should stay in a core's own cache, beside the memory that it is copied to.
const MAX_POOL_BYTES: u64 = 128 << 10;
/// Runs of bytes that one send may be of.
pub(crate) const RUNS: usize = 8;

/// A static body of any length.
#[derive(Debug)]
pub(crate) struct Pool {
    bytes: Vec<u8>,
}

/// Where the bytes of a body are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body<'a> {
    Pool(&'a Pool),
    /// What was PUT.
    Kept(&'a [u8]),
}

impl<'a> Body<'a> {
    /// The longest run of bytes at body offset `offset`, at most `max`.
    pub fn slice(self, offset: u64, max: u64) -> &'a [u8] {
        match self {
            Body::Pool(pool) => pool.slice(offset, max),
            Body::Kept(bytes) => {
                let rest = usize::try_from(offset).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
                &rest[..rest.len().min(usize::try_from(max).unwrap_or(usize::MAX))]
            }
        }
    }
}

/// The runs of bytes of `body` from `offset` on, at most `max` bytes in all.
pub(crate) fn runs(body: Body<'_>, mut offset: u64, mut max: u64) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let run = body.slice(offset, max);
        offset += run.len() as u64;
        max -= run.len() as u64;
        (!run.is_empty()).then_some(run)
    })
    .take(RUNS)
}

impl Pool {
    /// Incompressible bytes (xorshift64*), the same in each run.
    pub fn new(body_bytes: u64) -> Pool {
        let len = body_bytes.clamp(1, MAX_POOL_BYTES) as usize;
        let mut bytes = Vec::with_capacity(len + 8);
        let mut x = 0x9e37_79b9_7f4a_7c15_u64;
        while bytes.len() < len {
            x ^= x >> 12;
            x ^= x << 25;
            x ^= x >> 27;
            bytes.extend_from_slice(&x.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes());
        }
        bytes.truncate(len);
        Pool { bytes }
    }

    /// The longest run of bytes at body offset `offset`, at most `max`.
    pub fn slice(&self, offset: u64, max: u64) -> &[u8] {
        let at = (offset % self.bytes.len() as u64) as usize;
        let n = ((self.bytes.len() - at) as u64).min(max) as usize;
        &self.bytes[at..at + n]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_body_repeats_the_pool() {
        let p = Pool::new(10 << 20);
        assert_eq!(p.slice(0, u64::MAX).len() as u64, MAX_POOL_BYTES);
        assert_eq!(p.slice(MAX_POOL_BYTES + 5, 3), p.slice(5, 3));
        assert_eq!(p.slice(MAX_POOL_BYTES - 1, 100).len(), 1);
        let long: Vec<u8> = runs(Body::Pool(&p), 7, 300_000).flatten().copied().collect();
        assert!(
            long.len() == 300_000 && long.iter().enumerate().all(|(i, b)| *b == p.slice(7 + i as u64, 1)[0])
        );
        assert_eq!(runs(Body::Pool(&p), 0, u64::MAX).count(), RUNS);
        assert_eq!(runs(Body::Kept(b"abc"), 1, 9).collect::<Vec<_>>(), [b"bc"]);
    }
}
