#include <sys/prctl.h>

#include "cli/commands.hpp"

// NOLINTNEXTLINE(bugprone-exception-escape): what is not caught ends the program with its name
int main(int argc, char** argv) {
  prctl(PR_SET_NAME, "troupe");  // a child started by /proc/self/exe would be named "exe"
  return troupe::RunProgram(argc, argv);
}
