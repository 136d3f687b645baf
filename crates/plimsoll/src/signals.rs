//! Signals. The first Ctrl-C asks the run to stop, write its result and clean up; the next has it wait for nothing more, and the
//! result is written even so; the one after that aborts. SIGTERM and SIGHUP mean the same: a closed terminal must not cost a result.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_setup::Interrupt;
use plimsoll_setup::interrupt::Meaning;

/// What the process is, and so what a signal means to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessRole {
    Run,
    Server,
}

/// Of the one run of this process; there from [`install`] on, so that the handler only looks.
static INTERRUPT: OnceLock<Interrupt> = OnceLock::new();
static IS_RUN: AtomicBool = AtomicBool::new(false);

/// What the run watches.
pub fn interrupt() -> Interrupt {
    INTERRUPT.get_or_init(Interrupt::default).clone()
}

pub fn was_asked_to_stop() -> bool {
    INTERRUPT.get().is_some_and(Interrupt::is_requested)
}

extern "C" fn on_signal(_: libc::c_int) {
    const STOP: &[u8] =
        b"\nstopping: writing the result and cleaning up; press Ctrl-C again to stop waiting\n";
    const REST: &[u8] = b"\nno longer waiting, and cleanup stops: the result is written; `plimsoll cleanup last` removes what the run left behind; press Ctrl-C again to abort\n";
    const ABORT: &[u8] = b"\naborted: `plimsoll cleanup last` removes what the run left behind\n";
    let Some(meaning) = INTERRUPT.get().map(Interrupt::signal) else { return };
    if !IS_RUN.load(Ordering::Relaxed) {
        return;
    }
    let text = match meaning {
        Meaning::Stop => STOP,
        Meaning::LeaveTheRest => REST,
        Meaning::Abort => ABORT,
    };
    // SAFETY: write and _exit are async-signal-safe, and the text is a constant of this length.
    unsafe {
        libc::write(2, text.as_ptr().cast(), text.len());
        if meaning == Meaning::Abort {
            libc::_exit(130);
        }
    }
}

/// From here on SIGINT, SIGTERM and SIGHUP stop in order. A SIGHUP that is ignored (`nohup`) stays so.
pub fn install(role: ProcessRole) {
    IS_RUN.store(role == ProcessRole::Run, Ordering::Relaxed);
    INTERRUPT.get_or_init(Interrupt::default);
    // SAFETY: the handler touches atomics only and makes async-signal-safe calls; sigaction is given a zeroed
    // structure whose fields that matter are set.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as extern "C" fn(libc::c_int) as usize;
        libc::sigemptyset(&mut action.sa_mask);
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            let mut before: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &mut before);
            if signal != libc::SIGHUP || before.sa_sigaction != libc::SIG_IGN {
                libc::sigaction(signal, &action, std::ptr::null_mut());
            }
        }
    }
}

/// A write beyond the limit of file sizes (`ulimit -f`) is an error of that write, not the end of the process: by default the
/// signal that comes with it kills without a word.
pub fn keep_file_size_errors() {
    // SAFETY: ignoring a signal has no handler that could do harm.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}
