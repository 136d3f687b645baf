//! What a newcomer sends to a fleet's keeper, what comes back, and the line that a person pastes: read or refused, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_bus::Speaks;
use plimsoll_bus::enrol::{EnrolAnswer, Question};
use plimsoll_bus::token::{Secret, Token};

fuzz_target!(|data: &[u8]| {
    if let Ok(question) = serde_json::from_slice::<Question>(data) {
        assert!(
            question.check("demo", &Secret([7; 32]), &Speaks::default()).is_err(),
            "nobody guesses a secret"
        );
    }
    let _ = serde_json::from_slice::<EnrolAnswer>(data);
    let text = String::from_utf8_lossy(data);
    let _ = Token::parse(&text);
    let _ = Token::parse(&format!("plimsoll-join-{text}"));
});
