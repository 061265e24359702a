#include "trace/analyze/live.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "trace/analyze/table.hpp"

namespace troupe {
namespace {

/// Adds the actors of one file's process.
class ProcessNow {
 public:
  ProcessNow(const TraceFile& file, std::int64_t now_ns) : now_ns_(now_ns) {
    for (const TraceName& name : file.names) {
      if (name.kind == 'P') process_ = name.text;
      if (name.kind == 'T') types_[name.number] = name.text;
      if (name.kind == 'D') sources_[name.number] = name.text;
      if (name.kind != 'A') continue;
      const ActorId id = DecodeActor(name.text);
      actors_[static_cast<ActorNumber>(name.number)].name = ToString(id);
    }
    for (const TraceRecord& record : file.records) {
      if (record.kind == RecordKind::kMessage && record.sent_ns <= now_ns) Add(record);
    }
  }

  void MoveTo(std::vector<ActorNow>& all) {
    for (auto& [number, actor] : actors_) {
      actor.process = process_;
      if (!actor.name.empty()) all.push_back(std::move(actor));
    }
  }

 private:
  void Add(const TraceRecord& record) {
    if (record.credits >= 0) {
      const auto sender = actors_.find(record.sender);
      if (sender != actors_.end()) sender->second.credits = record.credits;
    }
    const auto found = actors_.find(record.receiver);
    if (found == actors_.end()) return;
    ActorNow& actor = found->second;
    const auto source = sources_.find(record.stage);
    const std::string type =
        types_[record.type] + (source == sources_.end() ? "" : " of " + source->second);
    if (record.begin_ns == 0) {
      ++actor.mailbox;
      const std::int64_t waited = now_ns_ - record.arrived_ns;
      if (waited > actor.oldest_ns || actor.oldest.empty()) {
        actor.oldest_ns = std::max<std::int64_t>(waited, 0);
        actor.oldest = type;
      }
    } else if (record.end_ns == 0) {
      actor.handler = type;
      actor.handler_ns = std::max<std::int64_t>(now_ns_ - record.begin_ns, 0);
    } else {
      const std::int64_t ago = now_ns_ - record.end_ns;
      if (actor.last.empty() || ago <= actor.last_ns) {
        actor.last = type;
        actor.last_ns = std::max<std::int64_t>(ago, 0);
        actor.last_took_ns = record.end_ns - record.begin_ns;
      }
    }
  }

  const std::int64_t now_ns_;
  std::string process_;
  std::map<std::int64_t, std::string> types_;
  std::map<std::int64_t, std::string> sources_;
  std::map<ActorNumber, ActorNow> actors_;
};

Cell Ago(const std::string& what, std::int64_t ns) {
  return what.empty() ? Cell("-") : Cell(what + " " + Duration(ns));
}

}  // namespace

std::vector<ActorNow> ActorsNow(const std::vector<TraceFile>& files, std::int64_t now_ns) {
  std::vector<ActorNow> all;
  for (const TraceFile& file : files) ProcessNow(file, now_ns).MoveTo(all);
  std::sort(all.begin(), all.end(), [](const ActorNow& a, const ActorNow& b) {
    return std::tie(a.process, a.name) < std::tie(b.process, b.name);
  });
  return all;
}

std::int64_t NewestTime(const std::vector<TraceFile>& files) {
  std::int64_t newest = 0;
  for (const TraceFile& file : files) {
    for (const TraceRecord& record : file.records) {
      newest = std::max({newest, record.sent_ns, record.begin_ns, record.end_ns});
    }
  }
  return newest;
}

std::string Format(std::vector<ActorNow> actors, std::size_t most) {
  std::stable_sort(actors.begin(), actors.end(), [](const ActorNow& a, const ActorNow& b) {
    return std::tuple(a.handler_ns, a.oldest_ns) > std::tuple(b.handler_ns, b.oldest_ns);
  });
  Table table;
  table.columns = {"actor",          "process",           "handles", "mailbox",
                   "oldest message", "handled last, ago", "took",    "credits"};
  for (const ActorNow& actor : actors) {
    if (table.rows.size() == most) break;
    table.rows.push_back({actor.name, actor.process, Ago(actor.handler, actor.handler_ns),
                          actor.mailbox, Ago(actor.oldest, actor.oldest_ns),
                          Ago(actor.last, actor.last_ns),
                          actor.last.empty() ? Cell("-") : Cell(Duration(actor.last_took_ns)),
                          actor.credits < 0 ? Cell("-") : Cell(actor.credits)});
  }
  std::string text = ToText(table);
  if (actors.size() > most) {
    text += "and " + std::to_string(actors.size() - most) + " more\n";
  }
  return text;
}

}  // namespace troupe
