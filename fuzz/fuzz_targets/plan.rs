//! Any text is a plan or an error; a plan written out reads back as itself.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_model::Plan;

fuzz_target!(|text: &str| {
    if let Ok(plan) = Plan::from_toml(text) {
        let written = plan.to_toml();
        let again = Plan::from_toml(&written).expect("what was written must be a plan");
        assert_eq!(again.to_toml(), written);
    }
});
