//! Times of day: each block of a campaign has one of those that the file names, in turn, so that the repeats of a cell are spread over
//! them. Pure: the clock is handed in.
//!
//! A named time holds until the next one. A block begins at its time; where the block before it ended late, within it. What of a block was
//! not begun while its time held waits for that time of another day, so that a run is of the time that its record names.

use std::collections::BTreeMap;

use jiff::civil::Time;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Zoned};
use serde::{Deserialize, Serialize};

use crate::check::{CampaignError, wrong};
use crate::file::CampaignFile;

/// Label of runs, and axis of tables.
pub const TIME_AXIS: &str = "time";
/// More of a day are a load that never ends.
const MOST_TIMES: usize = 48;

/// The time of day that a run is of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunTime {
    /// As tables have it: `14:00`.
    pub of: String,
    /// Since when it holds: on that day.
    #[serde(with = "as_text")]
    pub from: Timestamp,
}

/// RFC 3339.
mod as_text {
    use jiff::Timestamp;
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub fn serialize<S: Serializer>(at: &Timestamp, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(at)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Timestamp, D::Error> {
        String::deserialize(d)?.parse().map_err(de::Error::custom)
    }
}

/// When the next run may begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunDue {
    /// Now.
    Now(RunTime),
    /// When this time comes.
    At(RunTime),
}

/// The times of a campaign.
#[derive(Debug, Clone, PartialEq)]
pub struct TimesOfDay {
    /// In the order of the day.
    times: Vec<(String, Time)>,
    zone: TimeZone,
}

impl TimesOfDay {
    /// Of the file; `None`: its cells are measured one after the other.
    pub fn of(file: &CampaignFile) -> Result<Option<Self>, CampaignError> {
        if file.times.is_empty() {
            return match file.time_zone {
                None => Ok(None),
                Some(_) => Err(wrong(
                    "time_zone",
                    "there are no times for it",
                    "Write for example times = [\"02:00\", \"14:00\"], or leave it out.",
                )),
            };
        }
        let zone = match &file.time_zone {
            None => TimeZone::system(),
            Some(name) => zone(name).ok_or_else(|| {
                wrong(
                    "time_zone",
                    format!("'{name}' is no time zone that this machine knows"),
                    "Write a name such as \"Europe/Berlin\" or \"UTC\"; others need the machine's tzdata.",
                )
            })?,
        };
        if file.times.len() > MOST_TIMES {
            return Err(wrong("times", format!("there are more than {MOST_TIMES}"), "Leave some out."));
        }
        let mut times = Vec::new();
        for text in &file.times {
            let time = time_of(text).ok_or_else(|| {
                wrong(
                    "times",
                    format!("'{text}' is no time of day"),
                    "Write hours and minutes: \"02:00\", \"14:30\".",
                )
            })?;
            times.push((time.strftime("%H:%M").to_string(), time));
        }
        times.sort_by_key(|(_, time)| *time);
        if let Some(twice) = times.windows(2).find(|w| w[0].1 == w[1].1) {
            return Err(wrong(
                "times",
                format!("'{}' stands there twice", twice[0].0),
                "Leave one of them out.",
            ));
        }
        let is_label = |labels: &BTreeMap<String, String>| labels.contains_key(TIME_AXIS);
        if is_label(&file.labels) || file.subjects.iter().any(|s| is_label(&s.labels)) {
            return Err(wrong(
                "labels",
                format!("'{TIME_AXIS}' is the label that runs have of their time of day"),
                "Give it another name.",
            ));
        }
        Ok(Some(Self { times, zone }))
    }

    /// For people: `02:00 and 14:00, Europe/Berlin`.
    pub fn words(&self) -> String {
        let names: Vec<&str> = self.times.iter().map(|(name, _)| name.as_str()).collect();
        let all = match names.split_last() {
            Some((last, [])) => (*last).to_owned(),
            Some((last, others)) => format!("{} and {last}", others.join(", ")),
            None => String::new(),
        };
        format!("{all}, {}", self.zone.iana_name().unwrap_or("the zone of this machine"))
    }

    /// In the order of the day.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.times.iter().map(|(name, _)| name.as_str())
    }

    /// A moment as the campaign's clocks show it: `2026-11-25 02:00 +01:00`.
    pub fn shown(&self, at: Timestamp) -> String {
        at.to_zoned(self.zone.clone()).strftime("%Y-%m-%d %H:%M %:z").to_string()
    }

    /// When the next run of a block is due. `blocks`: the time that each block had last; `begun`: when the campaign was begun.
    pub fn due(
        &self,
        block: u32,
        blocks: &BTreeMap<u32, RunTime>,
        begun: Timestamp,
        now: Timestamp,
    ) -> RunDue {
        let place = |of: &str| self.times.iter().position(|(name, _)| name == of);
        let own = blocks.get(&block).and_then(|t| Some((place(&t.of)?, t.from)));
        if let Some((slot, from)) = own {
            return match now < self.end(from) {
                true => RunDue::Now(self.run_time(slot, from)),
                false => self.on_another_day(slot, now),
            };
        }
        let before = blocks.range(..block).next_back().map(|(_, t)| t);
        let since = before.map_or(begun, |t| t.from.max(begun));
        let slot = match before.and_then(|t| place(&t.of)) {
            Some(last) => (last + 1) % self.times.len(),
            // The first block has the first time to come.
            None => (0..self.times.len()).min_by_key(|slot| self.next(*slot, since)).unwrap_or(0),
        };
        match self.next(slot, since) {
            first if now < first => RunDue::At(self.run_time(slot, first)),
            first if now < self.end(first) => RunDue::Now(self.run_time(slot, first)),
            _ => self.on_another_day(slot, now),
        }
    }

    /// A time of day that holds now, or that comes next.
    fn on_another_day(&self, slot: usize, now: Timestamp) -> RunDue {
        match self.last(slot, now).filter(|from| now < self.end(*from)) {
            Some(from) => RunDue::Now(self.run_time(slot, from)),
            None => RunDue::At(self.run_time(slot, self.next(slot, now))),
        }
    }

    fn run_time(&self, slot: usize, from: Timestamp) -> RunTime {
        RunTime { of: self.times[slot].0.clone(), from }
    }

    /// Until when a time holds that began then.
    pub(crate) fn end(&self, from: Timestamp) -> Timestamp {
        (0..self.times.len()).map(|slot| self.next(slot, from)).min().unwrap_or(Timestamp::MAX)
    }

    /// The first time after `at` that a slot begins.
    fn next(&self, slot: usize, at: Timestamp) -> Timestamp {
        self.around(slot, at).into_iter().find(|t| *t > at).unwrap_or(Timestamp::MAX)
    }

    /// The last time that it began, now included.
    fn last(&self, slot: usize, at: Timestamp) -> Option<Timestamp> {
        self.around(slot, at).into_iter().rev().find(|t| *t <= at)
    }

    /// When it begins on the days around a moment. A time that the clocks leave out comes by as much later; of one that they show twice it
    /// is the first.
    fn around(&self, slot: usize, at: Timestamp) -> Vec<Timestamp> {
        let today = at.to_zoned(self.zone.clone()).date();
        let on = |days: i64| {
            let date = today.checked_add(Span::new().try_days(days).ok()?).ok()?;
            date.to_datetime(self.times[slot].1)
                .to_zoned(self.zone.clone())
                .ok()
                .map(|z: Zoned| z.timestamp())
        };
        (-1..=2).filter_map(on).collect()
    }
}

/// A name of the machine's, or a rule as POSIX writes it (`CET-1CEST,M3.5.0,M10.5.0/3`).
fn zone(name: &str) -> Option<TimeZone> {
    TimeZone::get(name).or_else(|_| TimeZone::posix(name)).ok()
}

/// `02:00`
fn time_of(text: &str) -> Option<Time> {
    let (h, m) = text.split_once(':')?;
    let number = |s: &str| {
        (s.len() == 2 && s.bytes().all(|b| b.is_ascii_digit())).then(|| s.parse::<i8>().ok()).flatten()
    };
    Time::new(number(h)?, number(m)?, 0, 0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(list: &str, zone: &str) -> Result<Option<TimesOfDay>, CampaignError> {
        let text = format!(
            "version = 1\nname = \"t\"\ntimes = {list}\ntime_zone = \"{zone}\"\n[[subject]]\nname = \"a\"\ntarget = {{ kind = \"null\" }}\n\
             [[workload]]\nname = \"put\"\nmix = {{ put = 1 }}\n"
        );
        CampaignFile::from_toml(&text).and_then(|f| TimesOfDay::of(&f))
    }

    fn utc(text: &str) -> Timestamp {
        format!("{text}:00Z").parse().unwrap()
    }

    fn two() -> TimesOfDay {
        times("[\"14:00\", \"02:00\"]", "UTC").unwrap().unwrap()
    }

    fn had(blocks: &[(u32, &str, &str)]) -> BTreeMap<u32, RunTime> {
        blocks.iter().map(|(n, of, from)| (*n, RunTime { of: (*of).into(), from: utc(from) })).collect()
    }

    /// `14:00 now`, or `02:00 at 2026-11-25T02:00`.
    fn due(t: &TimesOfDay, block: u32, blocks: &[(u32, &str, &str)], now: &str) -> String {
        match t.due(block, &had(blocks), utc("2026-11-24T10:00"), utc(now)) {
            RunDue::Now(t) => format!("{} now, of {}", t.of, t.from),
            RunDue::At(t) => format!("{} at {}", t.of, t.from),
        }
    }

    #[test]
    fn the_first_block_has_the_first_time_to_come_and_the_next_ones_follow_in_turn() {
        let t = two();
        assert_eq!(t.words(), "02:00 and 14:00, UTC");
        assert_eq!(due(&t, 0, &[], "2026-11-24T10:00"), "14:00 at 2026-11-24T14:00:00Z");
        assert_eq!(due(&t, 0, &[], "2026-11-24T14:00"), "14:00 now, of 2026-11-24T14:00:00Z");
        let first = (0, "14:00", "2026-11-24T14:00");
        assert_eq!(due(&t, 1, &[first], "2026-11-24T15:00"), "02:00 at 2026-11-25T02:00:00Z");
        let second = (1, "02:00", "2026-11-25T02:00");
        assert_eq!(due(&t, 2, &[first, second], "2026-11-25T03:00"), "14:00 at 2026-11-25T14:00:00Z");
    }

    #[test]
    fn a_block_goes_on_while_its_time_holds_and_else_at_that_time_of_another_day() {
        let t = two();
        let block = [(0, "14:00", "2026-11-24T14:00")];
        assert_eq!(due(&t, 0, &block, "2026-11-24T23:00"), "14:00 now, of 2026-11-24T14:00:00Z");
        assert_eq!(due(&t, 0, &block, "2026-11-25T02:00"), "14:00 at 2026-11-25T14:00:00Z");
        // Taken up again days later, while its time holds.
        assert_eq!(due(&t, 0, &block, "2026-11-27T15:00"), "14:00 now, of 2026-11-27T14:00:00Z");
    }

    #[test]
    fn a_block_that_the_one_before_made_late_begins_within_its_time() {
        let t = two();
        let block = [(0, "14:00", "2026-11-24T14:00")];
        // The last run of block 0 ended at 02:10.
        assert_eq!(due(&t, 1, &block, "2026-11-25T02:10"), "02:00 now, of 2026-11-25T02:00:00Z");
        // Or after 14:00, when 02:00 no longer holds.
        assert_eq!(due(&t, 1, &block, "2026-11-25T14:10"), "02:00 at 2026-11-26T02:00:00Z");
    }

    #[test]
    fn of_one_time_each_day_has_a_block() {
        let t = times("[\"02:00\"]", "UTC").unwrap().unwrap();
        assert_eq!(due(&t, 0, &[], "2026-11-24T10:00"), "02:00 at 2026-11-25T02:00:00Z");
        let first = [(0, "02:00", "2026-11-25T02:00")];
        assert_eq!(due(&t, 1, &first, "2026-11-25T02:20"), "02:00 at 2026-11-26T02:00:00Z");
    }

    /// In Berlin 02:30 is left out on 29 March 2026 and there twice on 25 October.
    #[test]
    fn clocks_that_are_put_forward_or_back_leave_out_no_block() {
        let t = times("[\"02:30\"]", "CET-1CEST,M3.5.0,M10.5.0/3").unwrap().unwrap();
        let next = |now: &str| match t.due(0, &BTreeMap::new(), utc(now), utc(now)) {
            RunDue::At(t) => t.from.to_string(),
            RunDue::Now(t) => panic!("{t:?}"),
        };
        assert_eq!(next("2026-03-28T12:00"), "2026-03-29T01:30:00Z", "03:30 in summer time");
        assert_eq!(next("2026-03-29T12:00"), "2026-03-30T00:30:00Z");
        assert_eq!(next("2026-10-24T12:00"), "2026-10-25T00:30:00Z", "the first of the two");
        assert_eq!(next("2026-10-25T00:30"), "2026-10-26T01:30:00Z");
        assert_eq!(t.shown(utc("2026-03-29T01:30")), "2026-03-29 03:30 +02:00");
    }

    #[test]
    fn mistakes_are_told() {
        for (list, zone, part) in [
            ("[\"25:00\"]", "UTC", "'25:00' is no time of day"),
            ("[\"2:00\"]", "UTC", "'2:00' is no time of day"),
            ("[\"02:00\", \"02:00\"]", "UTC", "twice"),
            ("[\"02:00\"]", "Nowhere/At All", "no time zone"),
            ("[]", "UTC", "no times"),
        ] {
            let e = times(list, zone).unwrap_err();
            assert!(e.problem.contains(part), "{list}: {e}");
        }
    }
}
