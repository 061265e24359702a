#include "app/event_file.hpp"

#include <filesystem>

#include <catch2/catch.hpp>

#include "tests/app/event_reader.hpp"
#include "tests/data/scratch_folder.hpp"

namespace troupe {
namespace {

std::vector<std::string> FilesIn(const std::string& folder) {
  std::vector<std::string> files;
  if (!std::filesystem::exists(folder)) return files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files.push_back(entry.path());
  return files;
}

std::vector<ReadEvent> EventsIn(const std::string& folder) {
  const auto files = FilesIn(folder);
  REQUIRE(files.size() == 1);
  const std::string bytes = BytesOf(files.front());
  return EventReader(bytes).ReadAll();
}

}  // namespace

TEST_CASE("an event file holds its version and then the scalars of each step", "[app]") {
  const ScratchFolder scratch;
  const std::string folder = scratch / "tensorboard";
  {
    EventFile file(folder, 0);
    CHECK(FilesIn(folder).empty());
    file.Write(1, {{"train/loss", 5.25}, {"learning_rate/vision", 1e-3}});
    file.Write(300, {{"train/loss", -0.5}});
  }
  CHECK(std::filesystem::path(FilesIn(folder).at(0))
            .filename()
            .string()
            .starts_with("events.out.tfevents."));
  const auto events = EventsIn(folder);
  REQUIRE(events.size() == 3);
  CHECK(events[0].file_version == "brain.Event:2");
  CHECK(events[1].step == 1);
  CHECK(events[1].scalars ==
        std::map<std::string, float>{{"train/loss", 5.25F}, {"learning_rate/vision", 1e-3F}});
  CHECK(events[2].step == 300);
  CHECK(events[2].scalars == std::map<std::string, float>{{"train/loss", -0.5F}});
  CHECK(events[0].wall_s > 1.6e9);
  CHECK(events[2].wall_s >= events[1].wall_s);
}

TEST_CASE("a resumed run begins a file that takes back the steps it repeats", "[app]") {
  const ScratchFolder scratch;
  EventFile(scratch / "tb", 8).Write(9, {{"train/loss", 2.0}});
  const auto events = EventsIn(scratch / "tb");
  REQUIRE(events.size() == 3);
  CHECK(events[1].starts_session);
  CHECK(events[1].step == 9);
  CHECK_FALSE(events[2].starts_session);
  CHECK(events[2].step == 9);
}

TEST_CASE("the reader of event files notices every wrong byte", "[app]") {
  const std::string good = VersionRecord(1.5) + ScalarsRecord(2.5, 7, {{"a/b", 3.0}});
  CHECK(EventReader(good).ReadAll().size() == 2);
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    CHECK_THROWS(EventReader(bad).ReadAll());
  }
  CHECK_THROWS(EventReader(good.substr(0, good.size() - 1)).ReadAll());
}

}  // namespace troupe
