//! Uploads that were acknowledged and of which nothing is listed when the run cleans up.

use plimsoll_model::{Finding, Level, OpKind, Series};

/// What the servers acknowledged in the measured windows of all stages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Acknowledged {
    uploads: u64,
    /// Where the run itself deletes, nothing needs to be left.
    deletes: u64,
}

impl Acknowledged {
    pub fn add(&mut self, series: &[Series]) {
        for s in series {
            match s.id.kind {
                OpKind::Put | OpKind::Multipart | OpKind::Copy => self.uploads += s.ok(),
                OpKind::Delete | OpKind::DeleteBatch => self.deletes += s.ok(),
                _ => {}
            }
        }
    }

    /// `removed`: objects beside the marker that cleaning up found, where it came to its end. Keys may be written again and
    /// again, so that only none at all can be held against what was acknowledged.
    pub fn finding(&self, removed: Option<u64>) -> Option<Finding> {
        if self.uploads == 0 || self.deletes > 0 || removed != Some(0) {
            return None;
        }
        let text = format!(
            "The server acknowledged at least {} uploads, but listed none of these objects when the run cleaned up: \
             it did not store them, its listing omits them, or somebody else removed them. No write rate follows \
             from this.",
            self.uploads
        );
        Some(Finding::new("F68", "uploads_lost", Level::Invalid, text).measured(self.uploads as f64, 0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_none_at_all_of_what_nobody_deletes_is_a_loss() {
        let puts = Acknowledged { uploads: 8255, deletes: 0 };
        let f = puts.finding(Some(0)).unwrap();
        assert!(f.level == Level::Invalid && f.text.contains("8255 uploads"), "{f:?}");
        assert_eq!(puts.finding(Some(1)), None);
        assert_eq!(puts.finding(None), None, "cleaning up did not come to its end");
        assert_eq!(Acknowledged { uploads: 5, deletes: 1 }.finding(Some(0)), None);
        assert_eq!(Acknowledged::default().finding(Some(0)), None);
    }
}
