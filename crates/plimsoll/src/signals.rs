//! Ctrl-C: the first asks the run to stop, write its result and clean up; the second aborts.

use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_run::Interrupt;

/// What the process is, and so what a signal means to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Run,
    Server,
}

static STOP: AtomicBool = AtomicBool::new(false);
static IS_RUN: AtomicBool = AtomicBool::new(false);

/// What the run watches.
pub fn interrupt() -> Interrupt {
    Interrupt::of(&STOP)
}

pub fn was_asked_to_stop() -> bool {
    STOP.load(Ordering::Acquire)
}

extern "C" fn on_signal(_: libc::c_int) {
    const FIRST: &[u8] =
        b"\nstopping: the result is written and the run is cleaned up; Ctrl-C again aborts\n";
    const SECOND: &[u8] = b"\naborted: `plimsoll cleanup last` removes what the run left\n";
    let again = STOP.swap(true, Ordering::AcqRel);
    if !IS_RUN.load(Ordering::Relaxed) {
        return;
    }
    let text = if again { SECOND } else { FIRST };
    // SAFETY: write and _exit are async-signal-safe, and the text is a constant of this length.
    unsafe {
        libc::write(2, text.as_ptr().cast(), text.len());
        if again {
            libc::_exit(130);
        }
    }
}

/// From here on SIGINT and SIGTERM stop in order.
pub fn install(role: Role) {
    IS_RUN.store(role == Role::Run, Ordering::Relaxed);
    // SAFETY: the handler touches atomics only and makes async-signal-safe calls; sigaction is given a zeroed
    // structure whose fields that matter are set.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as extern "C" fn(libc::c_int) as usize;
        libc::sigemptyset(&mut action.sa_mask);
        for signal in [libc::SIGINT, libc::SIGTERM] {
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
}
