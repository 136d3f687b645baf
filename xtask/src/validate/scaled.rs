//! The same systems again with one constant of the probe changed, each constant by itself: only in a build of `scripts/sensitivity.py`,
//! whose sources have constants that can be scaled.
//!
//! A constant that a system never asked for changes nothing of what was seen of it: that is kept, and only the others run again.

use std::any::Any;
use std::cell::Cell;
use std::collections::HashMap;
use std::io::BufRead as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use plimsoll_stats::scaling::{self, Touched};

use super::{Part, Settings};

/// What was seen of a system with constants as they are, and which of them it asked for.
struct KnownCase {
    seen: Arc<dyn Any + Send + Sync>,
    touched: Touched,
}

/// By the call of `each`, and the system in it.
static KNOWN: RwLock<Option<HashMap<(u64, u64), KnownCase>>> = RwLock::new(None);

thread_local! {
    static CALL: Cell<u64> = const { Cell::new(0) };
    /// The constant that is changed.
    static CHANGED: Cell<Option<usize>> = const { Cell::new(None) };
}

fn locked<T>(lock: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// In place of [`Settings::each`].
pub fn each<T: Send + Sync + Clone + 'static>(
    threads: usize,
    n: u64,
    first_seed: u64,
    f: &(impl Fn(u64) -> T + Sync),
) -> Vec<T> {
    let call = CALL.get();
    CALL.set(call + 1);
    if let Some(changed) = CHANGED.get() {
        let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
        let known = known.as_ref().expect("what is known was seen first");
        let one = |i: u64| match known.get(&(call, i)) {
            Some(k) if !scaling::is_in(&k.touched, changed) => {
                k.seen.downcast_ref::<T>().expect("calls come in one order").clone()
            }
            _ => f(first_seed + i),
        };
        return (0..n).map(one).collect();
    }
    let next = AtomicU64::new(0);
    let all: Mutex<Vec<(u64, T, Touched)>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= n {
                        break;
                    }
                    scaling::take_touched();
                    let seen = f(first_seed + i);
                    locked(&all).push((i, seen, scaling::take_touched()));
                }
            });
        }
    });
    let mut all = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    all.sort_by_key(|(i, ..)| *i);
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    all.into_iter()
        .map(|(i, seen, touched)| {
            known.insert((call, i), KnownCase { seen: Arc::new(seen.clone()), touched });
            seen
        })
        .collect()
}

/// Lines `NAME FACTOR` of the standard input, each as soon as a thread is free for it; before them the constants as they are. Each table
/// comes after a line that begins with `@`.
pub fn main(s: &Settings, parts: &[&Part]) -> ExitCode {
    let table = || {
        CALL.set(0);
        parts.iter().flat_map(|part| (part.1)(s)).map(|row| format!("{row}\n")).collect::<String>()
    };
    println!("@\n{}", table());
    scaling::freeze();
    let lines =
        Mutex::new(std::io::stdin().lock().lines().map_while(Result::ok).collect::<Vec<_>>().into_iter());
    std::thread::scope(|scope| {
        for _ in 0..s.threads {
            scope.spawn(|| {
                loop {
                    let Some(line) = locked(&lines).next() else { break };
                    let mut words = line.split_whitespace();
                    let id = words.next().and_then(|name| scaling::NAMES.iter().position(|n| *n == name));
                    let by = words.next().and_then(|by| by.parse().ok());
                    let (Some(id), Some(by)) = (id, by) else {
                        eprintln!("'{line}' is no NAME FACTOR");
                        continue;
                    };
                    CHANGED.set(Some(id));
                    scaling::set(id, by);
                    let table =
                        catch_unwind(AssertUnwindSafe(table)).unwrap_or_else(|_| "! it panicked\n".into());
                    println!("@ {line}\n{table}");
                }
            });
        }
    });
    ExitCode::SUCCESS
}
