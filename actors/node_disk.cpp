// What a Node does with the disk of its machine for other processes, and what devices ask of theirs.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <caf/scoped_actor.hpp>

#include "actors/node_actor.hpp"
#include "files/byte_source.hpp"

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
  NodeState& s = self->state;
  const std::int64_t number = s.next_disk_work++;
  struct Outcome {
    Answer answer;
    std::string error;
  };
  const auto outcome = std::make_shared<Outcome>();
  Promise<Answer> promise = self->template make_response_promise<Answer>();
  s.disk_work[number] = [outcome, promise]() mutable {
    if (outcome->error.empty()) {
      promise.deliver(std::move(outcome->answer));
    } else {
      promise.deliver(MakeFailure(Failure(outcome->error)));
    }
  };
  auto run = [outcome, number, work = std::move(work),
              weak = caf::actor_cast<caf::actor_addr>(Node(self))] {
    try {
      outcome->answer = work();
    } catch (...) {
      outcome->error = ThrownFailure().text;
    }
    const auto node = caf::actor_cast<caf::actor>(weak);
    if (node) caf::anon_send(node, DiskWorkEnded{number});
  };
  if (s.config.writer) {
    s.config.writer->Run(std::move(run));
  } else {
    run();
  }
  return promise;
}

/// Throws an error that answers a request.
void Throw(const caf::error& reason) {
  const Failure failure = FailureOf(reason);
  throw FailureError(failure.text, failure.kind);
}

/// A file on the machine of another process.
class FileElsewhere : public ByteSource {
 public:
  FileElsewhere(caf::actor_system& system, Node node, std::string path, std::uint64_t size)
      : system_(system), node_(std::move(node)), path_(std::move(path)), size_(size) {}

  std::uint64_t size() const override { return size_; }

  void Read(std::uint64_t offset, void* data, std::size_t count) const override {
    auto* to = static_cast<std::byte*>(data);
    caf::scoped_actor self{system_};
    while (count > 0) {
      const std::uint64_t part = std::min<std::uint64_t>(count, kMostOfFile);
      self->request(node_, caf::infinite, ReadFile{path_, offset, part})
          .receive(
              [&](const FileRead& read) {
                if (read.bytes.size() != part) {
                  throw std::runtime_error(path_ + ": another node sent " +
                                           std::to_string(read.bytes.size()) + " bytes, expected " +
                                           std::to_string(part));
                }
                std::ranges::copy(read.bytes, to);
              },
              Throw);
      to += part;
      offset += part;
      count -= part;
    }
  }

 private:
  caf::actor_system& system_;
  Node node_;
  std::string path_;
  std::uint64_t size_;
};

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
  if (s.nodes.size() < 2) return {};
  return [&system = self->system(), own = s.config.self, held = s.config.held,
          nodes = s.nodes](const std::string& path) -> std::shared_ptr<const ByteSource> {
    if (auto file = held ? held->Open(path) : nullptr) return file;
    caf::scoped_actor me{system};
    for (const auto& [process, node] : nodes) {
      if (process == own) continue;
      FileFound found;
      me->request(node, caf::infinite, FindFile{path})
          .receive([&](const FileFound& answer) { found = answer; }, Throw);
      if (found.found) return std::make_shared<FileElsewhere>(system, node, path, found.bytes);
    }
    return nullptr;
  };
}

}  // namespace troupe
