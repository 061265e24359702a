#include "trace/actor_id.hpp"

#include <array>
#include <charconv>

namespace troupe {
namespace {

/// Rejects larger numbers in a file: no job has a million actors of a kind.
constexpr int kMostOfAKind = 1 << 20;

/// Removes a number and the blank after it from `text`. Returns false if it does not begin with
/// them.
bool TakeField(std::string_view& text, int& number) {
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc::invalid_argument || rest == end || *rest != ' ') return false;
  if (error != std::errc() || number < 0 || number >= kMostOfAKind) number = -1;
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()) + 1);
  return true;
}

}  // namespace

std::string ToString(const ActorId& id) {
  const auto replica = [&] { return " dp" + std::to_string(id.replica); };
  switch (id.kind) {
    case ActorKind::kDirector:
      return "director";
    case ActorKind::kNode:
      return "node " + id.of;
    case ActorKind::kStage:
      return "stage " + id.of + replica();
    case ActorKind::kLeader:
      return "leader " + id.of + '/' + ToString(id.end) + '.' + std::to_string(id.replica);
    case ActorKind::kPhase:
      return "phase " + id.of;
    case ActorKind::kFeed:
      return "feed of " + id.of + replica();
    case ActorKind::kUpdate:
      return "update of " + id.of;
    case ActorKind::kLockStep:
      return id.set >= 0 ? "lock step " + std::to_string(id.set)
                         : "lock step of " + id.of + replica();
    case ActorKind::kDevice:
      return "device " + std::to_string(id.rank);
    case ActorKind::kDispatcher:
      return "dispatcher of " + id.of;
    case ActorKind::kDataWorker:
      return "data worker " + std::to_string(id.set) + " of " + id.of;
    case ActorKind::kMachineLink:
      return "feed machine " + id.of;
    case ActorKind::kOther:
      break;
  }
  return id.of;
}

std::string EncodeActor(const ActorId& id) {
  std::string line;
  for (const int number : {static_cast<int>(id.kind), static_cast<int>(id.end), id.stage,
                           id.replica, id.rank, id.set, id.link}) {
    line += std::to_string(number) + ' ';
  }
  return line + id.of;
}

ActorId DecodeActor(std::string_view line) {
  std::array<int, 7> numbers{};
  std::string_view rest = line;
  for (int& number : numbers) {
    if (!TakeField(rest, number)) return {.of = std::string(line)};
  }
  const auto [kind, end, stage, replica, rank, set, link] = numbers;
  ActorId id{.stage = stage, .replica = replica, .rank = rank, .set = set, .link = link};
  if (kind >= 0 && kind < kNumActorKinds) id.kind = static_cast<ActorKind>(kind);
  if (end == 1 || end == 2) id.end = static_cast<EdgeEnd>(end);
  id.of = rest;
  return id;
}

std::string EncodeStage(const StageId& stage) {
  return std::to_string(stage.number) + ' ' + stage.module;
}

StageId DecodeStage(std::string_view line) {
  StageId stage{"", -1};
  TakeField(line, stage.number);
  stage.module = line;
  return stage;
}

}  // namespace troupe
