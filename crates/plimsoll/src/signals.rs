//! Signals. The first Ctrl-C asks the run to stop, write its result and clean up; the next has it wait for nothing more, and the
//! result is written even so; the one after that aborts. SIGTERM and SIGHUP mean the same: a closed terminal must not cost a result.
//! What has no result to save (a file that is read) is aborted by the second.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use plimsoll_setup::Interrupt;
use plimsoll_setup::interrupt::Meaning;

/// What the process is, and so what a signal means to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessRole {
    Run,
    /// Files are read, and nothing is measured.
    Reader,
    Server,
}

impl ProcessRole {
    fn of_number(number: u8) -> Self {
        [Self::Run, Self::Reader].into_iter().find(|r| *r as u8 == number).unwrap_or(Self::Server)
    }

    /// What is said as a signal comes, and whether the process ends with it; `None`: it is for whoever watches the mark.
    fn answer(self, meaning: Meaning) -> Option<(&'static [u8], bool)> {
        const STOP: &[u8] =
            b"\nstopping: writing the result and cleaning up; press Ctrl-C again to stop waiting\n";
        const REST: &[u8] = b"\nno longer waiting, and cleanup stops: the result is written; `plimsoll cleanup last` removes what the run left behind; press Ctrl-C again to abort\n";
        const ABORT: &[u8] = b"\naborted: `plimsoll cleanup last` removes what the run left behind\n";
        const READ_STOP: &[u8] =
            b"\nstopping: nothing is kept of the file that is being read or packed; press Ctrl-C again to abort\n";
        const READ_ABORT: &[u8] =
            b"\naborted: a run that was begun is still there; `plimsoll runs list` names it, `plimsoll runs rm` removes it\n";
        match (self, meaning) {
            (Self::Run, Meaning::Stop) => Some((STOP, false)),
            (Self::Run, Meaning::LeaveTheRest) => Some((REST, false)),
            (Self::Run, Meaning::Abort) => Some((ABORT, true)),
            (Self::Reader, Meaning::Stop) => Some((READ_STOP, false)),
            (Self::Reader, Meaning::LeaveTheRest | Meaning::Abort) => Some((READ_ABORT, true)),
            (Self::Server, _) => None,
        }
    }
}

/// Of the one run of this process; there from [`install`] on, so that the handler only looks.
static INTERRUPT: OnceLock<Interrupt> = OnceLock::new();
static ROLE: AtomicU8 = AtomicU8::new(ProcessRole::Server as u8);

/// What the run watches.
pub fn interrupt() -> Interrupt {
    INTERRUPT.get_or_init(Interrupt::default).clone()
}

/// Whether somebody in this process stops in order already.
pub fn is_installed() -> bool {
    INTERRUPT.get().is_some()
}

pub fn role() -> ProcessRole {
    ProcessRole::of_number(ROLE.load(Ordering::Relaxed))
}

pub fn was_asked_to_stop() -> bool {
    INTERRUPT.get().is_some_and(Interrupt::is_requested)
}

/// It was asked twice: nothing is waited for any more.
pub fn was_told_not_to_wait() -> bool {
    INTERRUPT.get().is_some_and(Interrupt::is_enough)
}

extern "C" fn on_signal(_: libc::c_int) {
    let Some(meaning) = INTERRUPT.get().map(Interrupt::signal) else { return };
    let Some((text, ends)) = role().answer(meaning) else { return };
    // SAFETY: write and _exit are async-signal-safe, and the text is a constant of this length.
    unsafe {
        libc::write(2, text.as_ptr().cast(), text.len());
        if ends {
            libc::_exit(130);
        }
    }
}

/// From here on SIGINT, SIGTERM and SIGHUP stop in order. A SIGHUP that is ignored (`nohup`) stays so.
pub fn install(role: ProcessRole) {
    ROLE.store(role as u8, Ordering::Relaxed);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_signal_ends_what_has_no_result_to_save() {
        let ends = |role: ProcessRole| {
            [Meaning::Stop, Meaning::LeaveTheRest, Meaning::Abort]
                .map(|m| role.answer(m).map(|(_, ends)| ends))
        };
        assert_eq!(ends(ProcessRole::Run), [Some(false), Some(false), Some(true)]);
        assert_eq!(ends(ProcessRole::Reader), [Some(false), Some(true), Some(true)]);
        assert_eq!(ends(ProcessRole::Server), [None; 3]);
        for role in [ProcessRole::Run, ProcessRole::Reader, ProcessRole::Server] {
            assert_eq!(ProcessRole::of_number(role as u8), role);
        }
    }
}
