#include "actors/waits_file.hpp"

#include <nlohmann/json.hpp>
#include <span>

#include "files/output_file.hpp"

namespace troupe {

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
                       {"unit", wait.unit},
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

void WriteTextFile(const std::string& path, const std::string& text) {
  ReplaceFile(path, [&](OutputFile& file) { file.Write(std::as_bytes(std::span(text))); });
}

}  // namespace troupe
