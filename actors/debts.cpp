#include "actors/debts.hpp"

#include <array>
#include <map>
#include <string>

#include <caf/actor_cast.hpp>

#include "layout/text.hpp"
#include "messages/facts.hpp"

namespace troupe {
namespace {

const char* UnitName(RequestUnit unit) {
  static constexpr std::array kNames = {"", "microbatch", "window", "round"};
  return kNames.at(static_cast<std::size_t>(unit));
}

std::string RequestName(const RequestKind& kind) {
  return kind.words.request != nullptr ? kind.words.request : MessageName(kind.type);
}
std::string AnswerName(const RequestKind& kind) {
  return kind.words.answer != nullptr ? kind.words.answer : "answer to " + RequestName(kind);
}

/// " on devices 1, 2"
std::string OnRanks(const std::vector<int>& ranks) {
  if (ranks.empty()) return "";
  return (ranks.size() == 1 ? " on device " : " on devices ") +
         Listed(ranks, ", ", [](int rank) { return std::to_string(rank); });
}

Wait InWords(const ExpectedWait& expected, const ActorKeyOf& key_of) {
  Wait wait{"", UnitName(expected.unit), expected.number, ""};
  switch (expected.what) {
    case ExpectedWait::What::kRequest:
      wait.what = RequestName(expected.kind);
      wait.message = MessageName(expected.kind.type);
      break;
    case ExpectedWait::What::kRequestBytes:
      wait.what = "bytes of the " + RequestName(expected.kind);
      wait.on_its_way = true;
      break;
    case ExpectedWait::What::kAnswerBytes:
      wait.what = "bytes of the " + AnswerName(expected.kind);
      wait.on_its_way = true;
      break;
    case ExpectedWait::What::kTurn:
      wait.what = AnswerName(expected.kind) + " that is first in the order of rank " +
                  std::to_string(expected.rank);
      wait.unit += " of the round";
      break;
  }
  if (const auto* const id = std::get_if<ActorId>(&expected.from)) {
    wait.whom = ToString(*id);
  } else {
    wait.key = key_of(std::get<caf::actor_addr>(expected.from));
  }
  return wait;
}

}  // namespace

Wait InWords(const SentRequest& sent, const ActorKeyOf& key_of) {
  return {.what = AnswerName(sent.kind) + OnRanks(sent.ranks),
          .unit = UnitName(sent.kind.words.unit),
          .number = sent.number,
          .whom = "",
          .request = sent.request,
          .message = MessageName(sent.kind.type),
          .key = key_of(sent.to)};
}

void AddInWords(const Debts& debts, const ActorKeyOf& key_of, ActorWaits& waits) {
  for (const ExpectedWait& expected : debts.expected)
    waits.waits.push_back(InWords(expected, key_of));
  for (const SentRequest& sent : debts.sent) waits.waits.push_back(InWords(sent, key_of));
  for (const caf::response_promise& owed : debts.received) {
    waits.owes.push_back({"", owed.id().request_id().integer_value(),
                          key_of(caf::actor_cast<caf::actor_addr>(owed.source()))});
  }
}

void NameActors(std::vector<ActorWaits>& all) {
  std::map<ActorKey, std::string> names;
  for (const ActorWaits& actor : all) names[actor.key] = actor.who;
  const auto name = [&](std::string& text, const ActorKey& key) {
    if (!text.empty() || key == ActorKey()) return;
    const auto found = names.find(key);
    text =
        found != names.end() ? found->second : "an actor of process " + std::to_string(key.process);
  };
  for (ActorWaits& actor : all) {
    for (Wait& wait : actor.waits) name(wait.whom, wait.key);
    for (Owed& owed : actor.owes) name(owed.to, owed.key);
  }
}

}  // namespace troupe
