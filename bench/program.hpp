// Runs the body of a program and turns an exception into exit code 1.
#pragma once

#include <cstdio>
#include <exception>

namespace troupe::bench {

/// Returns what `run` returns. If it throws, prints why and returns 1.
template <class Run>
int ExitCodeOf(const char* program, Run run) {
  try {
    return run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", program, error.what());
    return 1;
  }
}

}  // namespace troupe::bench
