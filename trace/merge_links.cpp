#include <map>
#include <string_view>
#include <utility>

#include "layout/at.hpp"
#include "trace/merge_parts.hpp"

namespace troupe {
namespace {

/// "stage vision.s0 dp1" -> "vision.s0"; empty for others.
std::string_view StageOf(const std::string& actor) {
  if (actor.rfind("stage ", 0) != 0) return {};
  const std::string_view rest = std::string_view(actor).substr(6);
  return rest.substr(0, rest.find(' '));
}
/// "leader vision>language/source.0" and "phase vision>language" -> "vision>language".
std::string_view EdgeOf(const std::string& actor) {
  for (const std::string_view prefix : {"leader ", "phase "}) {
    if (actor.rfind(prefix, 0) != 0) continue;
    const std::string_view rest = std::string_view(actor).substr(prefix.size());
    return rest.substr(0, rest.find('/'));
  }
  return {};
}

}  // namespace

void SetLinks(RunTrace& trace) {
  std::map<std::string, int, std::less<>> boundaries;
  std::map<std::pair<std::string, std::string>, int> hops;
  for (std::size_t l = 0; l < trace.links.size(); ++l) {
    const TraceLink& link = trace.links[l];
    if (link.boundary) boundaries.emplace(link.name, static_cast<int>(l));
    if (link.from < 0 || link.from >= std::ssize(trace.stages)) continue;
    if (link.to < 0 || link.to >= std::ssize(trace.stages)) continue;
    hops.emplace(std::pair(trace.stages[At(link.from)], trace.stages[At(link.to)]),
                 static_cast<int>(l));
  }
  std::map<std::pair<int, int>, int> known;
  for (TraceMessage& message : trace.messages) {
    if (message.sender < 0 || message.receiver < 0) continue;
    const auto [at, added] = known.emplace(std::pair(message.sender, message.receiver), -1);
    if (added) {
      const std::string& from = trace.actors[At(message.sender)].name;
      const std::string& to = trace.actors[At(message.receiver)].name;
      for (const std::string_view edge : {EdgeOf(from), EdgeOf(to)}) {
        const auto found = boundaries.find(edge);
        if (!edge.empty() && found != boundaries.end()) at->second = found->second;
      }
      for (const auto& pair :
           {std::pair(StageOf(from), StageOf(to)), std::pair(StageOf(to), StageOf(from))}) {
        const auto found = hops.find({std::string(pair.first), std::string(pair.second)});
        if (found != hops.end() && at->second < 0) at->second = found->second;
      }
    }
    message.link = at->second;
  }
}

}  // namespace troupe
