// Owner of one ncclComm_t, which a member uses and the watch may abort at any time.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <nccl.h>

#include "transport/abort_signal.hpp"

namespace troupe {

/// "unhandled cuda error", and what NCCL says besides.
std::string NcclWords(ncclResult_t code, ncclComm_t comm);

/// Calls of NCCL do not block here, so its lock is never held for long.
class NcclLink {
 public:
  using Call = std::function<ncclResult_t(ncclComm_t)>;

  /// `who` is "tensor group of vision: rank 2".
  NcclLink(std::string who, std::shared_ptr<AbortSignal> abort);
  NcclLink(const NcclLink&) = delete;
  NcclLink& operator=(const NcclLink&) = delete;
  /// Aborts, unless Leave() has been called.
  ~NcclLink();

  const std::string& who() const { return who_; }

  /// Begins to connect to `size` members, and returns what NCCL says at once: success, in progress,
  /// or an error. The current device is the member's.
  ncclResult_t Begin(const ncclUniqueId& id, int size, int rank);
  /// Waits until what is in progress has ended. Throws NcclError, having raised the signal with
  /// `what` and NCCL's words; Aborted.
  void Finish(const char* what);
  /// Makes a call and waits until it is queued. Throws as Finish.
  void Do(const char* what, const Call& call);
  /// The last call: leaves in order if it can within a moment and nothing has failed, else aborts.
  void Leave();

  /// For the watch: raises the signal if something has gone wrong since.
  void Look();
  /// For the watch: ends all that is queued and in progress on `links`, at once: to end one alone
  /// may wait for its device, on which another's kernel still waits for its peers. False: some are
  /// in a call right now, and none was ended, or with `even_some` only the others.
  static bool TryAbort(const std::vector<std::shared_ptr<NcclLink>>& links, bool even_some);

 private:
  void Fail(const char* what, ncclResult_t code, ncclComm_t comm);
  ncclResult_t Progress();
  [[noreturn]] void ThrowAborted() const;
  void AbortLocked();

  const std::string who_;
  const std::shared_ptr<AbortSignal> abort_;
  std::mutex mutex_;
  ncclComm_t comm_ = nullptr;  // null when aborted
};

}  // namespace troupe
