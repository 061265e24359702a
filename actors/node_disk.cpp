// What a Node does with the disk of its machine for other processes, and what devices ask of theirs.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <caf/send.hpp>

#include "actors/files_elsewhere.hpp"
#include "actors/node_actor.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

bool IsInCheckpoint(const std::string& path) {
  const fs::path normal = fs::path(path).lexically_normal();
  const fs::path checkpoints = normal.parent_path().parent_path();
  return normal.is_absolute() && checkpoints.filename() == "checkpoints";
}

/// A peer gets files of checkpoints, and no others. Throws std::runtime_error.
void RequireInCheckpoint(const std::string& path) {
  if (!IsInCheckpoint(path)) throw std::runtime_error(path + ": not a file of a checkpoint");
}

/// Does `work` on the writer's thread, if there is one: the Node must go on meanwhile.
template <class Answer, class Work>
caf::result<Answer> OnDisk(NodePointer self, Work work) {
  struct Outcome {
    Answer answer;
    std::string error;
  };
  const auto outcome = std::make_shared<Outcome>();
  Promise<Answer> promise = self->template make_response_promise<Answer>();
  const auto ended = OnNode(self, [outcome, promise]() mutable {
    if (outcome->error.empty()) {
      promise.deliver(std::move(outcome->answer));
    } else {
      promise.deliver(MakeFailure(Failure(outcome->error)));
    }
  });
  auto run = [outcome, ended, work = std::move(work)] {
    try {
      outcome->answer = work();
    } catch (...) {
      outcome->error = ThrownFailure().text;
    }
    ended();
  };
  if (const auto& writer = self->state.config.writer) {
    writer->Run(std::move(run));
  } else {
    run();
  }
  return promise;
}

/// Null: this process does not hold it.
std::shared_ptr<const ByteSource> OpenHeld(NodePointer self, const std::string& path) {
  const auto& held = self->state.config.held;
  return held ? held->Open(path) : nullptr;
}

}  // namespace

caf::result<FileFound> FindOnDisk(NodePointer self, const FindFile& find) {
  if (const auto held = OpenHeld(self, find.path)) return FileFound{true, held->size()};
  if (!IsInCheckpoint(find.path)) return FileFound{};
  return OnDisk<FileFound>(self, [path = find.path] {
    std::error_code unknown;
    if (!fs::is_regular_file(path, unknown)) return FileFound{};
    return FileFound{true, OpenFile(path)->size()};
  });
}

caf::result<FileRead> ReadOnDisk(NodePointer self, const ReadFile& read) {
  const auto part_of = [read](const ByteSource& file) {
    FileRead part;
    part.bytes.resize(std::min(read.bytes, kMostOfFile));
    file.Read(read.offset, part.bytes.data(), part.bytes.size());
    return part;
  };
  if (const auto held = OpenHeld(self, read.path)) return part_of(*held);
  return OnDisk<FileRead>(self, [read, part_of] {
    RequireInCheckpoint(read.path);
    return part_of(*OpenFile(read.path));
  });
}

caf::result<ManifestPublished> PublishOnDisk(NodePointer self, const PublishManifest& publish) {
  return OnDisk<ManifestPublished>(
      self, [publish, write = self->state.config.storage.publish, disk = self->state.config.disk] {
        RequireInCheckpoint(publish.folder + "/" + kManifestName);
        write(publish, disk);
        return ManifestPublished{};
      });
}

OpenElsewhere OpenerOf(NodePointer self) {
  const NodeState& s = self->state;
  if (s.nodes.size() < 2 && !s.config.held) return {};
  std::vector<Node> others;
  for (const auto& [process, node] : s.nodes) {
    if (process != s.config.self) others.push_back(node);
  }
  return [held = s.config.held, elsewhere = OpenOn(self->system(), std::move(others),
                                                   s.config.abort)](const std::string& path) {
    auto file = held ? held->Open(path) : nullptr;
    return file ? file : elsewhere(path);
  };
}

std::function<void()> OnNode(NodePointer self, std::function<void()> work) {
  NodeState& s = self->state;
  const std::int64_t number = s.next_continuation++;
  s.continuations[number] = std::move(work);
  return [number, weak = caf::actor_cast<caf::actor_addr>(Node(self))] {
    const auto node = caf::actor_cast<caf::actor>(weak);
    if (node) caf::anon_send(node, NodeWorkEnded{number});
  };
}

}  // namespace troupe
