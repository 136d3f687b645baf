//! Any text is prices or an error; and no prices, with any use of them, break the arithmetic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_cost::{Sent, month, parse, total, used};
use plimsoll_model::OpKind;
use plimsoll_model::plan::SizeDist;
use plimsoll_model::units::Size;

fuzz_target!(|text: &str| {
    let Ok(file) = parse(text) else { return };
    for subject in file.subjects.values() {
        let _ = month(subject, file.month, &file.currency).map(|items| total(&items));
        for n in [0, 1, u64::MAX] {
            let size = SizeDist::Fixed(Size(n >> 1));
            let sent: Vec<Sent> = OpKind::ALL.map(|kind| Sent::new(kind, n.into(), size.clone())).into();
            let _ = used(subject, &sent, n == 1, &file.currency).map(|items| total(&items));
        }
    }
});
