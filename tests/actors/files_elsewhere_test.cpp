#include "actors/files_elsewhere.hpp"

#include <chrono>
#include <thread>

#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>
#include <catch2/catch.hpp>

#include "actors/actor_base.hpp"

namespace troupe {
namespace {

/// A Node that has one file, of which each byte is its offset modulo 251.
struct PlayedNode {
  std::uint64_t bytes = 2 * kMostOfFile + 5;
  int leaves_unanswered = 0;  ///< reads, of the first ones
  std::function<void()> at_read = [] {};
  std::vector<caf::response_promise> unanswered = {};

  caf::behavior Behavior(caf::event_based_actor* self) {
    return {
        [this](const FindFile& find) {
          return FileFound{find.path == "/a", bytes};
        },
        [this, self](const ReadFile& read) -> caf::result<FileRead> {
          at_read();
          if (leaves_unanswered-- > 0) {
            unanswered.push_back(self->make_response_promise());
            return caf::delegated<FileRead>();
          }
          FileRead part;
          for (std::uint64_t i = 0; i < read.bytes; ++i) {
            part.bytes.push_back(std::byte((read.offset + i) % 251));
          }
          return part;
        },
    };
  }
};

caf::behavior Play(caf::event_based_actor* self, PlayedNode* played) {
  return played->Behavior(self);
}

class FilesElsewhereFixture {
 public:
  OpenElsewhere Open() {
    const auto actor = self->spawn(Play, &played);
    actors.push_back(actor);
    return OpenOn(system, {caf::actor_cast<Node>(actor)}, abort);
  }
  ~FilesElsewhereFixture() {
    for (const auto& actor : actors) self->send_exit(actor, caf::exit_reason::kill);
    self->await_all_other_actors_done();
  }

  PlayedNode played;
  caf::actor_system_config config;
  caf::actor_system system{config};
  caf::scoped_actor self{system};
  std::vector<caf::actor> actors;
  std::shared_ptr<AbortSignal> abort = std::make_shared<AbortSignal>();
};

}  // namespace

// ThreadSanitizer does not see the order that CAF's scheduler makes, and reports the played Node.
#ifndef __SANITIZE_THREAD__

TEST_CASE_METHOD(FilesElsewhereFixture, "a file of another process is read in parts",
                 "[actors][node]") {
  played.at_read = [] { std::this_thread::sleep_for(std::chrono::milliseconds(300)); };
  const auto open = Open();
  CHECK(open("/b") == nullptr);
  const auto file = open("/a");
  REQUIRE(file);
  CHECK(file->size() == played.bytes);
  std::vector<std::byte> read(kMostOfFile + 7);
  file->Read(3, read.data(), read.size());
  bool same = true;
  for (std::size_t i = 0; i < read.size(); ++i) same &= read[i] == std::byte((3 + i) % 251);
  CHECK(same);
}

TEST_CASE_METHOD(FilesElsewhereFixture, "a read of a lost process ends with the job",
                 "[actors][node]") {
  played.leaves_unanswered = 1000;
  played.at_read = [&] { abort->Raise("a process is lost"); };
  const auto file = Open()("/a");
  REQUIRE(file);
  std::byte byte = {};
  CHECK_THROWS_AS(file->Read(0, &byte, 1), Aborted);
  CHECK_THROWS_AS(Open()("/a"), Aborted);
}

#endif

}  // namespace troupe
