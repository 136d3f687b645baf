//! What goes into one exchange, and what comes out of it.

use plimsoll_model::Outcome;
use plimsoll_s3::CrcKind;
use plimsoll_s3::response::Malformed;

use super::config::ResolvedEndpoint;
use super::conn::Conn;
use super::content::ObjectContent;
use crate::ring::{Ring, Token};

pub(super) const TAG_CONNECT: u32 = 0;
pub(super) const TAG_SEND: u32 = 1;
pub(super) const TAG_RECEIVE: u32 = 2;

/// What is done with the body of a successful answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wants {
    /// Counted and thrown away, in the kernel where that is possible.
    Nothing,
    /// Kept: it is XML that says how the op went.
    Text,
    /// An object's bytes from `base` on, to be compared.
    Compare { object: u64, base: u64 },
}

/// What a lane is asked to do, beside what is in its [`Outgoing`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Exchange {
    pub head_request: bool,
    pub wants: Wants,
    /// Bytes of body expected; 0 when that is not known.
    pub expected: u64,
    /// Check the body against the answer's checksum.
    pub checksum: Option<CrcKind>,
    /// The object's checksum is asked for, but only a part of it comes: there is nothing to hold it against.
    pub part_of_checked: bool,
    /// The request carries this checksum of its body: a server that checked it says it back.
    pub sent: Option<CrcKind>,
}

impl Exchange {
    pub const IDLE: Self = Self {
        head_request: false,
        wants: Wants::Nothing,
        expected: 0,
        checksum: None,
        part_of_checked: false,
        sent: None,
    };
}

/// How an exchange ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// A complete answer: see the lane's parser, counts and text.
    Answered,
    Failed(Outcome, Why),
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    Connect(i32),
    Socket,
    Send(i32),
    Receive(i32),
    Malformed(Malformed),
    /// The body goes on behind what was asked for.
    TooLong,
    Tls,
    Cancelled,
}

/// What one completion came to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Progress {
    /// Body bytes, sent or received.
    pub moved: u64,
    /// The head of the answer came with this.
    pub head: bool,
    pub ended: Option<Ended>,
    pub reconnected: bool,
}

impl Progress {
    pub const NOTHING: Self = Self { moved: 0, head: false, ended: None, reconnected: false };
}

/// What a lane needs from outside for each step.
pub(super) struct Side<'a, R> {
    pub ring: &'a mut R,
    pub conn: &'a mut Conn,
    pub server: &'a ResolvedEndpoint,
    pub content: &'a ObjectContent,
    pub slot: u32,
    /// Number of the lane in its slot.
    pub lane: u32,
}

impl<R: Ring> Side<'_, R> {
    pub fn token(&self, kind: u32) -> Token {
        Token::new(self.slot, self.lane << 2 | kind)
    }
}
