//! The threads of PyTorch itself.
//!
//! After each of its operators PyTorch's threads stay awake for milliseconds, spinning, as the next operator may need them.
//! Threads of another pool would have to share the cores with them; these start at once.
//!
//! They are OpenMP's. What a compiler makes of `#pragma omp parallel` is a call of `GOMP_parallel`, which every runtime of
//! OpenMP on Linux has, and which the one that PyTorch is linked with has here.

use std::any::Any;
use std::ffi::{c_uint, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use outstride::Executor;
use pyo3::prelude::*;

use super::{MOST_THREADS, executor};

/// An executor of so many of PyTorch's threads, or of our own where its threads are out of reach. However many it has, no
/// more are used than would be of our own.
pub(crate) fn torch_executor(threads: i64) -> PyResult<Arc<dyn Executor>> {
    let own = executor(Some(threads.min(MOST_THREADS as i64)))?;
    Ok(match &*RUNTIME {
        // A forked child has none of its parent's threads, and the runtime would wait for them forever.
        Some(runtime) if own.threads() > 1 && runtime.process == std::process::id() => {
            Arc::new(OpenMp { parallel: runtime.parallel, threads: own.threads() })
        }
        _ => own,
    })
}

/// Whether PyTorch's threads are within reach; to be asked early, in the process that starts them.
#[pyfunction]
pub(crate) fn finds_torch_threads() -> bool {
    RUNTIME.is_some()
}

/// Calls a function with its data on so many threads, one of them the caller's, and returns when all have returned. The
/// last argument is of flags, none of which is needed.
type Parallel = unsafe extern "C" fn(extern "C" fn(*mut c_void), *mut c_void, c_uint, c_uint);

/// The runtime that PyTorch is linked with.
struct Runtime {
    parallel: Parallel,
    /// Where it was found.
    process: u32,
}

static RUNTIME: LazyLock<Option<Runtime>> =
    LazyLock::new(|| Some(Runtime { parallel: find_parallel()?, process: std::process::id() }));

#[cfg(target_os = "linux")]
fn find_parallel() -> Option<Parallel> {
    // SAFETY: strings with an end; a library that is loaded already is found, and stays loaded, or none is.
    let symbol = unsafe {
        let torch = libc::dlopen(c"libtorch_cpu.so".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if torch.is_null() {
            return None;
        }
        // Looks through what the library is linked with, so that no other runtime in the process is taken for its own.
        libc::dlsym(torch, c"GOMP_parallel".as_ptr())
    };
    // SAFETY: not null, and the function of that name is of that type in every runtime.
    (!symbol.is_null()).then(|| unsafe { std::mem::transmute::<*mut c_void, Parallel>(symbol) })
}

#[cfg(not(target_os = "linux"))]
fn find_parallel() -> Option<Parallel> {
    None
}

struct OpenMp {
    parallel: Parallel,
    threads: usize,
}

impl Executor for OpenMp {
    fn threads(&self) -> usize {
        self.threads
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        if tasks <= 1 {
            return (0..tasks).for_each(task);
        }
        let work = Work { next: AtomicUsize::new(0), tasks, task, panic: Mutex::new(None) };
        // Always as many as PyTorch uses, even for fewer tasks: a team of another size would have to be built.
        // SAFETY: `work` outlives the call, and all threads are done when it returns.
        unsafe {
            (self.parallel)(take_tasks, (&raw const work).cast_mut().cast(), self.threads as c_uint, 0)
        };
        if let Some(panic) = work.panic.into_inner().unwrap_or_else(PoisonError::into_inner) {
            resume_unwind(panic);
        }
    }
}

/// What the threads share.
struct Work<'a> {
    next: AtomicUsize,
    tasks: usize,
    task: &'a (dyn Fn(usize) + Sync),
    /// Unwinding must not reach the runtime; a panic waits here for the caller.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

/// Whoever is free takes the next task, until there is none. The runtime may grant fewer threads than it was asked for.
extern "C" fn take_tasks(data: *mut c_void) {
    // SAFETY: `OpenMp::run` passes its `Work`, and waits.
    let work = unsafe { &*data.cast::<Work<'_>>() };
    let taking = AssertUnwindSafe(|| {
        loop {
            let number = work.next.fetch_add(1, Ordering::Relaxed);
            if number >= work.tasks {
                return;
            }
            (work.task)(number);
        }
    });
    if let Err(panic) = catch_unwind(taking) {
        *work.panic.lock().unwrap_or_else(PoisonError::into_inner) = Some(panic);
    }
}
