//! Receives that wait for more than the first byte: whatever the server does after it was fast, nothing is waited for in
//! vain, and nothing is counted that did not come.

use plimsoll_model::{OpKind, Outcome};

use super::server::{Reply, Server, http};
use super::{Case, op};

const BYTES: usize = 1 << 20;

/// The answer to the `n`-th request: fast and whole, but for a few.
fn reply(n: usize) -> Reply {
    let whole = http("200 OK", "", &[7; BYTES]);
    match n {
        // Comes in pieces of a sixteenth: far less than was waited for.
        3 => Reply::Pieces(whole.chunks(BYTES / 16).map(<[u8]>::to_vec).collect()),
        // Ends in the middle.
        5 => Reply::Close(whole[..BYTES / 2].to_vec()),
        // Breaks in the middle.
        8 => Reply::Reset(whole[..BYTES / 2].to_vec()),
        _ => Reply::Bytes(whole),
    }
}

#[test]
fn bodies_that_stop_being_fast() {
    let asked = std::sync::Mutex::new(0);
    let server = Server::start(move |_| {
        let mut n = asked.lock().unwrap();
        *n += 1;
        // Both rings see the same.
        reply((*n - 1) % 12)
    });
    let ops = vec![op(OpKind::Get, 1, BYTES as u64); 12];
    Case::new(&[&server]).run_both(&ops, |ran| {
        let mut want = [Outcome::Ok; 12];
        want[5] = Outcome::ShortBody;
        want[8] = Outcome::Reset;
        assert_eq!(ran.outcomes(), want, "{:?}", ran.log);
        let whole = 10 * BYTES as u64;
        assert!((whole..=whole + BYTES as u64).contains(&ran.moved), "{}", ran.moved);
        assert_eq!(ran.log.reconnects, 2);
    });
}

#[test]
fn a_server_that_falls_silent_in_mid_body_is_left_at_the_time_out() {
    let server = Server::start(|r| {
        let whole = http("200 OK", "", &[7; BYTES]);
        if r.on_connection < 4 {
            return Reply::Bytes(whole);
        }
        // The rest never comes: the client's next request does not either.
        Reply::Bytes(whole[..BYTES / 2].to_vec())
    });
    let mut case = Case::new(&[&server]);
    case.cancel_after_ms = Some(1500);
    case.run_both(&[op(OpKind::Get, 1, BYTES as u64); 5], |ran| {
        assert_eq!(ran.outcomes()[..4], [Outcome::Ok; 4], "{:?}", ran.log);
        assert_eq!(ran.outcomes()[4], Outcome::Timeout, "{:?}", ran.log);
    });
}
