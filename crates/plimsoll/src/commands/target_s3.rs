//! `target s3`: the embedded S3 server, until SIGINT or SIGTERM.

use std::path::Path;

use plimsoll_target::limiter::{LimitSet, TierKind};
use plimsoll_target::s3::{Credentials, S3Options, S3ServerError, spawn};

use super::target::{LimitArgs, S3ServerArgs};
use super::target_exec::tls_options;
use crate::fault::{Exit, Fault};
use crate::{output, signals};

pub fn serve(a: &S3ServerArgs) -> Result<Exit, Fault> {
    let options = S3Options {
        listen: a.listen,
        credentials: credentials()?,
        sync: !a.no_sync,
        tls: tls_options(&a.tls)?,
        limits: object_limits(&a.limits)?,
        domain: a.domain.clone(),
        buckets: a.buckets.clone(),
        ..S3Options::new(a.data.clone())
    };
    // Files that it reads may be pipes, whose writers may never come: until it serves, a signal ends it as any other program.
    let handle = spawn(options).map_err(refused)?;
    signals::install(signals::ProcessRole::Server);
    for file in handle.damaged() {
        output::tell(format_args!("plimsoll: {} is not a complete object and is skipped", file.display()));
    }
    output::print(&format!("{}\n", handle.ready().line()))?;
    while !signals::was_asked_to_stop() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    handle.stop();
    Ok(Exit::Valid)
}

/// From the variables that clients use, so that both sides can be started from one shell; else new ones are made. A second
/// pair, for limits that are per access key, has names of its own.
fn credentials() -> Result<Vec<Credentials>, Fault> {
    let first = pair("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")?;
    let second = pair("PLIMSOLL_SECOND_ACCESS_KEY_ID", "PLIMSOLL_SECOND_SECRET_ACCESS_KEY")?;
    if first.is_none() && second.is_some() {
        return Err(Fault::input(
            "a second pair of credentials is set, but no first one",
            "Also set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
        ));
    }
    Ok(first.into_iter().chain(second).collect())
}

pub fn pair(id: &str, secret: &str) -> Result<Option<Credentials>, Fault> {
    let set = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
    match (set(id), set(secret)) {
        (Some(access_key), Some(secret_key)) => Ok(Some(Credentials { access_key, secret_key })),
        (None, None) => Ok(None),
        _ => Err(Fault::input(
            format!("only one of {id} and {secret} is set"),
            "Set both, or neither to have a pair created.",
        )),
    }
}

/// The limits of a tier, or of a file; none without either.
pub fn object_limits(a: &LimitArgs) -> Result<Option<LimitSet>, Fault> {
    let Some(set) = limit_set(a.tier.as_deref(), a.limits.as_deref(), a.scale)? else { return Ok(None) };
    if set.kind == TierKind::Block {
        return Err(Fault::input(
            format!("'{}' is a block tier, not an object tier", set.name),
            "Use it with `plimsoll target block --tier`.",
        ));
    }
    Ok(Some(set))
}

/// The limits of a tier, else of a file, times a factor; none without either.
pub fn limit_set(tier: Option<&str>, file: Option<&Path>, factor: f64) -> Result<Option<LimitSet>, Fault> {
    let set = match (tier, file) {
        (Some(tier), _) => LimitSet::tier(tier),
        (None, Some(file)) => LimitSet::read(file),
        (None, None) => return Ok(None),
    };
    set.and_then(|s| s.scaled(factor)).map(Some).map_err(|e| {
        let tiers = LimitSet::tier_names().collect::<Vec<_>>().join(", ");
        Fault::input(e.to_string(), format!("Tiers are {tiers}; or use --limits with a file of your own."))
    })
}

fn refused(e: S3ServerError) -> Fault {
    let remedy = match &e {
        S3ServerError::Listen(..) => "Choose another --listen; port 0 picks a free port.",
        S3ServerError::Store(_) => "Choose another --data directory; one server uses one.",
        S3ServerError::Bucket(_) => "Use 3 to 63 lower-case letters, digits, dots and hyphens.",
        _ => "See `plimsoll target s3 --help`.",
    };
    Fault::input(e.to_string(), remedy)
}
