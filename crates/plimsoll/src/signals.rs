//! Signals. The first Ctrl-C asks the run to stop, write its result and clean up; the next has it wait for nothing more, and the
//! result is written even so; the one after that aborts. SIGTERM and SIGHUP mean the same: a closed terminal must not cost a result.

use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_setup::Interrupt;
use plimsoll_setup::interrupt::{Flags, Meaning};

/// What the process is, and so what a signal means to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Run,
    Server,
}

static FLAGS: Flags = Flags::new();
static IS_RUN: AtomicBool = AtomicBool::new(false);

/// What the run watches.
pub fn interrupt() -> Interrupt {
    Interrupt::of(&FLAGS)
}

pub fn was_asked_to_stop() -> bool {
    FLAGS.is_asked()
}

extern "C" fn on_signal(_: libc::c_int) {
    const STOP: &[u8] =
        b"\nstopping: the result is written and the run is cleaned up; Ctrl-C again waits for neither\n";
    const REST: &[u8] = b"\nnothing is waited for any more, and cleaning up stops: the result is written, and `plimsoll cleanup last` removes what the run left; Ctrl-C again aborts\n";
    const ABORT: &[u8] = b"\naborted: `plimsoll cleanup last` removes what the run left\n";
    let meaning = FLAGS.signal();
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
pub fn install(role: Role) {
    IS_RUN.store(role == Role::Run, Ordering::Relaxed);
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
