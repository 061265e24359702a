// Blocks signals in the background threads of this folder.
#pragma once

#include <initializer_list>
#include <signal.h>

namespace troupe {

/// Threads started during its lifetime receive no signals; the program handles signals on other
/// threads. This also ignores a SIGPIPE of such a thread.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    // A thread's own faults stay unblocked: a fault that occurs while blocked ends the process
    // without calling its handler.
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
