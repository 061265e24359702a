#include "actors/files_elsewhere.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include <caf/scoped_actor.hpp>

#include "actors/actor_base.hpp"
#include "messages/disk.hpp"

namespace troupe {
namespace {

/// After this time a request is made again, unless the job has failed. Less than the time in which
/// a process has to end its actors.
constexpr std::chrono::seconds kAskAgain{1};

struct Asker {
  caf::actor_system& system;
  std::shared_ptr<AbortSignal> abort;

  template <class Answer, class Question>
  Answer Ask(const Node& node, const Question& question) const {
    caf::scoped_actor self{system};
    Answer answer;
    for (bool answered = false; !answered;) {
      abort->ThrowIfRaised();
      self->request(node, kAskAgain, question)
          .receive(
              [&](Answer& got) {
                answer = std::move(got);
                answered = true;
              },
              [](const caf::error& reason) {
                if (reason == caf::sec::request_timeout) return;
                const Failure failure = FailureOf(reason);
                throw FailureError(failure.text, failure.kind);
              });
    }
    return answer;
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
