//! The thread that takes a sample each second and hands it to the collector.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plimsoll_model::Sample;

use super::source::Source;

/// Samples until it is dropped.
#[derive(Debug)]
pub struct Sampler {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Sampler {
    /// `origin` is the run's start; `sink` gets a sample at once, one each second, and one at the end.
    pub fn start(
        source: Source,
        origin: Instant,
        offset_ns: u64,
        mut sink: impl FnMut(Sample) + Send + 'static,
    ) -> std::io::Result<Self> {
        const EVERY: Duration = Duration::from_secs(1);
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new().name("sampler".into()).spawn(move || {
            let mut next = Instant::now();
            loop {
                sink(source.take(offset_ns + origin.elapsed().as_nanos() as u64));
                next += EVERY;
                let wait = next.saturating_duration_since(Instant::now());
                if stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
                    break;
                }
            }
            sink(source.take(offset_ns + origin.elapsed().as_nanos() as u64));
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the sampler has been printed already, and costs the run only its samples.
            let _ = thread.join();
        }
    }
}
