// What a Node holds in memory for other processes: mirrors of their state.
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "actors/node_actor.hpp"

namespace troupe {
namespace {

/// The files of a mirror on their way to this process.
struct Arriving {
  std::atomic<std::size_t> missing = 0;
  std::mutex mutex;
  std::optional<Failure> failure;
};

/// Fetches the files, and answers `promise` when they are here. Tensors arrive on other threads.
void Fetch(NodePointer self, const std::string& folder, const FilesGiven& given,
           Promise<MirrorHeld> promise) {
  NodeState& s = self->state;
  const auto arriving = std::make_shared<Arriving>();
  arriving->missing = given.files.size() + 1;
  const auto all_ended = OnNode(self, [arriving, promise]() mutable {
    if (!arriving->failure) return promise.deliver(MirrorHeld{});
    promise.deliver(MakeFailure(*arriving->failure));
  });
  const auto ended = [arriving, all_ended] {
    if (--arriving->missing == 0) all_ended();
  };
  for (const HeldFile& file : given.files) {
    s.config.tensors->Fetch(
        file.bytes, file.name,
        [held = s.config.held, folder, name = file.name, ended](Buffer bytes) {
          held->Put(folder, {name, std::move(bytes)});
          ended();
        },
        [arriving, ended](const Failure& failure) {
          {
            const std::lock_guard lock(arriving->mutex);
            arriving->failure = failure;
          }
          ended();
        });
  }
  ended();
}

}  // namespace

MirrorPlan MirrorsOf(const NodeConfig& config) {
  if (!config.held) return {};
  return PlanMirrors(*config.plan, *config.processes, config.plan->config().checkpoint.replicas);
}

caf::result<MirrorHeld> HoldMirrorOf(NodePointer self, const HoldMirror& hold) {
  NodeState& s = self->state;
  const auto from = s.nodes.find(hold.from);
  if (from == s.nodes.end()) {
    return MakeFailure({"mirror: its process is lost", FailureKind::kLost});
  }
  auto promise = self->make_response_promise<MirrorHeld>();
  self->request(from->second, caf::infinite, GiveFiles{hold.folder, s.config.self, hold.files})
      .then([self, promise, folder = hold.folder](
                const FilesGiven& given) { Fetch(self, folder, given, promise); },
            [promise](const caf::error& reason) mutable { promise.deliver(reason); });
  return promise;
}

caf::result<FilesGiven> GiveHeld(NodePointer self, const GiveFiles& give) {
  const NodeConfig& config = self->state.config;
  FilesGiven given;
  try {
    for (const std::string& name : give.files) {
      const Buffer bytes = config.held->BytesOf(give.folder, name);
      given.files.push_back({name, config.tensors->Push(bytes, give.to)});
    }
  } catch (const std::exception& e) {
    return MakeFailure(e.what());
  }
  return given;
}

}  // namespace troupe
