//! A limit of processor time for steps of a parser. The limits that are counted
//! (grammar_vocabulary.rs) bound a mask only between two rows of the parser; within a row, work
//! grows with the cube of its items. llguidance looks for a cancellation in there, so a thread of
//! ours watches the clocks of the threads that are in a step and cancels what takes too long.
//! Processor time and not time: a busy machine fails nobody. Read next: grammar.rs.

use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use llguidance::CancellationHandle;

use crate::abi::Failure;

/// How late a step may be cancelled.
const TICK: Duration = Duration::from_millis(2);
/// Looks without anybody in a step, after which the thread sleeps until somebody is.
const IDLE_TICKS: u32 = 50;

#[repr(C)]
#[derive(Default)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}
extern "C" {
    fn pthread_self() -> usize;
    fn pthread_getcpuclockid(thread: usize, clock: *mut i32) -> i32;
    fn clock_gettime(clock: i32, out: *mut Timespec) -> i32;
}

fn own_clock() -> i32 {
    const THREAD_CPUTIME: i32 = 3;
    let mut clock = THREAD_CPUTIME;
    let code = unsafe { pthread_getcpuclockid(pthread_self(), &mut clock) };
    assert_eq!(code, 0, "a running thread has a clock");
    clock
}

/// Zero for the clock of a thread that has ended.
fn read(clock: i32) -> Duration {
    let mut time = Timespec::default();
    match unsafe { clock_gettime(clock, &mut time) } {
        0 => Duration::new(time.seconds as u64, time.nanoseconds as u32),
        _ => Duration::ZERO,
    }
}

struct Entry {
    id: u64,
    clock: i32,
    end: Duration, // on that clock
    handle: CancellationHandle,
}

#[derive(Default)]
struct State {
    entries: Vec<Entry>, // one for each thread that is in a step
    ids: u64,
    looking: bool, // else the thread waits for `wake`
    stop: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>, // never poisoned: nothing panics under it
    wake: Condvar,
}

/// Any thread. Its own ends with it.
pub struct StepWatch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl StepWatch {
    pub fn start() -> Result<StepWatch, Failure> {
        let shared = Arc::new(Shared::default());
        let inside = shared.clone();
        let thread = std::thread::Builder::new()
            .name("grammar-watch".into())
            .spawn(move || inside.look())
            .map_err(|error| Failure::Internal(format!("no thread to watch masks: {error}")))?;
        Ok(StepWatch { shared, thread: Some(thread) })
    }

    /// Until the step ends, `handle` is cancelled once this thread has worked for `limit`.
    pub fn begin(&self, handle: CancellationHandle, limit: Duration) -> Step {
        let clock = own_clock();
        let begin = read(clock);
        let mut state = self.shared.state.lock().unwrap();
        state.ids += 1;
        let id = state.ids;
        state.entries.push(Entry { id, clock, end: begin + limit, handle });
        if !state.looking {
            self.shared.wake.notify_one();
        }
        Step { shared: self.shared.clone(), id, clock, begin }
    }
}

impl Drop for StepWatch {
    fn drop(&mut self) {
        self.shared.state.lock().unwrap().stop = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// A step that is watched until it is dropped, by the thread that began it.
pub struct Step {
    shared: Arc<Shared>,
    id: u64,
    clock: i32,
    begin: Duration,
}

impl Step {
    /// What it has taken.
    pub fn spent(&self) -> Duration {
        read(self.clock).saturating_sub(self.begin)
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock().unwrap();
        state.entries.retain(|entry| entry.id != self.id);
    }
}

impl Shared {
    fn look(&self) {
        let mut idle = 0;
        let mut state = self.state.lock().unwrap();
        while !state.stop {
            if state.entries.is_empty() && idle >= IDLE_TICKS {
                state.looking = false;
                state = self.wake.wait(state).unwrap();
                idle = 0;
                continue;
            }
            idle = if state.entries.is_empty() { idle + 1 } else { 0 };
            for entry in state.entries.iter().filter(|entry| read(entry.clock) >= entry.end) {
                entry.handle.cancel();
            }
            state.looking = true;
            state = self.wake.wait_timeout(state, TICK).unwrap().0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cancels_who_works_too_long_and_nobody_else() {
        let watch = StepWatch::start().unwrap();
        for _ in 0..3 {
            let (slow, quick) = (CancellationHandle::default(), CancellationHandle::default());
            let waits = CancellationHandle::default();
            drop(watch.begin(quick.clone(), Duration::from_secs(1)));
            std::thread::scope(|scope| {
                let (ended, wait) = std::sync::mpsc::channel::<()>();
                let (watch, waits) = (&watch, waits.clone());
                // Its time goes by, and its processor's does not.
                scope.spawn(move || {
                    let step = watch.begin(waits, Duration::from_millis(4));
                    wait.recv().ok();
                    drop(step);
                });
                let step = watch.begin(slow.clone(), Duration::from_millis(5));
                while !slow.is_cancelled() {
                    std::hint::spin_loop();
                }
                assert!(step.spent() >= Duration::from_millis(5));
                drop(ended);
            });
            assert!(!quick.is_cancelled() && !waits.is_cancelled());
        }
    }
}
