#include "actors/files_elsewhere.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>

#include "actors/actor_base.hpp"
#include "messages/disk.hpp"

namespace troupe {
namespace {

/// Asks a Node and blocks until it answers, or the job fails.
struct Asker {
  caf::actor_system& system;
  std::shared_ptr<AbortSignal> abort;

  template <class Answer, class Question>
  Answer Ask(const Node& node, const Question& question) const {
    struct Waiting {
      std::mutex mutex;
      std::condition_variable changed;
      bool aborted = false;
      std::optional<Answer> answer;
      std::optional<Failure> failure;
    };
    const auto waiting = std::make_shared<Waiting>();
    const auto end = [waiting](auto change) {
      {
        const std::lock_guard lock(waiting->mutex);
        change(*waiting);
      }
      waiting->changed.notify_all();
    };
    const caf::actor asking = system.spawn([=](caf::event_based_actor* self) {
      self->request(node, caf::infinite, question)
          .then([end](Answer& got) { end([&](Waiting& it) { it.answer = std::move(got); }); },
                [end](const caf::error& reason) {
                  end([&](Waiting& it) { it.failure = FailureOf(reason); });
                });
    });
    const auto subscription =
        abort->Subscribe([end](const Failure&) { end([](Waiting& it) { it.aborted = true; }); });
    std::unique_lock lock(waiting->mutex);
    waiting->changed.wait(lock,
                          [&] { return waiting->aborted || waiting->answer || waiting->failure; });
    if (waiting->answer) return *std::move(waiting->answer);
    if (waiting->failure) throw FailureError(waiting->failure->text, waiting->failure->kind);
    lock.unlock();
    caf::anon_send_exit(asking, caf::exit_reason::kill);
    throw Aborted(abort->cause());
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
