// For threads that are nobody's business but this folder's.
#pragma once

#include <initializer_list>
#include <signal.h>

namespace troupe {

/// While it lives, threads that this one starts are given no signal: signals are for the threads
/// that the program has set up for them. A SIGPIPE of such a thread is lost, too.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    // A thread's own faults stay its own: met while they are blocked, they end the process
    // unhandled.
    for (const int fault : {SIGBUS, SIGSEGV, SIGFPE, SIGILL}) sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

}  // namespace troupe
