#include "trace/analyze/words.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace troupe {

UnitNumbers::UnitNumbers(const TraceIndex& index) {
  std::map<std::pair<std::int64_t, int>, std::int64_t> firsts;
  for (const TraceWork& work : index.trace().work) {
    if (!IsPass(work.pass.kind)) continue;
    const auto at = firsts.try_emplace({work.pass.round, work.pass.stage}, work.pass.unit).first;
    at->second = std::min(at->second, work.pass.unit);
  }
  for (const auto& [key, unit] : firsts) firsts_.push_back({key.first, key.second, unit});
}

std::int64_t UnitNumbers::InRound(std::int64_t unit, std::int64_t round, int stage) const {
  const auto at = std::lower_bound(firsts_.begin(), firsts_.end(), std::pair(round, stage),
                                   [](const First& first, const auto& key) {
                                     return std::tie(first.round, first.stage) <
                                            std::tie(key.first, key.second);
                                   });
  if (at == firsts_.end() || at->round != round || at->stage != stage) return unit;
  return unit - at->unit;
}

std::string Describe(const PassRecord& pass) {
  const std::string kind = ToString(pass.kind);
  return IsPass(pass.kind) ? kind + " of microbatch " + std::to_string(pass.unit) : kind;
}

std::string DescribeWork(const TraceIndex& index, int work) {
  const PassRecord& pass = index.work(work).pass;
  return Describe(pass) + " of " + index.StageName(pass.stage);
}

std::string DescribeHandling(const TraceIndex& index, int message) {
  const int work = index.WorkOf(message);
  if (work >= 0) return DescribeWork(index, work);
  const TraceMessage& m = index.message(message);
  return index.TypeName(message) +
         (m.unit >= 0 ? " of microbatch " + std::to_string(m.unit) : std::string());
}

std::string DescribeEdge(const TraceIndex& index, int message) {
  const TraceMessage& m = index.message(message);
  const auto& links = index.trace().links;
  if (m.link < 0 || static_cast<std::size_t>(m.link) >= links.size()) {
    return index.TypeName(message);
  }
  return index.TypeName(message) + " over " + links[static_cast<std::size_t>(m.link)].name;
}

int StartOf(const TraceIndex& index, const TraceWork& work) {
  int at = work.message;
  // To the device, to its lock step, and then what the one who decides had been told.
  for (int hop = 0; hop < 4 && at >= 0; ++hop) {
    at = index.message(at).cause;
    if (at < 0) return -1;
    const ActorClass receiver = index.ClassOfActor(index.message(at).receiver);
    if (receiver != ActorClass::kLockStep && receiver != ActorClass::kDevice) return at;
  }
  return -1;
}

}  // namespace troupe
