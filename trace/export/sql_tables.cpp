#include "trace/export/sql_tables.hpp"

#include <stdexcept>
#include <string>
#include <vector>

namespace troupe {
namespace {

constexpr const char* kTables[] = {
    R"(CREATE TABLE processes (
  process INTEGER PRIMARY KEY,  -- number
  name TEXT,                    -- "n0"
  host TEXT, pid INTEGER,
  records INTEGER,              -- written since its start
  dropped INTEGER,              -- of these, overwritten by newer ones
  torn INTEGER,                 -- half-written when it ended
  clock_offset_ns INTEGER       -- added to its clock
);
)",
    R"(CREATE TABLE actors (
  actor TEXT,                   -- "stage language.s1 dp0"
  process TEXT                  -- processes.name
);
)",
    R"(CREATE TABLE stages (
  stage TEXT,                   -- "vision.s0"
  module TEXT                   -- "vision"
);
)",
    R"(CREATE TABLE edges (
  edge TEXT,                    -- "vision>language"
  source TEXT,                  -- stages.stage
  destination TEXT,             -- stages.stage
  boundary INTEGER              -- 1: between modules
);
)",
    R"(CREATE TABLE steps (
  step INTEGER PRIMARY KEY,     -- as the console prints them
  round INTEGER,
  begin_ns INTEGER, end_ns INTEGER
);
)",
    R"(CREATE TABLE messages (
  id INTEGER,                   -- as recorded
  cause INTEGER,                -- id of the message whose handler sent it
  type TEXT,
  sender TEXT, receiver TEXT,   -- actors.actor
  step INTEGER,                 -- training step; null in an evaluation
  microbatch INTEGER,           -- of the step, from 0
  window INTEGER,               -- of the step, if the module works in windows of microbatches
  round INTEGER,                -- training steps and evaluations, from 0 at the start of the run
  unit INTEGER,                 -- microbatch or window since the start of the run
  edge TEXT,                    -- edges.edge
  bytes INTEGER, credits INTEGER, mailbox INTEGER,
  trips INTEGER,                -- sequential trips between processes
  sent_ns INTEGER, arrived_ns INTEGER,
  begin_ns INTEGER, end_ns INTEGER   -- of its handler
);
)",
    R"(CREATE TABLE work (
  message INTEGER,              -- messages.id
  kind TEXT,                    -- F, B, W, reduce, update, exchange, offload, restore, checkpoint
  module TEXT, stage TEXT,      -- as in stages
  dp INTEGER, rank INTEGER,
  step INTEGER,                 -- training step; null in an evaluation
  microbatch INTEGER,           -- of the step, from 0; null except for F, B and W
  window INTEGER,               -- of the step, if the module works in windows of microbatches
  round INTEGER, unit INTEGER,  -- as in messages; unit of a checkpoint: its step
  begin_ns INTEGER, end_ns INTEGER,
  on_core_ns INTEGER,           -- part of this time on a core
  without_core_ns INTEGER,      -- part of this time runnable without a core
  gpu INTEGER,                  -- the process's number of its GPU; null: none
  -- memory of that GPU, or of its process, at the end:
  memory_bytes INTEGER,         -- in use
  reserved_bytes INTEGER,       -- in use or kept for reuse
  peak_bytes INTEGER            -- peak in use so far
);
)"};

/// A prepared statement that runs many times.
class Statement {
 public:
  Statement(sqlite3* database, const std::string& sql) {
    if (sqlite3_prepare_v2(database, sql.c_str(), -1, &statement_, nullptr) != SQLITE_OK) {
      throw std::runtime_error(std::string("SQLite: ") + sqlite3_errmsg(database));
    }
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  /// Negative numbers mean unknown and become null.
  Statement& Known(std::int64_t value) {
    value < 0 ? sqlite3_bind_null(statement_, ++place_)
              : sqlite3_bind_int64(statement_, ++place_, value);
    return *this;
  }
  Statement& Number(std::int64_t value) {
    sqlite3_bind_int64(statement_, ++place_, value);
    return *this;
  }
  Statement& Null() {
    sqlite3_bind_null(statement_, ++place_);
    return *this;
  }
  Statement& Text(const std::string& text) {
    sqlite3_bind_text(statement_, ++place_, text.data(), static_cast<int>(text.size()),
                      SQLITE_TRANSIENT);
    return *this;
  }
  void Insert() {
    if (sqlite3_step(statement_) != SQLITE_DONE) throw std::runtime_error("SQLite: out of memory");
    sqlite3_reset(statement_);
    place_ = 0;
  }

 private:
  sqlite3_stmt* statement_ = nullptr;
  int place_ = 0;
};

std::string InsertInto(const std::string& table, int columns) {
  std::string sql = "INSERT INTO " + table + " VALUES (";
  for (int c = 0; c < columns; ++c) sql += c == 0 ? "?" : ",?";
  return sql + ")";
}

/// The columns "microbatch" and "window".
void PutPlace(Statement& row, const UnitPlace& place) {
  row.Known(place.window ? -1 : place.number).Known(place.window ? place.number : -1);
}

void FillSmall(sqlite3* database, const TraceIndex& index, const Steps& steps) {
  const RunTrace& trace = index.trace();
  Statement processes(database, InsertInto("processes", 8));
  for (std::size_t p = 0; p < trace.processes.size(); ++p) {
    const TraceProcess& process = trace.processes[p];
    processes.Number(static_cast<std::int64_t>(p)).Text(process.name).Text(process.host);
    processes.Number(process.pid).Number(static_cast<std::int64_t>(process.noted));
    processes.Number(static_cast<std::int64_t>(process.dropped));
    processes.Number(static_cast<std::int64_t>(process.torn)).Number(process.clock_offset_ns);
    processes.Insert();
  }
  Statement actors(database, InsertInto("actors", 2));
  for (const TraceActor& actor : trace.actors) {
    actors.Text(actor.name);
    const auto process = static_cast<std::size_t>(actor.process);
    process < trace.processes.size() ? actors.Text(trace.processes[process].name) : actors.Null();
    actors.Insert();
  }
  Statement stages(database, InsertInto("stages", 2));
  for (const StageId& stage : trace.stages) {
    stages.Text(ToString(stage)).Text(stage.module).Insert();
  }
  Statement edges(database, InsertInto("edges", 4));
  for (const TraceLink& link : trace.links) {
    edges.Text(link.name).Text(index.StageName(link.from)).Text(index.StageName(link.to));
    edges.Number(link.boundary ? 1 : 0).Insert();
  }
  Statement spans(database, InsertInto("steps", 4));
  for (const StepSpan& span : steps.all()) {
    spans.Number(span.step).Number(span.round).Number(span.begin_ns).Number(span.end_ns).Insert();
  }
}

void FillLarge(sqlite3* database, const TraceIndex& index, const Steps& steps) {
  const RunTrace& trace = index.trace();
  const auto id_of = [&](int message) {
    return message < 0 ? -1 : static_cast<std::int64_t>(index.message(message).id);
  };
  const auto put_name = [&](Statement& into, int actor) {
    actor < 0 ? into.Null() : into.Text(index.ActorName(actor));
  };
  Statement messages(database, InsertInto("messages", 19));
  for (int i = 0; static_cast<std::size_t>(i) < trace.messages.size(); ++i) {
    const TraceMessage& m = index.message(i);
    messages.Number(static_cast<std::int64_t>(m.id));
    m.cause < 0 ? messages.Known(-1) : messages.Number(id_of(m.cause));
    messages.Text(index.TypeName(i));
    put_name(messages, m.sender);
    put_name(messages, m.receiver);
    messages.Known(steps.StepOf(index.RoundOf(i)));
    PutPlace(messages, index.places().OfMessage(index, i));
    messages.Known(index.RoundOf(i)).Known(m.unit);
    const bool linked = m.link >= 0 && static_cast<std::size_t>(m.link) < trace.links.size();
    linked ? messages.Text(trace.links[static_cast<std::size_t>(m.link)].name) : messages.Null();
    messages.Number(m.bytes).Known(m.credits).Number(m.mailbox);
    messages.Number(index.TripsOf(i));
    messages.Number(m.sent_ns).Number(m.arrived_ns).Known(m.begin_ns).Known(m.end_ns).Insert();
  }
  Statement work(database, InsertInto("work", 19));
  for (const TraceWork& one : trace.work) {
    const PassRecord& pass = one.pass;
    one.message < 0 ? work.Known(-1) : work.Number(id_of(one.message));
    work.Text(ToString(pass.kind)).Text(index.ModuleOf(pass.stage));
    work.Text(index.StageName(pass.stage));
    work.Number(pass.dp).Number(pass.rank).Known(steps.StepOf(pass.round));
    PutPlace(work, IsPass(pass.kind) ? index.places().Of(pass) : UnitPlace{});
    work.Number(pass.round).Number(pass.unit).Number(pass.begin_ns).Number(pass.end_ns);
    work.Known(one.cores.on_core_ns).Known(one.cores.without_core_ns);
    const WorkMemory& memory = one.memory;
    const auto positive = [](std::int64_t bytes) { return bytes > 0 ? bytes : -1; };
    work.Known(memory.gpu).Known(memory.known() ? memory.in_use_bytes : -1);
    work.Known(positive(memory.reserved_bytes)).Known(positive(memory.peak_bytes)).Insert();
  }
}

}  // namespace

std::span<const char* const> TraceTables() { return kTables; }

std::span<const std::string> TraceTableNames() {
  static const std::vector<std::string> names = {"processes", "actors",   "stages", "edges",
                                                 "steps",     "messages", "work"};
  return names;
}

void FillTables(sqlite3* database, const TraceIndex& index, const Steps& steps) {
  FillSmall(database, index, steps);
  FillLarge(database, index, steps);
}

}  // namespace troupe
