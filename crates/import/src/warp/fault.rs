//! What warp says of a failed request, as an outcome.

use plimsoll_model::Outcome;

/// Words of an error, in lower case, and what they mean. The first that fits counts.
const WORDS: &[(&str, Outcome)] = &[
    ("slowdown", Outcome::Http503SlowDown),
    ("slow down", Outcome::Http503SlowDown),
    ("reduce your request rate", Outcome::Http503SlowDown),
    ("503 service unavailable", Outcome::Http503SlowDown),
    ("resource requested is temporarily unavailable", Outcome::Http503SlowDown),
    ("too many requests", Outcome::Http429),
    ("toomanyrequests", Outcome::Http429),
    ("429", Outcome::Http429),
    ("access denied", Outcome::Http403),
    ("accessdenied", Outcome::Http403),
    ("forbidden", Outcome::Http403),
    ("does not exist", Outcome::Http404),
    ("nosuchkey", Outcome::Http404),
    ("not found", Outcome::Http404),
    ("deadline exceeded", Outcome::Timeout),
    ("timeout", Outcome::Timeout),
    ("timed out", Outcome::Timeout),
    ("connection refused", Outcome::NoConnection),
    ("no such host", Outcome::NoConnection),
    ("no route to host", Outcome::NoConnection),
    ("network is unreachable", Outcome::NoConnection),
    ("connection reset", Outcome::Reset),
    ("broken pipe", Outcome::Reset),
    ("unexpected eof", Outcome::ShortBody),
    ("unexpected download size", Outcome::ShortBody),
    ("short", Outcome::ShortBody),
    ("eof", Outcome::Reset),
    ("storage full", Outcome::NoSpace),
    ("storagefull", Outcome::NoSpace),
    ("quota", Outcome::NoSpace),
    ("internal error", Outcome::Http5xx),
    ("internalerror", Outcome::Http5xx),
    ("bad gateway", Outcome::Http5xx),
    ("gateway time-out", Outcome::Http5xx),
];

/// How a request ended. An error in words that nobody has listed is one of the protocol: its words are kept beside the count.
pub(super) fn outcome(error: &str) -> Outcome {
    if error.is_empty() {
        return Outcome::Ok;
    }
    let said = error.to_lowercase();
    WORDS.iter().find(|(word, _)| said.contains(word)).map_or(Outcome::Protocol, |(_, o)| *o)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_from_failures() {
        assert_eq!(outcome(""), Outcome::Ok);
        assert_eq!(outcome("Please reduce your request rate."), Outcome::Http503SlowDown);
        assert_eq!(
            outcome("Get \"http://h:1/b\": dial tcp 10.0.0.1:9: connect: connection refused"),
            Outcome::NoConnection
        );
        assert_eq!(outcome("We encountered an internal error, please try again."), Outcome::Http5xx);
        assert_eq!(outcome("The specified key does not exist."), Outcome::Http404);
        assert_eq!(outcome("whatever else"), Outcome::Protocol);
    }
}
