// Code that runs before the constructors of libraries, which run before main() and take most of a
// second. UCX's constructor installs handlers of fatal signals unless its variables are set.
//
// Part of the program, not of the library: tests and benchmarks keep their environment.
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>

#include "app/exit_code.hpp"

namespace {

/// Variables that UCX reads when it is loaded. Values that the user has set are kept.
constexpr std::array<const char*, 3> kUcxLeavesSignals = {
    "UCX_ERROR_SIGNALS=", "UCX_HANDLE_ERRORS=none", "UCX_DEBUG_SIGNO=0"};

bool Has(char** environment, const char* setting) {
  const std::string_view text = setting;
  const std::string_view name = text.substr(0, text.find('=') + 1);
  for (char** entry = environment; *entry != nullptr; ++entry) {
    if (std::string_view(*entry).substr(0, name.size()) == name) return true;
  }
  return false;
}

/// Restarts the program once with UCX's variables: setenv() has no effect this early.
void DisableUcxSignalHandlers(char** argv, char** environment) {
  std::size_t count = 0;
  while (environment[count] != nullptr) ++count;
  auto* const entries =
      static_cast<char**>(__builtin_alloca((count + kUcxLeavesSignals.size() + 1) * sizeof(char*)));
  std::memcpy(entries, environment, count * sizeof(char*));
  const std::size_t before = count;
  for (const char* setting : kUcxLeavesSignals) {
    if (!Has(environment, setting)) entries[count++] = const_cast<char*>(setting);
  }
  entries[count] = nullptr;
  if (count == before) return;
  execve("/proc/self/exe", argv, entries);  // returns only without /proc
}

/// Whether a terminal sent the signal to the whole process group, which includes the program.
bool SentToGroup(const siginfo_t& info) {
  return info.si_code == SI_KERNEL && info.si_signo != SIGHUP && info.si_signo != SIGTERM;
}

/// Whether the signal is a request to end, which is not reported.
bool IsRequest(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGPIPE;
}

[[noreturn]] void EndAs(int status) {
  if (!WIFSIGNALED(status)) _exit(WEXITSTATUS(status));
  if (IsRequest(WTERMSIG(status))) _exit(troupe::ExitCodeOfSignal(WTERMSIG(status)));
  std::array<char, 128> line{};
  const char* const name = sigdescr_np(WTERMSIG(status));
  const int length = std::snprintf(line.data(), line.size(), "troupe: killed by signal %d (%s)\n",
                                   WTERMSIG(status), name == nullptr ? "?" : name);
  static_cast<void>(!write(STDERR_FILENO, line.data(), static_cast<std::size_t>(length)));
  _exit(troupe::ExitCodeOfSignal(WTERMSIG(status)));
}

/// Reaps all ended children; process 1 also gets every orphan.
void Reap(pid_t program) {
  int status = 0;
  for (pid_t ended = 0; (ended = waitpid(-1, &status, WNOHANG)) > 0;) {
    if (ended == program) EndAs(status);
  }
}

/// Makes process 1 of a container an init, with the program as its child: the kernel gives process
/// 1 every orphan to reap, and drops signals that it does not handle. Returns in the child, and if
/// there can be none.
void ServeAsInit() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  const pid_t program = fork();
  if (program <= 0) {
    sigprocmask(SIG_SETMASK, &before, nullptr);
    return;
  }
  while (true) {
    siginfo_t info{};
    const int number = sigwaitinfo(&all, &info);
    if (number == SIGCHLD) Reap(program);
    if (number <= 0 || number == SIGCHLD || SentToGroup(info)) continue;
    kill(program, number);
  }
}

void AtStart(int, char** argv, char** environment) {
  if (getpid() == 1) ServeAsInit();
  DisableUcxSignalHandlers(argv, environment);
}
[[gnu::section(".preinit_array"), gnu::used]] void (*const kAtStart)(int, char**, char**) = AtStart;

}  // namespace
