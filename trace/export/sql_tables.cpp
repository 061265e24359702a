#include "trace/export/sql_tables.hpp"

#include <stdexcept>
#include <string>

namespace troupe {
namespace {

constexpr const char* kTables[] = {
    R"(CREATE TABLE processes (
  process INTEGER PRIMARY KEY,  -- number
  name TEXT,                    -- "n0"
  host TEXT, pid INTEGER,
  records INTEGER,              -- noted since its start
  dropped INTEGER,              -- of these, overwritten by newer ones
  torn INTEGER,                 -- half-written when it ended
  clock_offset_ns INTEGER       -- added to its clock
);
)",
    R"(CREATE TABLE actors (
  actor INTEGER PRIMARY KEY,
  name TEXT,                    -- "stage language.s1 dp0"
  process INTEGER               -- processes.process
);
)",
    R"(CREATE TABLE stages (
  stage INTEGER PRIMARY KEY,
  name TEXT                     -- "vision.s0"
);
)",
    R"(CREATE TABLE edges (
  edge INTEGER PRIMARY KEY,
  name TEXT,                    -- "vision>language"
  source INTEGER,               -- stages.stage
  destination INTEGER,
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
  cause INTEGER,                -- id of the message whose handling sent it
  type TEXT,
  sender INTEGER, receiver INTEGER,  -- actors.actor
  step INTEGER,                 -- training step; null in an evaluation
  round INTEGER,
  unit INTEGER,                 -- microbatch since the start of the run
  edge INTEGER,                 -- edges.edge
  bytes INTEGER, credits INTEGER, mailbox INTEGER,
  sent_ns INTEGER, arrived_ns INTEGER,
  begin_ns INTEGER, end_ns INTEGER   -- of its handler
);
)",
    R"(CREATE TABLE work (
  message INTEGER,              -- messages.id
  kind TEXT,                    -- F, B, W, reduce, update, exchange, offload, restore
  stage INTEGER,                -- stages.stage
  dp INTEGER, rank INTEGER,
  step INTEGER, round INTEGER, unit INTEGER,
  begin_ns INTEGER, end_ns INTEGER,
  gpu INTEGER,                  -- of its process, that it ran on; null: none
  -- of that GPU, or of its process, when it ended:
  memory_bytes INTEGER,         -- in use
  reserved_bytes INTEGER,       -- in use or kept for reuse
  peak_bytes INTEGER            -- the most in use until then
);
)"};

/// A statement that is stepped many times.
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

  /// Negative numbers are null: what a trace does not know.
  Statement& Known(std::int64_t value) {
    value < 0 ? sqlite3_bind_null(statement_, ++place_)
              : sqlite3_bind_int64(statement_, ++place_, value);
    return *this;
  }
  Statement& Number(std::int64_t value) {
    sqlite3_bind_int64(statement_, ++place_, value);
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

void FillSmall(sqlite3* database, const RunTrace& trace, const Steps& steps) {
  Statement processes(database, InsertInto("processes", 8));
  for (std::size_t p = 0; p < trace.processes.size(); ++p) {
    const TraceProcess& process = trace.processes[p];
    processes.Number(static_cast<std::int64_t>(p)).Text(process.name).Text(process.host);
    processes.Number(process.pid).Number(static_cast<std::int64_t>(process.noted));
    processes.Number(static_cast<std::int64_t>(process.dropped));
    processes.Number(static_cast<std::int64_t>(process.torn)).Number(process.clock_offset_ns);
    processes.Insert();
  }
  Statement actors(database, InsertInto("actors", 3));
  for (std::size_t a = 0; a < trace.actors.size(); ++a) {
    actors.Number(static_cast<std::int64_t>(a)).Text(trace.actors[a].name);
    actors.Number(trace.actors[a].process).Insert();
  }
  Statement stages(database, InsertInto("stages", 2));
  for (std::size_t s = 0; s < trace.stages.size(); ++s) {
    stages.Number(static_cast<std::int64_t>(s)).Text(trace.stages[s]).Insert();
  }
  Statement edges(database, InsertInto("edges", 5));
  for (std::size_t e = 0; e < trace.links.size(); ++e) {
    const TraceLink& link = trace.links[e];
    edges.Number(static_cast<std::int64_t>(e)).Text(link.name).Number(link.from).Number(link.to);
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
  Statement messages(database, InsertInto("messages", 16));
  for (int i = 0; static_cast<std::size_t>(i) < trace.messages.size(); ++i) {
    const TraceMessage& m = index.message(i);
    messages.Number(static_cast<std::int64_t>(m.id));
    m.cause < 0 ? messages.Known(-1) : messages.Number(id_of(m.cause));
    messages.Text(index.TypeName(i)).Known(m.sender).Known(m.receiver);
    messages.Known(steps.StepOf(index.RoundOf(i))).Known(index.RoundOf(i)).Known(m.unit);
    messages.Known(m.link).Number(m.bytes).Known(m.credits).Number(m.mailbox);
    messages.Number(m.sent_ns).Number(m.arrived_ns).Known(m.begin_ns).Known(m.end_ns).Insert();
  }
  Statement work(database, InsertInto("work", 14));
  for (const TraceWork& one : trace.work) {
    const PassRecord& pass = one.pass;
    one.message < 0 ? work.Known(-1) : work.Number(id_of(one.message));
    work.Text(ToString(pass.kind)).Number(pass.stage).Number(pass.dp).Number(pass.rank);
    work.Known(steps.StepOf(pass.round)).Number(pass.round).Number(pass.unit);
    work.Number(pass.begin_ns).Number(pass.end_ns);
    const WorkMemory& memory = one.memory;
    const auto positive = [](std::int64_t bytes) { return bytes > 0 ? bytes : -1; };
    work.Known(memory.gpu).Known(memory.known() ? memory.in_use_bytes : -1);
    work.Known(positive(memory.reserved_bytes)).Known(positive(memory.peak_bytes)).Insert();
  }
}

}  // namespace

std::span<const char* const> TraceTables() { return kTables; }

void FillTables(sqlite3* database, const TraceIndex& index, const Steps& steps) {
  FillSmall(database, index.trace(), steps);
  FillLarge(database, index, steps);
}

}  // namespace troupe
