#include "actors/files_elsewhere.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>

#include "actors/actor_base.hpp"
#include "messages/disk.hpp"
#include "transport/awaited.hpp"

namespace troupe {
namespace {

/// Asks a Node and blocks until it answers, or the job fails.
struct Asker {
  caf::actor_system& system;
  std::shared_ptr<AbortSignal> abort;

  template <class Answer, class Question>
  Answer Ask(const Node& node, const Question& question) const {
    const Awaited<Answer> awaited;
    const caf::actor asking = system.spawn([=](caf::event_based_actor* self) {
      self->request(node, caf::infinite, question)
          .then([awaited](Answer& answer) { awaited.Deliver(std::move(answer)); },
                [awaited](const caf::error& reason) { awaited.Fail(FailureOf(reason)); });
    });
    try {
      return awaited.Wait(*abort);
    } catch (...) {
      caf::anon_send_exit(asking, caf::exit_reason::kill);  // a lost Node does not answer
      throw;
    }
  }
};

class FileElsewhere : public ByteSource {
 public:
  FileElsewhere(Asker asker, Node node, std::string path, std::uint64_t size)
      : asker_(std::move(asker)), node_(std::move(node)), path_(std::move(path)), size_(size) {}

  std::uint64_t size() const override { return size_; }

  void Read(std::uint64_t offset, void* data, std::size_t count) const override {
    auto* to = static_cast<std::byte*>(data);
    while (count > 0) {
      const std::uint64_t part = std::min<std::uint64_t>(count, kMostOfFile);
      const auto read = asker_.Ask<FileRead>(node_, ReadFile{path_, offset, part});
      if (read.bytes.size() != part) {
        throw std::runtime_error(path_ + ": another node sent " +
                                 std::to_string(read.bytes.size()) + " bytes, expected " +
                                 std::to_string(part));
      }
      std::ranges::copy(read.bytes, to);
      to += part;
      offset += part;
      count -= part;
    }
  }

 private:
  Asker asker_;
  Node node_;
  std::string path_;
  std::uint64_t size_;
};

}  // namespace

OpenElsewhere OpenOn(caf::actor_system& system, std::vector<Node> nodes,
                     std::shared_ptr<AbortSignal> abort) {
  return [asker = Asker{system, std::move(abort)},
          nodes = std::move(nodes)](const std::string& path) -> std::shared_ptr<const ByteSource> {
    for (const Node& node : nodes) {
      const auto found = asker.Ask<FileFound>(node, FindFile{path});
      if (found.found) return std::make_shared<FileElsewhere>(asker, node, path, found.bytes);
    }
    return nullptr;
  };
}

}  // namespace troupe
