//! Fetches what agents kept of a run: from those that are there, by number of frame, until all of a stage is there and its hash is theirs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use plimsoll_bus::subjects::{Subjects, agent_of};
use plimsoll_bus::{Bus, Identity, Subscription};
use plimsoll_crew::{CrewError, FromAgent};
use plimsoll_engine::ring::monotonic_ns;
use plimsoll_model::Event;
use plimsoll_run::{AgentFetched, Ask, Lacking, StageFetched};
use plimsoll_setup::SetupError;

use super::known::LONGEST_TELL;
use super::link::ORDER_LIFE;
use super::listen::gone;
use super::roll_call::{Present, roll_call};
use crate::frame::envelope;
use crate::frame::incoming::Incoming;
use crate::wire::order::{FetchKept, Order};
use crate::wire::pieces::{self, Joiner};
use crate::wire::seal::Envelope;
use crate::wire::tell::{AgentTold, KeptStage, Tell};
use crate::wire::{VERSION, language};

/// Agents say twice a second that they are there.
const LISTEN: Duration = Duration::from_millis(1200);
/// An agent that was lost and is back may still be ending its load: a run's end waits so long for it. (Its drain, and a bit.)
const BACK: Duration = Duration::from_secs(8);
/// And all of it may take so long there: the rest is for `fleet collect`. (A choice.)
const AT_THE_END: Duration = Duration::from_secs(60);
/// It is told who is waited for so often.
const TELL: Duration = Duration::from_secs(5);
/// A question that was not answered is asked again.
const AGAIN: Duration = Duration::from_millis(250);
/// An agent of which nothing has come for so long does not answer. (Its whole file is read before its first answer.)
const SILENT: Duration = Duration::from_secs(30);
/// No agent keeps more frames of a stage: each is of a quarter of a second at least, or of a quarter of a megabyte.
const FRAMES: u64 = 1 << 28;

/// Questions are told apart over all collections of this process.
static QUESTIONS: AtomicU64 = AtomicU64::new(1);

/// Where agents are spoken to.
pub struct SpokenLine<'a> {
    pub bus: &'a Arc<dyn Bus>,
    pub subjects: &'a Subjects,
    pub identity: &'a Identity,
}

/// See the module.
pub fn fetch_kept(line: &SpokenLine<'_>, ask: Ask<'_>) -> Result<Vec<AgentFetched>, CrewError> {
    let Ask { run, lacking, patient, interrupt, tell, take } = ask;
    let mut all = Vec::new();
    let begun = Instant::now();
    let mut told = Instant::now();
    let mut waiting: Vec<&Lacking> = lacking.iter().collect();
    let over = || match patient {
        true => interrupt.is_requested().then_some("interrupted"),
        false => (begun.elapsed() > AT_THE_END)
            .then_some("it took too long: plimsoll fleet collect fetches the rest"),
    };
    while !waiting.is_empty() {
        let names: Vec<&str> = waiting.iter().map(|l| l.agent.as_str()).collect();
        let is_there = |p: &Present| names.contains(&p.name.as_str());
        let enough = |there: &[Present]| there.iter().filter(|p| is_there(p)).count() == names.len();
        let present = roll_call(line.bus.as_ref(), line.subjects, LISTEN, &enough).map_err(gone)?;
        let mut busy = Vec::new();
        for of in std::mem::take(&mut waiting) {
            let there = present.iter().find(|p| p.name == of.agent);
            let result = match there {
                None => Err("it is not there".to_owned()),
                Some(p) if p.is_foreign().is_some() => {
                    Err(format!("it speaks another version than '{}'", language()))
                }
                Some(p) if p.is_free() => Talk::new(line, p, run, &over).map_err(gone)?.fetch(of, take),
                // It ends by itself, without a conductor.
                Some(p) if p.run.as_deref() == Some(run) && (patient || begun.elapsed() < BACK) => {
                    busy.push(format!("{} ({})", p.name, p.state()));
                    waiting.push(of);
                    continue;
                }
                Some(p) => Err(format!("it is at work for {}", p.run.as_deref().unwrap_or("another run"))),
            };
            // From one start of a machine to the next this is the same.
            let is_known = |p: &&Present| ![&of.boot_id, &p.machine().boot_id].contains(&&String::new());
            let went_down = there.filter(is_known).map(|p| p.machine().boot_id != of.boot_id);
            all.push(AgentFetched { number: of.number, went_down, result });
        }
        if !busy.is_empty() {
            if told.elapsed() > TELL {
                told = Instant::now();
                tell(Event::Doing(format!("fetching records: waiting for {}", busy.join(", "))));
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        if interrupt.is_requested() && patient {
            return Err(SetupError::Interrupted.into());
        }
    }
    Ok(all)
}

/// With one agent, about one run.
struct Talk<'a> {
    line: &'a SpokenLine<'a>,
    run: &'a str,
    name: String,
    session: String,
    sequence: u64,
    /// Its clock less ours, about.
    about_ahead_ns: i128,
    tells: Subscription,
    frames: Subscription,
    joiner: Joiner,
    /// Why nothing more is waited for, if so.
    over: &'a dyn Fn() -> Option<&'static str>,
}

impl<'a> Talk<'a> {
    fn new(
        line: &'a SpokenLine<'a>,
        p: &Present,
        run: &'a str,
        over: &'a dyn Fn() -> Option<&'static str>,
    ) -> Result<Self, plimsoll_bus::BusError> {
        Ok(Self {
            line,
            run,
            over,
            name: p.name.clone(),
            session: p.session.clone(),
            sequence: p.here.last_order,
            about_ahead_ns: i128::from(p.here.monotonic_ns) - i128::from(p.heard_ns),
            tells: line.bus.subscribe(&line.subjects.tells())?,
            frames: line.bus.subscribe(&line.subjects.frames())?,
            joiner: Joiner::up_to(LONGEST_TELL),
        })
    }

    fn ask(&mut self, fetch: FetchKept) -> Result<(), String> {
        let question = fetch.question;
        self.sequence = self.sequence.checked_add(1).ok_or("it counts orders that nobody gave")?;
        let until_ns = i128::from(monotonic_ns()) + self.about_ahead_ns + ORDER_LIFE.as_nanos() as i128;
        let envelope = Envelope {
            version: VERSION,
            run: self.run.to_owned(),
            to: self.session.clone(),
            sequence: self.sequence,
            until_ns: u64::try_from(until_ns).unwrap_or(0),
            order: Order::Fetch(fetch),
        };
        let subject = self.line.subjects.order(&self.name);
        let sealed = envelope.sealed(self.line.identity);
        for piece in pieces::split(question, &sealed, self.line.bus.largest()) {
            // What is lost is asked for again.
            let _ = self.line.bus.publish(&subject, &piece);
        }
        Ok(())
    }

    fn fetch(
        mut self,
        of: &Lacking,
        take: &mut dyn FnMut(u32, u32, FromAgent) -> Result<(), String>,
    ) -> Result<Vec<StageFetched>, String> {
        let kept = self.what_there_is()?;
        if kept.is_empty() {
            return Err("it kept nothing of the run, or not for this conductor".into());
        }
        let mut all = Vec::new();
        for there in kept {
            let Some(lacking) = of.stages.get(&there.stage) else { continue };
            // Frames of the same number and hash are in the record.
            let is_had = lacking.had.as_ref() == Some(&(there.frames, there.hash.clone()));
            if is_had {
                let KeptStage { stage, frames, hash } = there;
                all.push(StageFetched { stage, frames, hash, ends: None });
            } else {
                all.push(self.stage(of.number, there, take)?);
            }
        }
        Ok(all)
    }

    fn unless_over(&self) -> Result<(), String> {
        (self.over)().map_or(Ok(()), |why| Err(why.to_owned()))
    }

    /// By stage.
    fn what_there_is(&mut self) -> Result<Vec<KeptStage>, String> {
        let question = QUESTIONS.fetch_add(1, Ordering::Relaxed);
        let (begun, mut asked) = (Instant::now(), None::<Instant>);
        while begun.elapsed() < SILENT {
            self.unless_over()?;
            // It reads its whole file for each: not to be asked for it again and again.
            if asked.is_none_or(|at| at.elapsed() > AGAIN * 8) {
                self.ask(FetchKept { question, stage: None, missing: Vec::new(), from: 0 })?;
                asked = Some(Instant::now());
            }
            let Some(message) = self.tells.next(AGAIN) else { continue };
            if agent_of(&message.subject) != self.name {
                continue;
            }
            let bytes = self
                .joiner
                .offer(&message.payload)
                .map_err(|e| format!("what it says cannot be read: {e}"))?;
            let Some(told) = bytes.and_then(|b| serde_json::from_slice::<AgentTold>(&b).ok()) else {
                continue;
            };
            if told.session != self.session || told.version != VERSION {
                continue;
            }
            if let Tell::Kept { question: of, result } = told.tell
                && of == question
            {
                return result.map_err(|refusal| refusal.problem);
            }
        }
        Err(format!("it did not answer within {} s", SILENT.as_secs()))
    }

    /// Frames until all are there.
    fn stage(
        &mut self,
        number: u32,
        there: KeptStage,
        take: &mut dyn FnMut(u32, u32, FromAgent) -> Result<(), String>,
    ) -> Result<StageFetched, String> {
        let KeptStage { stage, frames, hash } = there;
        if frames > FRAMES {
            return Err(format!("it tells of {frames} frames"));
        }
        let mut incoming = Incoming::new(number);
        let mut progress = Instant::now();
        let mut asked: Option<(Instant, u64)> = None;
        while incoming.in_order() < frames {
            self.unless_over()?;
            let (missing, from) = incoming.wanted();
            // Again where nothing came for a while; at once where all that was asked for is there.
            let is_due = |(at, then): (Instant, u64)| {
                at.elapsed() >= AGAIN || (missing.is_empty() && from >= then + AT_ONCE)
            };
            if asked.is_none_or(is_due) {
                let question = QUESTIONS.fetch_add(1, Ordering::Relaxed);
                self.ask(FetchKept { question, stage: Some(stage), missing, from })?;
                asked = Some((Instant::now(), from));
            }
            if progress.elapsed() > SILENT {
                return Err(format!("it fell silent at frame {} of {frames}", incoming.in_order()));
            }
            let Some(message) = self.frames.next(Duration::from_millis(20)) else { continue };
            if agent_of(&message.subject) != self.name {
                continue;
            }
            let Some((head, content)) = envelope::decode(&message.payload) else { continue };
            if head.session != self.session
                || head.run != self.run
                || head.stage != stage
                || head.number >= frames
            {
                continue;
            }
            let before = incoming.in_order();
            incoming.accept(head.number, content);
            while let Some(output) = incoming.next_output() {
                take(number, stage, output)?;
            }
            if let Some(why) = incoming.broken() {
                return Err(format!("what it kept cannot be read: {why}"));
            }
            if incoming.in_order() > before {
                progress = Instant::now();
            }
        }
        if incoming.content_hash() != hash {
            return Err("what came has another hash than what it kept".into());
        }
        Ok(StageFetched { stage, frames, hash, ends: incoming.end().map(<[_]>::to_vec) })
    }
}

/// So many frames come for one question.
const AT_ONCE: u64 = crate::agent::AT_ONCE as u64;
