//! Threads that must not be late.
// unsafe: sched_setscheduler.

/// Gives the calling thread the lowest real-time priority and exact timers, if it may have them: a
/// path does not get slower because the CPUs at its ends are busy.
pub fn this_thread() {
    // The default slack of 50 µs would be added to every delay.
    let _ = nix::sys::prctl::set_timerslack(1);
    let param = libc::sched_param { sched_priority: 1 };
    // SAFETY: 0 is the calling thread; the structure is initialised and outlives the call.
    let _ =
        unsafe { libc::sched_setscheduler(0, libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, &param) };
}
