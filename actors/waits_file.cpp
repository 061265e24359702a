#include "actors/waits_file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace troupe {

std::string ToJson(const std::vector<ActorWaits>& actors) {
  auto all = nlohmann::json::array();
  for (const ActorWaits& actor : actors) {
    auto waits = nlohmann::json::array();
    for (const Wait& wait : actor.waits) {
      waits.push_back({{"what", wait.what},
                       {"unit", wait.unit},
                       {"number", wait.number},
                       {"whom", wait.whom},
                       {"asked", wait.asked},
                       {"answer", wait.answer}});
    }
    auto owes = nlohmann::json::array();
    for (const Owed& owed : actor.owes) {
      owes.push_back({{"what", owed.what}, {"number", owed.number}, {"to", owed.to}});
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
  const std::string beside = path + ".tmp";
  std::ofstream out(beside, std::ios::binary);
  out << text;
  out.close();
  if (!out || std::rename(beside.c_str(), path.c_str()) != 0) {
    throw std::runtime_error(path + ": cannot write: " + std::strerror(errno));
  }
}

}  // namespace troupe
