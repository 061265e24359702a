#include "transport/nccl/nccl.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include <nccl.h>

#include "gpu/device.hpp"
#include "transport/gpu/patience.hpp"
#include "transport/nccl/communicator.hpp"
#include "transport/nccl/link.hpp"

namespace troupe {

/// Watches all links of a process. Destroyed links drop out by themselves.
struct Nccl::Watch {
  explicit Watch(std::shared_ptr<AbortSignal> signal)
      : abort(std::move(signal)),
        subscription(abort->Subscribe([this](const Failure&) { Wake(); })),
        thread([this] { Run(); }) {}
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch() {
    {
      const std::lock_guard lock(mutex);
      ended = true;
    }
    changed.notify_all();
    thread.join();
  }

  void Add(const std::shared_ptr<NcclLink>& link) {
    const std::lock_guard lock(mutex);
    std::erase_if(links, [](const auto& it) { return it.expired(); });
    links.push_back(link);
  }

  void Wake() {
    {
      const std::lock_guard lock(mutex);
      woken = true;
    }
    changed.notify_all();
  }

  void Run() {
    std::chrono::milliseconds pause = kPollInterval;
    int tries = 0;
    for (;;) {
      std::vector<std::shared_ptr<NcclLink>> all;
      {
        std::unique_lock lock(mutex);
        changed.wait_for(lock, pause, [this] { return ended || woken; });
        if (ended) return;
        woken = false;
        for (const auto& link : links)
          if (auto alive = link.lock()) all.push_back(std::move(alive));
      }
      if (!abort->raised())
        for (const auto& link : all) link->CheckAsyncError();
      pause = kPollInterval;
      if (!abort->raised()) continue;
      // Links in a call are retried soon. If they stay in it, the others are aborted without them.
      constexpr int kTries = 1000;
      if (!NcclLink::TryAbort(all, ++tries > kTries)) pause = std::chrono::milliseconds(1);
    }
  }

  const std::shared_ptr<AbortSignal> abort;
  std::mutex mutex;
  std::condition_variable changed;
  bool ended = false;
  bool woken = false;
  std::vector<std::weak_ptr<NcclLink>> links;
  std::shared_ptr<void> subscription;
  std::thread thread;
};

namespace {

/// A member's progress, as sent to the others.
struct State {
  ncclUniqueId id{};
  std::int32_t code = ncclSuccess;
};

/// Throws on all members if one of them has failed.
void CheckAll(const DeviceMember& member, const std::vector<std::int32_t>& codes) {
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const auto code = static_cast<ncclResult_t>(codes[i]);
    if (code == ncclSuccess || code == ncclInProgress) continue;
    const std::string error = member.names.group + ": " +
                              member.names.MemberName(static_cast<int>(i)) +
                              ": NCCL: connecting: " + NcclErrorText(code, nullptr);
    member.abort->Raise(error);
    throw NcclError(error);
  }
}

ncclUniqueId ShareId(const DeviceMember& member) {
  State state;
  if (member.host->rank() == 0) state.code = ncclGetUniqueId(&state.id);
  member.host->Broadcast(&state, sizeof state, 0);
  CheckAll(member, {state.code});
  return state.id;
}

}  // namespace

Nccl::Nccl(std::shared_ptr<AbortSignal> abort)
    : abort_(std::move(abort)), watch_(std::make_unique<Watch>(abort_)) {}

Nccl::~Nccl() = default;

std::string Nccl::name() const {
  int version = 0;
  if (ncclGetVersion(&version) != ncclSuccess) return "NCCL";
  return "NCCL " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) +
         "." + std::to_string(version % 100);
}

std::unique_ptr<Communicator> Nccl::Join(DeviceMember member) {
  const gpu::DeviceGuard guard(member.stream->device());
  member.abort = abort_;
  const int rank = member.host->rank();
  auto link =
      std::make_shared<NcclLink>(member.names.group + ": " + member.names.MemberName(rank), abort_);
  {
    Patience patience(member);
    const ncclUniqueId id = ShareId(member);
    watch_->Add(link);
    const std::int32_t code = link->Begin(id, member.host->size(), rank);
    // Begin does not block, so here all members have started, or it is known which one failed.
    std::vector<std::int32_t> codes(static_cast<std::size_t>(member.host->size()));
    member.host->AllGather(&code, sizeof code, codes.data());
    CheckAll(member, codes);
    patience.AllArrived("NCCL is still connecting");
    link->Finish("connecting");
  }
  return MakeNcclCommunicator(std::move(member), std::move(link));
}

}  // namespace troupe
