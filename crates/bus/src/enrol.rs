//! How a machine joins: it makes a key of its own, asks with the token's secret that this key be let in under a name, and comes
//! back with that key. Its private half never leaves the machine; the token's secret opens nothing but this question.

use std::time::{Duration, Instant, SystemTime};

use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::key::{is_user_key, random};
use crate::subjects::{Subjects, check_name};
use crate::token::{Secret, Token};
use crate::{Broker, Bus, BusError, Caller, Identity, Login, NatsBus, Speaks, Subscription, signed_by};

/// Of question and answer; another one is another format.
pub const VERSION: u32 = 1;
/// The longest question, several times over: what is longer is not looked at.
pub const LONGEST_QUESTION: usize = 2_048;
/// Of a nonce.
pub const NONCE_BYTES: usize = 16;
/// How long the keeper may take: with a thousand agents at once, it is busy.
const PATIENCE: Duration = Duration::from_secs(60);
/// A question without an answer is asked again.
const AGAIN: Duration = Duration::from_secs(5);
/// And one whose answer was to come again: so often. (The keeper waits for its broker for some seconds each time.)
const COME_AGAIN: u32 = 4;

/// "Let this key in, under this name."
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// [`VERSION`].
    pub version: u32,
    /// The agent's name.
    pub name: String,
    /// The public half of its key.
    pub key: String,
    /// Random, and never used twice: a question that was overheard cannot be asked again.
    pub nonce: String,
    /// Who asks knows the secret (HMAC-SHA-256, base64).
    pub proof: String,
    /// Who asks holds the key (Ed25519, base64).
    pub signature: String,
    /// What it will be spoken to in. (An older agent does not say it.)
    #[serde(default)]
    pub speaks: Speaks,
}

/// The keeper's answer. There is no secret in it: whoever holds the token can hear it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnrolAnswer {
    /// [`VERSION`].
    pub version: u32,
    /// Of the question.
    pub nonce: String,
    /// Why not; none where the key is let in.
    pub refused: Option<String>,
    /// It is not for good: the broker was too busy, or could not read its configuration just then. (An older keeper never says so.)
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
}

impl Question {
    /// Asks for `identity`, under `name`, in the fleet that the secret belongs to.
    pub fn new(fleet: &str, secret: &Secret, identity: &Identity, name: &str) -> Result<Self, BusError> {
        let nonce = STANDARD.encode(random::<NONCE_BYTES>()?);
        let said = said(fleet, name, &identity.public(), &nonce);
        let proof = STANDARD.encode(hmac::sign(&prover(secret), &said));
        let signature = STANDARD.encode(identity.sign(&said));
        let (name, key, speaks) = (name.to_owned(), identity.public(), Speaks::default());
        Ok(Self { version: VERSION, name, key, nonce, proof, signature, speaks })
    }

    /// Of an agent that is spoken to in this language.
    pub fn speaking(self, speaks: &Speaks) -> Self {
        Self { speaks: speaks.clone(), ..self }
    }

    /// Its nonce; none where it has another length than ours have.
    pub fn nonce_bytes(&self) -> Option<[u8; NONCE_BYTES]> {
        const LENGTH: usize = NONCE_BYTES.div_ceil(3) * 4;
        let text = (self.nonce.len() == LENGTH).then_some(&self.nonce)?;
        STANDARD.decode(text).ok()?.try_into().ok()
    }

    /// Whether it is whole, and by somebody who knows the secret and holds the key, whom the fleet can speak to (`ours`). The words are the
    /// newcomer's to read.
    pub fn check(&self, fleet: &str, secret: &Secret, ours: &Speaks) -> Result<(), String> {
        if self.version != VERSION {
            return Err(format!(
                "it speaks version {} of the enrolment, the fleet {VERSION}: use the same version of plimsoll",
                self.version
            ));
        }
        check_name("agent", &self.name).map_err(|e| e.to_string())?;
        if !is_user_key(&self.key) || self.nonce_bytes().is_none() {
            return Err("its question has not the form of one: use the same version of plimsoll".to_owned());
        }
        let said = said(fleet, &self.name, &self.key, &self.nonce);
        let decoded = |text: &str| STANDARD.decode(text).unwrap_or_default();
        hmac::verify(&prover(secret), &said, &decoded(&self.proof)).map_err(|_| {
            "it does not know this fleet's secret: take the token of `plimsoll fleet token`".to_owned()
        })?;
        if !signed_by(&self.key, &said, &decoded(&self.signature)) {
            return Err("it does not hold the key that it names".to_owned());
        }
        if self.speaks.is_foreign_to(ours) {
            return Err(format!(
                "it is {}, and the fleet was started by {}: use the same version of plimsoll on all machines",
                self.speaks.words(),
                ours.words()
            ));
        }
        Ok(())
    }
}

fn prover(secret: &Secret) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, &secret.0)
}

/// What is proved and signed: names and keys have no zero bytes in them, so that no two of these are alike.
fn said(fleet: &str, name: &str, key: &str, nonce: &str) -> Vec<u8> {
    ["plimsoll enrolment 1", fleet, name, key, nonce].join("\0").into_bytes()
}

/// The key with which newcomers reach the broker: all who hold the secret come to the same.
pub fn newcomer(secret: &Secret) -> Result<Identity, BusError> {
    let made = hmac::sign(&prover(secret), b"plimsoll newcomer 1");
    let mut bytes = [0; 32];
    bytes.copy_from_slice(made.as_ref());
    Identity::from_secret(bytes)
}

/// An agent that is in.
#[derive(Debug)]
pub struct Joined {
    /// Its connection.
    pub bus: NatsBus,
    /// Its own key.
    pub identity: Identity,
    /// Its name, under which it is ordered and listened to.
    pub name: String,
    /// The fleet's subjects.
    pub subjects: Subjects,
    /// Whose orders count.
    pub conductor: String,
    /// Any message here is the keeper's last word: the fleet is over.
    pub over: Subscription,
}

/// Joins the token's fleet under `name`, with a new key, without a word on what it speaks.
pub fn join(token: &Token, name: &str) -> Result<Joined, BusError> {
    join_as(token, name, Identity::random(), &Speaks::default())
}

/// The same as one that is spoken to in this language, and on a broker of somebody else's as the guest that `login` says.
pub fn join_with(token: &Token, name: &str, login: &Login, speaks: &Speaks) -> Result<Joined, BusError> {
    if token.trust.is_own() {
        join_as(token, name, Identity::random(), speaks)
    } else {
        join_there(token, name, login)
    }
}

/// A broker that was there before asks nobody for a token of ours. That a name is taken is seen by who has it: agents say twice a second
/// that they are there.
fn join_there(token: &Token, name: &str, login: &Login) -> Result<Joined, BusError> {
    const LISTEN: Duration = Duration::from_millis(1_300);
    check_name("agent", name)?;
    token.check_time(SystemTime::now())?;
    let (subjects, identity) = (Subjects::of(&token.fleet)?, Identity::random());
    let broker = Broker { addresses: token.addresses.clone(), trust: token.trust };
    let bus = NatsBus::connect_as(&broker, Caller::Guest(login, &identity), name)?;
    if bus.subscribe(&subjects.tell(name))?.next(LISTEN).is_some() {
        return Err(BusError::refused(
            format!("fleet {} does not take {name} in: another agent has this name", token.fleet),
            "Give --name",
        ));
    }
    let user = subjects.of_agent(name);
    // An empty echo answers no question; an empty word of an agent would be one that cannot be read.
    bus.check_allowed(&[subjects.clock_echo(name)], &user.subscribe)?;
    let over = bus.subscribe(&subjects.over())?;
    Ok(Joined { bus, identity, name: name.to_owned(), subjects, conductor: token.conductor.clone(), over })
}

/// The same with a key that is there already: an agent that lost its connection for good comes back as itself.
pub fn join_as(token: &Token, name: &str, identity: Identity, speaks: &Speaks) -> Result<Joined, BusError> {
    check_name("agent", name)?;
    token.check_time(SystemTime::now())?;
    let subjects = Subjects::of(&token.fleet)?;
    let broker = Broker { addresses: token.addresses.clone(), trust: token.trust };
    ask(token, &subjects, &broker, &identity, (name, speaks))?;
    let bus = NatsBus::connect(&broker, &identity, name)?;
    let over = bus.subscribe(&subjects.over())?;
    Ok(Joined { bus, identity, name: name.to_owned(), subjects, conductor: token.conductor.clone(), over })
}

/// Asks until there is an answer.
fn ask(
    token: &Token,
    subjects: &Subjects,
    broker: &Broker,
    identity: &Identity,
    (name, speaks): (&str, &Speaks),
) -> Result<(), BusError> {
    let newcomer = newcomer(&token.secret)?;
    let until = Instant::now() + PATIENCE;
    let (mut tried, mut sent_away) = (0, 0);
    // An answer to any of them counts: one that comes late is as good.
    let mut nonces = Vec::new();
    loop {
        tried += 1;
        // Each time anew: a door that was shut meanwhile says so to those who come, not to those who wait.
        let asked = NatsBus::connect(broker, &newcomer, &format!("newcomer {name}"))
            .and_then(|door| ask_once(&door, token, subjects, identity, (name, speaks), &mut nonces));
        match asked {
            // A thousand at once, and the broker did not take all of them in time.
            Ok(Some(_)) if sent_away < COME_AGAIN && Instant::now() < until => sent_away += 1,
            Ok(Some(why)) => return Err(refused(token, name, &why)),
            Ok(None) => return Ok(()),
            // A keeper or a broker with a crowd at its door is slow; one that was never there does not come.
            Err(BusError::Busy | BusError::Closed) if Instant::now() < until => {}
            Err(BusError::Unreachable { .. }) if tried > 1 && Instant::now() < until => {}
            Err(BusError::Busy | BusError::Closed) => return Err(no_keeper(token)),
            Err(e) => return Err(e),
        }
    }
}

fn refused(token: &Token, name: &str, why: &str) -> BusError {
    BusError::refused(
        format!("fleet {} does not take {name} in: {why}", token.fleet),
        "Change that, and join again",
    )
}

fn no_keeper(token: &Token) -> BusError {
    BusError::unreachable(
        format!("the broker of fleet {} answers, but its keeper does not", token.fleet),
        "See `plimsoll fleet status` where the fleet was started",
    )
}

/// Asks, and waits for the answer for a while; [`BusError::Busy`]: none came. Gives why it is to be asked again, if it is.
fn ask_once(
    door: &NatsBus,
    token: &Token,
    subjects: &Subjects,
    identity: &Identity,
    (name, speaks): (&str, &Speaks),
    nonces: &mut Vec<String>,
) -> Result<Option<String>, BusError> {
    let answers = door.subscribe(&subjects.enrolled(&identity.public()))?;
    let question = Question::new(&token.fleet, &token.secret, identity, name)?.speaking(speaks);
    // Plain texts and a number: nothing in them can fail.
    let text = serde_json::to_vec(&question).expect("a question is plain data");
    door.publish(&subjects.enrol(), &text)?;
    nonces.push(question.nonce);
    let answer = heard(&answers, nonces).ok_or(BusError::Busy)?;
    match answer.refused {
        None => Ok(None),
        Some(why) if answer.again => Ok(Some(why)),
        Some(why) => Err(refused(token, name, &why)),
    }
}

/// The answer to one of these questions, within the time that it may take.
fn heard(answers: &Subscription, nonces: &[String]) -> Option<EnrolAnswer> {
    let until = Instant::now() + AGAIN;
    loop {
        let message = answers.next(until.saturating_duration_since(Instant::now()))?;
        match serde_json::from_slice::<EnrolAnswer>(&message.payload) {
            Ok(answer) if nonces.contains(&answer.nonce) => return Some(answer),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: Secret = Secret([5; 32]);

    fn question() -> Question {
        Question::new("demo", &SECRET, &Identity::random(), "lg-1").unwrap()
    }

    #[test]
    fn who_knows_the_secret_and_holds_the_key_is_believed() {
        question().check("demo", &SECRET, &Speaks::default()).unwrap();
        assert_ne!(question().nonce, question().nonce);
    }

    #[test]
    fn anything_else_is_refused_in_words() {
        let why = |q: &Question| q.check("demo", &SECRET, &Speaks::default()).unwrap_err();
        let good = question();
        let other = Identity::random().public();
        assert!(good.check("demo", &Secret([6; 32]), &Speaks::default()).unwrap_err().contains("secret"));
        assert!(good.check("other", &SECRET, &Speaks::default()).unwrap_err().contains("secret"));
        assert!(why(&Question { name: "lg-2".into(), ..good.clone() }).contains("secret"));
        assert!(why(&Question { key: other, ..good.clone() }).contains("secret"));
        assert!(why(&Question { name: "a.b".into(), ..good.clone() }).contains("cannot be the name"));
        assert!(why(&Question { version: 2, ..good.clone() }).contains("same version"));
        for nonce in ["", "fresh", &"A".repeat(100_000), &good.nonce[..20], &"?".repeat(24)] {
            assert!(why(&Question { nonce: nonce.into(), ..good.clone() }).contains("form"), "{nonce:.30}");
        }
        for key in ["", "*", &"U".repeat(100_000)] {
            assert!(why(&Question { key: key.into(), ..good.clone() }).contains("form"), "{key:.30}");
        }
        assert!(why(&Question { name: "a".repeat(100_000), ..good.clone() }).len() < 1_000);
        let stolen = Question { signature: question().signature, ..good.clone() };
        assert!(why(&stolen).contains("does not hold the key"));
        assert!(why(&Question { signature: "?".into(), ..good }).contains("does not hold the key"));
    }

    /// Both ways, as either may be the newer one; who does not say it is older than the question, and is named by the roll call.
    #[test]
    fn another_version_is_refused_by_name_at_the_door() {
        let speaks = |n: u32| Speaks { language: format!("fleet {n}, plan 1"), program: format!("0.{n}.0") };
        let check = |its: &Speaks, ours: &Speaks| question().speaking(its).check("demo", &SECRET, ours);
        for (its, ours) in [(1, 2), (2, 1)] {
            let why = check(&speaks(its), &speaks(ours)).unwrap_err();
            let agent = format!("it is plimsoll 0.{its}.0, which speaks 'fleet {its}, plan 1'");
            assert!(why.starts_with(&agent) && why.contains(&format!("0.{ours}.0, which")), "{why}");
            assert!(why.contains("same version of plimsoll on all machines"), "{why}");
        }
        check(&speaks(2), &speaks(2)).unwrap();
        check(&Speaks::default(), &speaks(2)).unwrap();
        let of_before = r#"{"version":1,"name":"a","key":"U","nonce":"","proof":"","signature":""}"#;
        let read: Question = serde_json::from_str(of_before).unwrap();
        assert_eq!(read.speaks, Speaks::default());
        let longest = question().speaking(&Speaks { language: "x".repeat(200), program: "y".repeat(60) });
        assert!(serde_json::to_vec(&longest).unwrap().len() < LONGEST_QUESTION);
    }

    #[test]
    fn all_newcomers_of_a_token_have_one_key_and_of_another_another() {
        let key = |s| newcomer(&Secret(s)).unwrap().public();
        assert_eq!(key([1; 32]), key([1; 32]));
        assert_ne!(key([1; 32]), key([2; 32]));
    }
}
