//! LEB128 numbers and a cursor that never reads past its end: the ground of the binary records.

use crate::StoreError;

/// Appends `v` in seven-bit groups, lowest first.
pub fn put_u128(out: &mut Vec<u8>, mut v: u128) {
    while v >= 0x80 {
        out.push((v as u8 & 0x7f) | 0x80);
        v >>= 7;
    }
    out.push(v as u8);
}

/// Seven bits a byte, the lowest first.
pub fn put_u64(out: &mut Vec<u8>, v: u64) {
    put_u128(out, u128::from(v));
}

/// Bytes that are read from the front; each read says what it was for when it fails.
#[derive(Debug)]
pub struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// At the first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Nothing is left.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Bytes.
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// `what`: for the error, if there is none left.
    pub fn u8(&mut self, what: &'static str) -> Result<u8, StoreError> {
        let (first, rest) = self.rest.split_first().ok_or(StoreError::Record(what))?;
        self.rest = rest;
        Ok(*first)
    }

    /// `what`: for the error, if it is cut off or too large.
    pub fn u128(&mut self, what: &'static str) -> Result<u128, StoreError> {
        let mut value = 0u128;
        for shift in (0..126).step_by(7) {
            let byte = self.u8(what)?;
            value |= u128::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        // The nineteenth group holds the last two bits.
        match self.u8(what)? {
            byte @ 0..=3 => Ok(value | (u128::from(byte) << 126)),
            _ => Err(StoreError::Record(what)),
        }
    }

    /// `what`: for the error, if it is cut off or too large.
    pub fn u64(&mut self, what: &'static str) -> Result<u64, StoreError> {
        u64::try_from(self.u128(what)?).map_err(|_| StoreError::Record(what))
    }

    /// `what`: for the error, if it is cut off or too large.
    pub fn u32(&mut self, what: &'static str) -> Result<u32, StoreError> {
        u32::try_from(self.u128(what)?).map_err(|_| StoreError::Record(what))
    }

    /// Passes over a number of any size; `what`: for the error, if it is cut off.
    pub fn pass(&mut self, what: &'static str) -> Result<(), StoreError> {
        while self.u8(what)? & 0x80 != 0 {}
        Ok(())
    }

    /// A count of things that take at least one byte each, so that no count can ask for more memory than there is data.
    pub fn count(&mut self, what: &'static str) -> Result<usize, StoreError> {
        let n = self.u64(what)?;
        if n > self.rest.len() as u64 {
            return Err(StoreError::Record(what));
        }
        Ok(n as usize)
    }

    /// As they are; `what`: for the error, if there are fewer.
    pub fn bytes(&mut self, n: usize, what: &'static str) -> Result<&'a [u8], StoreError> {
        if n > self.rest.len() {
            return Err(StoreError::Record(what));
        }
        let (head, rest) = self.rest.split_at(n);
        self.rest = rest;
        Ok(head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_read_back(v: u128) {
            let mut out = Vec::new();
            put_u128(&mut out, v);
            let mut c = Cursor::new(&out);
            prop_assert_eq!(c.u128("v").unwrap(), v);
            prop_assert!(c.is_empty());
            let mut c = Cursor::new(&out);
            c.pass("v").unwrap();
            prop_assert!(c.is_empty());
            prop_assert!(Cursor::new(&out[..out.len() - 1]).u128("v").is_err());
            prop_assert!(Cursor::new(&out[..out.len() - 1]).pass("v").is_err());
        }

        #[test]
        fn any_bytes_are_a_number_or_an_error(bytes: Vec<u8>) {
            let _ = Cursor::new(&bytes).u128("v");
            let _ = Cursor::new(&bytes).u64("v");
            let _ = Cursor::new(&bytes).count("v");
        }
    }
}
