#include "transport/nccl/link.hpp"

#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

#include "transport/nccl/nccl.hpp"

namespace troupe {
namespace {

// Long enough not to cost a core, short against what NCCL does meanwhile.
constexpr std::chrono::microseconds kPause{50};
/// What orderly leaving may take: it waits for what is queued, here and there.
constexpr std::chrono::seconds kLeaveTime{2};

}  // namespace

std::string NcclWords(ncclResult_t code, ncclComm_t comm) {
  std::string words = ncclGetErrorString(code);
  const char* last = comm != nullptr ? ncclGetLastError(comm) : nullptr;
  if (last != nullptr && *last != '\0') words += std::string(" (") + last + ")";
  return words;
}

NcclLink::NcclLink(std::string who, std::shared_ptr<AbortSignal> abort)
    : who_(std::move(who)), abort_(std::move(abort)) {}

NcclLink::~NcclLink() { AbortLocked(); }

void NcclLink::Leave() {
  const std::lock_guard lock(mutex_);
  if (comm_ == nullptr) return;
  ncclResult_t code = abort_->raised() ? ncclInvalidUsage : ncclCommFinalize(comm_);
  const auto end = std::chrono::steady_clock::now() + kLeaveTime;
  while (code == ncclInProgress || code == ncclSuccess) {
    const ncclResult_t asked = ncclCommGetAsyncError(comm_, &code);
    if (asked != ncclSuccess) code = asked;
    if (code == ncclSuccess) break;
    if (abort_->raised() || std::chrono::steady_clock::now() > end) code = ncclInvalidUsage;
    std::this_thread::sleep_for(kPause);
  }
  if (code != ncclSuccess) return AbortLocked();
  code = ncclCommDestroy(std::exchange(comm_, nullptr));
  if (code != ncclSuccess && code != ncclInProgress)
    std::fprintf(stderr, "troupe: %s: ncclCommDestroy: %s\n", who_.c_str(),
                 ncclGetErrorString(code));
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
  const ncclResult_t asked = ncclCommGetAsyncError(comm_, &state);
  return asked != ncclSuccess ? asked : state;
}

void NcclLink::Finish(const char* what) {
  for (ncclResult_t code = Progress(); code != ncclSuccess; code = Progress()) {
    if (code != ncclInProgress) Fail(what, code, nullptr);
    abort_->ThrowIfRaised();
    std::this_thread::sleep_for(kPause);
  }
}

void NcclLink::Do(const char* what, const Call& call) {
  {
    const std::lock_guard lock(mutex_);
    if (comm_ == nullptr) ThrowAborted();
    const ncclResult_t code = call(comm_);
    if (code == ncclSuccess) return;
    if (code != ncclInProgress) Fail(what, code, comm_);
  }
  Finish(what);
}

void NcclLink::Look() {
  std::string error;
  {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock() || comm_ == nullptr) return;
    ncclResult_t state = ncclSuccess;
    const ncclResult_t asked = ncclCommGetAsyncError(comm_, &state);
    if (asked != ncclSuccess) state = asked;
    if (state == ncclSuccess || state == ncclInProgress) return;
    error = who_ + ": NCCL: " + NcclWords(state, comm_);
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
  // Whatever these answer, the communicators are gone.
  static_cast<void>(ncclGroupStart());
  for (NcclLink* const link : ours) link->AbortLocked();
  static_cast<void>(ncclGroupEnd());
  return all;
}

void NcclLink::Fail(const char* what, ncclResult_t code, ncclComm_t comm) {
  const std::string error = who_ + ": NCCL: " + what + ": " + NcclWords(code, comm);
  abort_->Raise(error);
  throw NcclError(error);
}

void NcclLink::ThrowAborted() const {
  abort_->ThrowIfRaised();
  throw NcclError(who_ + ": NCCL: expected a communicator, it is aborted");
}

void NcclLink::AbortLocked() {
  // Whatever it answers, the communicator is gone.
  if (comm_ != nullptr) static_cast<void>(ncclCommAbort(std::exchange(comm_, nullptr)));
}

}  // namespace troupe
