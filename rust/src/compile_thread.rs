//! Where grammars are compiled: on a thread of its own with a large stack, for a limited time.
//! Nothing can stop llguidance in the middle, so a compilation that takes longer is left to itself:
//! it goes on at the lowest priority until its own limits end it. A few such are bearable; while
//! there are that many, no other is begun.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicUsize, Ordering};
use std::sync::mpsc::{sync_channel, RecvTimeoutError};
use std::sync::Arc;
use std::time::Duration;

use crate::abi::Failure;

/// llguidance recurses over references and rules; its depth is bounded by the sizes of sources,
/// which a stack of this size (reserved, not used) holds.
const STACK_BYTES: usize = 256 << 20;
/// Compilations that were left to themselves.
const LEFT_MAX: usize = 3;
static COMPILER: Compiler = Compiler::new();

const NICE: i32 = 19;
extern "C" {
    fn gettid() -> i32;
    // Of the thread `who`, on Linux, when `which` is 0.
    fn setpriority(which: i32, who: u32, priority: i32) -> i32;
}

const RUNNING: u8 = 0;
const ENDED: u8 = 1;
const ALONE: u8 = 2; // nobody waits any more
#[derive(Default)]
struct Shared {
    state: AtomicU8,
    thread: AtomicI32, // 0: not yet begun
}

/// Limit: it took longer than `time`; Busy: earlier ones that did are still running.
pub fn run<T: Send + 'static>(
    time: Duration,
    body: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    COMPILER.run(time, body)
}

/// Counts what was left. The process has one; a test that fills one up has its own, so that the
/// tests beside it are not refused.
struct Compiler {
    left: AtomicUsize,
}

impl Compiler {
    const fn new() -> Compiler {
        Compiler { left: AtomicUsize::new(0) }
    }

    fn run<T: Send + 'static>(
        &'static self,
        time: Duration,
        body: impl FnOnce() -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        if self.left.load(Ordering::SeqCst) >= LEFT_MAX {
            return Err(Failure::Busy(
                "grammars that take too long are still being compiled; send the request again later"
                    .into(),
            ));
        }
        let (sender, receiver) = sync_channel(1);
        let shared = Arc::new(Shared::default());
        let inside = shared.clone();
        std::thread::Builder::new()
            .name("grammar-compile".into())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                inside.thread.store(unsafe { gettid() }, Ordering::SeqCst);
                let result = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
                    Err(Failure::Invalid("the grammar cannot be compiled".into()))
                });
                sender.send(result).ok(); // there is room for one
                if inside.state.swap(ENDED, Ordering::SeqCst) == ALONE {
                    self.left.fetch_sub(1, Ordering::SeqCst);
                }
            })
            .map_err(|error| Failure::Internal(format!("no thread to compile on: {error}")))?;
        match receiver.recv_timeout(time) {
            Ok(result) => result,
            Err(RecvTimeoutError::Disconnected) => {
                Err(Failure::Internal("the thread that compiled is gone".into()))
            }
            Err(RecvTimeoutError::Timeout) => {
                self.left.fetch_add(1, Ordering::SeqCst);
                if shared.state.swap(ALONE, Ordering::SeqCst) != RUNNING {
                    self.left.fetch_sub(1, Ordering::SeqCst);
                    return receiver.recv().expect("it was sent before the end");
                }
                let thread = shared.thread.load(Ordering::SeqCst);
                if thread > 0 {
                    unsafe { setpriority(0, thread as u32, NICE) };
                }
                Err(Failure::Limit(format!(
                    "the grammar was not compiled within {} ms; make it smaller",
                    time.as_millis()
                )))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_a_few_that_take_too_long_then_refuses_until_one_ends() {
        static COMPILER: Compiler = Compiler::new();
        let (release, wait) = std::sync::mpsc::channel::<()>();
        let wait = std::sync::Arc::new(std::sync::Mutex::new(wait));
        for _ in 0..LEFT_MAX {
            let wait = wait.clone();
            let result = COMPILER.run(Duration::from_millis(1), move || {
                wait.lock().unwrap().recv().ok();
                Ok(())
            });
            assert!(matches!(result, Err(Failure::Limit(_))));
        }
        assert!(matches!(COMPILER.run(Duration::from_secs(60), || Ok(())), Err(Failure::Busy(_))));
        drop(release);
        while COMPILER.left.load(Ordering::SeqCst) > 0 {
            std::thread::yield_now();
        }
        assert!(matches!(COMPILER.run(Duration::from_secs(60), || Ok(7)), Ok(7)));
        let panics = COMPILER
            .run(Duration::from_secs(60), || -> Result<(), Failure> { panic!("on purpose") });
        assert!(matches!(panics, Err(Failure::Invalid(_))));
    }
}
