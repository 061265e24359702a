// NCCL played by the threads of emulated streams, linked instead of it: a collective runs when all
// members' streams have come to it, and waits for ever when one does not, until it is aborted.
#pragma once

#include <string>

#include <nccl.h>

namespace troupe::emulated {

struct NcclSettings {
  int slow_calls = 0;  ///< how often a call that was made is still in progress when asked
  /// A member that is refused with this code, unless it is -1.
  int refused = -1;
  ncclResult_t refusal = ncclSystemError;
  int stalled = -1;  ///< a member that begins to connect and never ends
};

/// One at a time; make it after the Machine.
class NcclNetwork {
 public:
  explicit NcclNetwork(NcclSettings settings = {});
  NcclNetwork(const NcclNetwork&) = delete;
  NcclNetwork& operator=(const NcclNetwork&) = delete;
  ~NcclNetwork();

  /// All communicators of member `rank` have failed, as they say when they are asked.
  void Fail(int rank, ncclResult_t code, const std::string& words);
  /// "3 made, 1 aborted, 2 destroyed".
  std::string counts() const;
};

}  // namespace troupe::emulated
