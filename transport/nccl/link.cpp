#include "transport/nccl/link.hpp"

#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

#include "transport/nccl/nccl.hpp"

namespace troupe {
namespace {

// Long enough to spare the core, short compared with NCCL's operations.
constexpr std::chrono::microseconds kPause{50};
/// The time limit of an orderly Leave, which waits for queued work on both sides.
constexpr std::chrono::seconds kLeaveTime{2};

}  // namespace

std::string NcclErrorText(ncclResult_t code, ncclComm_t comm) {
  std::string text = ncclGetErrorString(code);
  const char* last = comm != nullptr ? ncclGetLastError(comm) : nullptr;
  if (last != nullptr && *last != '\0') text += std::string(" (") + last + ")";
  return text;
}

NcclLink::NcclLink(std::string name, std::shared_ptr<AbortSignal> abort)
    : name_(std::move(name)), abort_(std::move(abort)) {}

NcclLink::~NcclLink() { AbortLocked(); }

void NcclLink::Leave() {
  const std::lock_guard lock(mutex_);
  if (comm_ == nullptr) return;
  ncclResult_t code = abort_->raised() ? ncclInvalidUsage : ncclCommFinalize(comm_);
  const auto end = std::chrono::steady_clock::now() + kLeaveTime;
  while (code == ncclInProgress || code == ncclSuccess) {
    const ncclResult_t result = ncclCommGetAsyncError(comm_, &code);
    if (result != ncclSuccess) code = result;
    if (code == ncclSuccess) break;
    if (abort_->raised() || std::chrono::steady_clock::now() > end) code = ncclInvalidUsage;
    std::this_thread::sleep_for(kPause);
  }
  if (code != ncclSuccess) return AbortLocked();
  code = ncclCommDestroy(std::exchange(comm_, nullptr));
  if (code != ncclSuccess && code != ncclInProgress) {
    std::fprintf(stderr, "troupe: %s: ncclCommDestroy: %s\n", name_.c_str(),
                 ncclGetErrorString(code));
  }
}

ncclResult_t NcclLink::Begin(const ncclUniqueId& id, int size, int rank) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const std::lock_guard lock(mutex_);
  const ncclResult_t code = ncclCommInitRankConfig(&comm_, size, id, rank, &config);
  if (code != ncclSuccess && code != ncclInProgress) AbortLocked();
  return code;
}

ncclResult_t NcclLink::Progress() {
  const std::lock_guard lock(mutex_);
  if (comm_ == nullptr) ThrowAborted();
  ncclResult_t state = ncclSuccess;
  const ncclResult_t result = ncclCommGetAsyncError(comm_, &state);
  return result != ncclSuccess ? result : state;
}

void NcclLink::Finish(const char* operation) {
  for (ncclResult_t code = Progress(); code != ncclSuccess; code = Progress()) {
    if (code != ncclInProgress) Fail(operation, code, nullptr);
    abort_->ThrowIfRaised();
    std::this_thread::sleep_for(kPause);
  }
}

void NcclLink::Do(const char* operation, const Call& call) {
  {
    const std::lock_guard lock(mutex_);
    if (comm_ == nullptr) ThrowAborted();
    const ncclResult_t code = call(comm_);
    if (code == ncclSuccess) return;
    if (code != ncclInProgress) Fail(operation, code, comm_);
  }
  Finish(operation);
}

void NcclLink::CheckAsyncError() {
  std::string error;
  {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock() || comm_ == nullptr) return;
    ncclResult_t state = ncclSuccess;
    const ncclResult_t result = ncclCommGetAsyncError(comm_, &state);
    if (result != ncclSuccess) state = result;
    if (state == ncclSuccess || state == ncclInProgress) return;
    error = name_ + ": NCCL: " + NcclErrorText(state, comm_);
  }
  abort_->Raise(error);
}

bool NcclLink::TryAbort(const std::vector<std::shared_ptr<NcclLink>>& links, bool even_some) {
  std::vector<std::unique_lock<std::mutex>> locks;
  std::vector<NcclLink*> ours;
  for (const auto& link : links) {
    std::unique_lock lock(link->mutex_, std::try_to_lock);
    if (!lock.owns_lock()) continue;
    locks.push_back(std::move(lock));
    ours.push_back(link.get());
  }
  const bool all = ours.size() == links.size();
  if (!all && !even_some) return false;
  // The communicators are gone, whatever these calls return.
  static_cast<void>(ncclGroupStart());
  for (NcclLink* const link : ours) link->AbortLocked();
  static_cast<void>(ncclGroupEnd());
  return all;
}

void NcclLink::Fail(const char* operation, ncclResult_t code, ncclComm_t comm) {
  const std::string error = name_ + ": NCCL: " + operation + ": " + NcclErrorText(code, comm);
  abort_->Raise(error);
  throw NcclError(error);
}

void NcclLink::ThrowAborted() const {
  abort_->ThrowIfRaised();
  throw NcclError(name_ + ": NCCL: expected a communicator, got an aborted one");
}

void NcclLink::AbortLocked() {
  // The communicator is gone, whatever this call returns.
  if (comm_ != nullptr) static_cast<void>(ncclCommAbort(std::exchange(comm_, nullptr)));
}

}  // namespace troupe
