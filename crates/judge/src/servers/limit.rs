//! Which of the servers' resources was the limit, as far as that was seen: one kind at its ceiling while the others were not. Two at once are
//! both named, and neither is said to bind; of none it is said where to look next.

use plimsoll_model::summary::servers::{ServersLimit, ceiling_words};

use super::resources::{self, KINDS, SeenResource};

/// What is not observed because its speed changed ends so.
pub const SPEED_CHANGED: &str = ", whose speed changed";
/// The cheapest next experiment, alone and beside another one.
pub const DOUBLE: &str = " Next: double the concurrency; a rate that stays is bound by none of these.";
pub const AND_DOUBLE: &str = ", and double the concurrency";

/// `None`: no ceiling is known of anything that was seen. `here`: the servers share this machine's processors with the client.
pub fn of_window(all: &[SeenResource], here: bool, not_observed: &[String]) -> Option<ServersLimit> {
    let known: Vec<&SeenResource> = all
        .iter()
        .filter(|s| s.used.share.is_some() && s.scarce_s.is_none() && !resources::is_shared(s, here))
        .collect();
    let shared = all.iter().find(|s| resources::is_shared(s, here) && s.at_ceiling());
    let of_kind = |kind: &str| -> Vec<&SeenResource> {
        known.iter().copied().filter(|s| s.used.resource == kind).collect()
    };
    let full: Vec<(&str, Vec<&SeenResource>)> = KINDS
        .iter()
        .map(|(kind, _)| (*kind, of_kind(kind).into_iter().filter(|s| s.at_ceiling()).collect::<Vec<_>>()))
        .filter(|(_, full)| !full.is_empty())
        .collect();
    let share = |s: &SeenResource| s.used.share.unwrap_or(0.0);
    // What is busy and waited for by nobody is no limit, however busy.
    let below = |s: &&&SeenResource| s.used.verdict == "below its ceiling";
    let fullest = |kinds: &[&str]| -> Option<&SeenResource> {
        let others = known.iter().filter(|s| !kinds.contains(&s.used.resource.as_str())).filter(below);
        others.max_by(|a, b| share(a).total_cmp(&share(b))).copied()
    };
    let words = |(kind, full): &(&str, Vec<&SeenResource>)| {
        let most = full.iter().copied().max_by(|a, b| share(a).total_cmp(&share(b)));
        most.map_or_else(String::new, |m| {
            resources::in_words(kind, full, m, resources::different(&of_kind(kind)))
        })
    };
    let mut out = ServersLimit {
        at_ceiling: full.iter().map(|f| format!("{}: {}", f.0, words(f))).collect(),
        ..ServersLimit::default()
    };
    // Of whoever used them: told as full, and never as the one that binds.
    out.at_ceiling.extend(shared.map(|s| format!("cpu shared with the client: {}", s.used.name())));
    match &full[..] {
        [] => {
            let most = known.iter().copied().max_by(|a, b| share(a).total_cmp(&share(b)))?;
            out.verdict = "none".into();
            describe(&mut out, &of_kind(&most.used.resource));
            out.of = of_kind(&most.used.resource).len() as u64;
            (out.text, out.next) = match shared {
                Some(s) => none_but_shared(most, s),
                None => none(most, not_observed),
            };
        }
        [one] => {
            out.verdict = "one".into();
            describe(&mut out, &one.1);
            (out.resource, out.full, out.of) =
                (one.0.into(), one.1.len() as u64, of_kind(one.0).len() as u64);
            out.text = alone(one, &words(one), fullest(&[one.0]), shared, not_observed);
        }
        several => {
            out.verdict = "several".into();
            let named: Vec<String> = several.iter().map(|f| format!("{} ({})", f.0, words(f))).collect();
            out.text = format!(
                "{} of the servers' resources were at their ceilings at once: {}. Which of them binds cannot be told from that: raise one of \
                 them by half, and if the rate follows, it is that one.",
                if several.len() == 2 { "Two".to_owned() } else { several.len().to_string() },
                named.join("; ")
            );
        }
    }
    Some(out)
}

/// Of these together; where some are told by their time and some by bytes, of the fullest.
fn describe(out: &mut ServersLimit, of: &[&SeenResource]) {
    let fullest =
        of.iter().max_by(|a, b| a.used.share.unwrap_or(0.0).total_cmp(&b.used.share.unwrap_or(0.0)));
    let Some(fullest) = fullest else { return };
    let is_alike = of.iter().all(|s| s.used.unit == fullest.used.unit);
    let of = if is_alike { of } else { std::slice::from_ref(fullest) };
    let n = of.len() as f64;
    out.share = of.iter().filter_map(|s| s.used.share).sum::<f64>() / n;
    out.ceiling = of.iter().filter_map(|s| s.used.ceiling).sum::<f64>() / n;
    out.unit = fullest.used.unit.clone();
}

/// `95 % of 25Gbit/s`.
fn percent_of(s: &SeenResource) -> String {
    let share = 100.0 * s.used.share.unwrap_or(0.0);
    let ceiling = s.used.ceiling.unwrap_or(0.0);
    match ceiling_words(&s.used.resource, &s.used.unit, ceiling) {
        None => format!("busy {share:.0} % of the time"),
        Some(most) => format!("{share:.0} % of {most}"),
    }
}

fn kind_words(kind: &str) -> &'static str {
    match kind {
        "cpu" => "the processor",
        "drive" => "the drive",
        _ => "the network interface",
    }
}

/// `the network interface eth0 of s1, in`.
fn one_in_words(s: &SeenResource) -> String {
    format!("{} {}{}", kind_words(&s.used.resource), s.used.name(), resources::way(&s.used.resource))
}

fn alone(
    (kind, full): &(&str, Vec<&SeenResource>),
    who: &str,
    next: Option<&SeenResource>,
    shared: Option<&SeenResource>,
    not_observed: &[String],
) -> String {
    let most = full.iter().max_by(|a, b| a.used.share.unwrap_or(0.0).total_cmp(&b.used.share.unwrap_or(0.0)));
    let Some(most) = most else { return String::new() };
    let time = 100.0 * most.used.time_above.unwrap_or(0.0);
    let mut text = format!(
        "Of the servers {} was at its ceiling: {who}, {}, above {:.0} % for {time:.0} % of the time.",
        kind_words(kind),
        percent_of(most),
        100.0 * most.used.threshold
    );
    match (shared, next) {
        (Some(s), _) => text.push_str(&format!(
            " So were the processors that the servers share with the client ({}): which of the two binds cannot be told from that.",
            percent_of(s)
        )),
        (None, Some(n)) => text.push_str(&format!(
            " Nothing else that was observed was: next is {} ({}).",
            one_in_words(n),
            percent_of(n)
        )),
        (None, None) => text.push_str(" Nothing else was observed."),
    }
    if !not_observed.is_empty() {
        text.push_str(&format!(" Not observed: {}.", some_of(not_observed)));
    }
    text
}

fn none(most: &SeenResource, not_observed: &[String]) -> (String, String) {
    let what = format!("{} ({})", one_in_words(most), percent_of(most));
    let busy = most.used.verdict.starts_with("busy");
    let but = if busy { ", and nothing waited for it" } else { "" };
    let look = match not_observed {
        [] => format!("Look at locks, latency and the concurrency.{DOUBLE}"),
        some if some.iter().any(|n| n.ends_with(SPEED_CHANGED)) => {
            let changed: Vec<String> =
                some.iter().filter_map(|n| Some(n.strip_suffix(SPEED_CHANGED)?.to_owned())).collect();
            format!(
                "Look first at {}{SPEED_CHANGED}: F77 says how full it was at which speed.",
                some_of(&changed)
            )
        }
        some => format!(
            "Look at what was not observed ({}), at locks, latency and the concurrency. Next: observe these{AND_DOUBLE}.",
            some_of(some)
        ),
    };
    let text = format!(
        "None of the servers' resources that were observed was at its ceiling; the fullest was {what}{but}."
    );
    (text, look)
}

/// Processors that the client uses, too, are no limit of the servers' own; full ones are told all the same, and come first.
fn none_but_shared(most: &SeenResource, shared: &SeenResource) -> (String, String) {
    let text = format!(
        "The processors that the servers share with the client were at their ceiling ({}), none of the servers' other resources that \
         were observed was; the fullest of these was {} ({}).",
        percent_of(shared),
        one_in_words(most),
        percent_of(most)
    );
    (text, "Next: a machine of its own for the client.".into())
}

/// The first few.
fn some_of(all: &[String]) -> String {
    const NAMED: usize = 4;
    let mut text = all.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    if all.len() > NAMED {
        text.push_str(&format!(" and {} more", all.len() - NAMED));
    }
    text
}
