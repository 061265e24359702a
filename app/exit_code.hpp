#pragma once

namespace troupe {

/// Exit codes of the process; docs/cli.md is the user's page.
enum ExitCode : int {
  kExitDone = 0,
  kExitFailed = 1,  ///< the run failed, or `verify` found a difference; the last line is the cause
  kExitBadInput = 2,  ///< configuration, arguments or data: nothing was started
  kExitLost = 3,      ///< a process or machine of the job was lost; a restart may succeed
  kExitNotMet = 4,    ///< the processes of the job did not find each other, or do not fit together;
                      ///< `doctor` found a failure
  kExitReplaced = 5,  ///< this process was slow and has left its place to a spare
};

/// The exit code of a process that a signal has ended, as a shell reports it.
constexpr int ExitCodeOfSignal(int signal) { return 128 + signal; }

}  // namespace troupe
