#include "actors/wait_lists.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

namespace troupe {
namespace {

/// Actors by name. Several lists of one actor are joined.
using Actors = std::map<std::string, ActorWaits>;

Actors ByName(const std::vector<ActorWaits>& all) {
  Actors actors;
  for (const ActorWaits& one : all) {
    ActorWaits& actor = actors[one.who];
    if (actor.node.empty()) actor.node = one.node;
    actor.who = one.who;
    actor.busy = actor.busy || one.busy;
    actor.waits.insert(actor.waits.end(), one.waits.begin(), one.waits.end());
    actor.owes.insert(actor.owes.end(), one.owes.begin(), one.owes.end());
  }
  return actors;
}

std::string NameOf(const ActorWaits& actor) {
  return actor.node.empty() ? actor.who : actor.who + " on " + actor.node;
}

/// Returns null if the actor has no list.
const ActorWaits* Find(const Actors& actors, const std::string& name) {
  const auto found = actors.find(name);
  return found == actors.end() ? nullptr : &found->second;
}

/// "a waits for the gradient of microbatch 3 from b", then `rest`.
WaitRoot Sentence(const ActorWaits& actor, Wait wait, const ActorWaits* whom,
                  const PlaceText& place, const std::string& rest = "") {
  std::vector<std::string> actors = {wait.whom, actor.who};
  if (wait.whom.empty()) actors.erase(actors.begin());
  if (whom != nullptr) wait.whom = NameOf(*whom);
  return {NameOf(actor) + " waits for " + ToString(wait) + (place ? place(wait) : "") + rest,
          std::move(actors)};
}

bool Owes(const ActorWaits& actor, const Wait& wait, const std::string& to) {
  return actor.busy || std::any_of(actor.owes.begin(), actor.owes.end(), [&](const Owed& owed) {
           return owed.request == wait.request && owed.to == to;
         });
}

/// `waiting` waits for an answer that `peer` does not owe.
WaitRoot Lost(const ActorWaits& waiting, const Wait& wait, const ActorWaits& peer,
              const PlaceText& place) {
  for (const Wait& other : peer.waits) {
    const bool sent = other.request == 0 && other.message == wait.message &&
                      other.whom == waiting.who && other.number == wait.number;
    if (!sent) continue;
    return Sentence(peer, other, &waiting, place,
                    ", which has sent it and waits for the " + wait.what + ": the message is lost");
  }
  return Sentence(waiting, wait, &peer, place,
                  ", which does not owe it: a message between them is lost");
}

using Found = std::optional<WaitRoot>;

template <class Match>
Found First(const Actors& actors, Match match) {
  for (const auto& [name, actor] : actors) {
    for (const Wait& wait : actor.waits) {
      if (auto root = match(actor, wait, Find(actors, wait.whom))) return root;
    }
  }
  return std::nullopt;
}

}  // namespace

WaitRoot RootOf(const std::vector<ActorWaits>& all, const PlaceText& place) {
  const Actors actors = ByName(all);
  const auto lost = [&](const auto& actor, const auto& wait, const ActorWaits* whom) -> Found {
    if (wait.request == 0 || whom == nullptr || Owes(*whom, wait, actor.who)) return std::nullopt;
    return Lost(actor, wait, *whom, place);
  };
  const auto without_actor = [&](const auto& actor, const auto& wait,
                                 const ActorWaits* whom) -> Found {
    if (!wait.whom.empty() && !wait.on_its_way) return std::nullopt;
    return Sentence(actor, wait, whom, place);
  };
  const auto idle = [&](const auto& actor, const auto& wait, const ActorWaits* whom) -> Found {
    if (whom == nullptr || whom->busy || !whom->waits.empty()) return std::nullopt;
    return Sentence(
        actor, wait, whom, place,
        wait.request == 0 ? ", which waits for no actor" : ", which owes it and waits for nothing");
  };
  const auto busy = [&](const auto& actor, const auto& wait, const ActorWaits* whom) -> Found {
    if (whom == nullptr || !whom->busy) return std::nullopt;
    return Sentence(actor, wait, whom, place, ", which is busy");
  };
  const auto any = [&](const auto& actor, const auto& wait, const ActorWaits* whom) -> Found {
    return Sentence(actor, wait, whom, place);
  };
  if (const auto root = First(actors, lost)) return *root;
  if (const auto root = First(actors, without_actor)) return *root;
  if (const auto root = First(actors, idle)) return *root;
  if (const auto root = First(actors, busy)) return *root;
  return First(actors, any).value_or(WaitRoot{"cause unknown: no actor reported a wait", {}});
}

std::vector<ActorWaits> LastingWaits(const std::vector<ActorWaits>& before,
                                     const std::vector<ActorWaits>& after) {
  const Actors was = ByName(before);
  std::vector<ActorWaits> lasting;
  for (auto& [name, actor] : ByName(after)) {
    ActorWaits& kept = lasting.emplace_back(actor);
    const ActorWaits* const earlier = Find(was, name);
    kept.busy = actor.busy || earlier == nullptr || earlier->busy;
    std::erase_if(kept.waits, [&](const Wait& wait) {
      return earlier == nullptr || std::ranges::find(earlier->waits, wait) == earlier->waits.end();
    });
    if (earlier == nullptr) continue;
    const bool waited = !actor.waits.empty() || !earlier->waits.empty();
    kept.busy = kept.busy || (waited && kept.waits.empty());
    // A debt that has been paid in between was a debt when the waits were compared.
    kept.owes.insert(kept.owes.end(), earlier->owes.begin(), earlier->owes.end());
  }
  return lasting;
}

bool SameWaits(const std::vector<ActorWaits>& before, const std::vector<ActorWaits>& after) {
  const auto sorted = [](const std::vector<ActorWaits>& all) {
    Actors actors = ByName(all);
    for (auto& [name, actor] : actors) {
      std::sort(actor.waits.begin(), actor.waits.end());
      std::sort(actor.owes.begin(), actor.owes.end());
    }
    return actors;
  };
  const Actors was = sorted(before);
  const Actors is = sorted(after);
  return std::equal(was.begin(), was.end(), is.begin(), is.end(), [](const auto& a, const auto& b) {
    return a.first == b.first && a.second.busy == b.second.busy &&
           a.second.waits == b.second.waits && a.second.owes == b.second.owes;
  });
}

std::string CauseText(const Failure& failure) {
  std::string text = failure.text + '\n';
  for (const std::string& actor : failure.actors) text += actor + '\n';
  return text;
}

std::string ToJson(const std::vector<ActorWaits>& actors) {
  auto all = nlohmann::json::array();
  for (const ActorWaits& actor : actors) {
    auto waits = nlohmann::json::array();
    for (const Wait& wait : actor.waits) {
      waits.push_back({{"what", wait.what},
                       {"unit", ToString(wait.unit)},
                       {"number", wait.number},
                       {"whom", wait.whom},
                       {"request", wait.request},
                       {"message", wait.message},
                       {"on_its_way", wait.on_its_way}});
    }
    auto owes = nlohmann::json::array();
    for (const Owed& owed : actor.owes) {
      owes.push_back({{"to", owed.to}, {"request", owed.request}});
    }
    all.push_back({{"who", actor.who},
                   {"node", actor.node},
                   {"busy", actor.busy},
                   {"waits", std::move(waits)},
                   {"owes", std::move(owes)}});
  }
  return all.dump(1) + "\n";
}

}  // namespace troupe
