// Owns one ncclComm_t, which a member uses and the watch may abort at any time.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <nccl.h>

#include "transport/abort_signal.hpp"

namespace troupe {

/// NCCL's error text: "unhandled cuda error", with details if NCCL has any.
std::string NcclErrorText(ncclResult_t code, ncclComm_t comm);

/// Calls of NCCL do not block here, so the lock is never held for long.
class NcclLink {
 public:
  using Call = std::function<ncclResult_t(ncclComm_t)>;

  /// `name` is "tensor group of vision: rank 2".
  NcclLink(std::string name, std::shared_ptr<AbortSignal> abort);
  NcclLink(const NcclLink&) = delete;
  NcclLink& operator=(const NcclLink&) = delete;
  /// Aborts, unless Leave() has been called.
  ~NcclLink();

  const std::string& name() const { return name_; }

  /// Starts to connect to `size` members. Returns NCCL's first result: success, in progress or an
  /// error. The member's device must be current.
  ncclResult_t Begin(const ncclUniqueId& id, int size, int rank);
  /// Waits for the operation in progress. On an error raises the signal with `operation` and NCCL's
  /// error text and throws NcclError. Throws Aborted.
  void Finish(const char* operation);
  /// Makes a call and waits until it is queued. Throws like Finish.
  void Do(const char* operation, const Call& call);
  /// The last call: leaves in order if that takes only a moment and nothing has failed, otherwise
  /// aborts.
  void Leave();

  /// For the watch: raises the signal if NCCL reports an asynchronous error.
  void CheckAsyncError();
  /// For the watch: aborts all operations on `links`, queued or in progress, at once: aborting one
  /// alone may wait for its device, where another link's kernel still waits for its peers. Returns
  /// false if some links are in a call; then aborts none, or with `even_some` only the others.
  static bool TryAbort(const std::vector<std::shared_ptr<NcclLink>>& links, bool even_some);

 private:
  void Fail(const char* operation, ncclResult_t code, ncclComm_t comm);
  ncclResult_t Progress();
  [[noreturn]] void ThrowAborted() const;
  void AbortLocked();

  const std::string name_;
  const std::shared_ptr<AbortSignal> abort_;
  std::mutex mutex_;
  ncclComm_t comm_ = nullptr;  // null after an abort
};

}  // namespace troupe
