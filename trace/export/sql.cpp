#include "trace/export/sql.hpp"

#include <optional>
#include <sqlite3.h>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "layout/text.hpp"

namespace troupe {
namespace {

struct TableText {
  const char* name;
  const char* columns;  ///< with a comment after each
};

constexpr TableText kTables[] = {
    {"processes", R"(  process INTEGER PRIMARY KEY,  -- number
  name TEXT,                    -- "n0"
  host TEXT, pid INTEGER,
  records INTEGER,              -- written since its start
  dropped INTEGER,              -- of these, overwritten by newer ones
  torn INTEGER,                 -- half-written when it ended
  clock_offset_ns INTEGER       -- added to its clock)"},
    {"actors", R"(  actor TEXT,                   -- "stage language.s1 dp0"
  process TEXT                  -- processes.name)"},
    {"stages", R"(  stage TEXT,                   -- "vision.s0"
  module TEXT                   -- "vision")"},
    {"edges", R"(  edge TEXT,                    -- "vision>language"
  source TEXT,                  -- stages.stage
  destination TEXT,             -- stages.stage
  boundary INTEGER              -- 1: between modules)"},
    {"steps", R"(  step INTEGER PRIMARY KEY,     -- as the console prints them
  round INTEGER,
  begin_ns INTEGER, end_ns INTEGER)"},
    {"messages", R"(  id INTEGER,                   -- as recorded
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
  begin_ns INTEGER, end_ns INTEGER   -- of its handler)"},
    {"work", R"(  message INTEGER,              -- messages.id
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
  peak_bytes INTEGER            -- peak in use so far)"}};

struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

/// Null if SQLite refuses `sql`. `rest` is the text after the first statement.
Statement Prepare(sqlite3* database, const std::string& sql, const char** rest = nullptr) {
  sqlite3_stmt* statement = nullptr;
  sqlite3_prepare_v2(database, sql.c_str(), -1, &statement, rest);
  return Statement(statement);
}

[[noreturn]] void Fail(sqlite3* database) {
  throw std::runtime_error(std::string("SQLite: ") + sqlite3_errmsg(database));
}

/// Inserts rows into one table. Values are integers, texts, or optionals of them.
class Inserter {
 public:
  Inserter(sqlite3* database, const std::string& table) : database_(database), table_(table) {}

  template <class... Values>
  void Add(const Values&... values) {
    if (statement_ == nullptr) {
      const std::vector<std::string> places(sizeof...(values), "?");
      statement_ = Prepare(database_, "INSERT INTO " + table_ + " VALUES (" + Listed(places) + ")");
      if (statement_ == nullptr) Fail(database_);
    }
    int place = 0;
    (Bind(++place, values), ...);
    if (sqlite3_step(statement_.get()) != SQLITE_DONE) Fail(database_);
    sqlite3_reset(statement_.get());
  }

 private:
  template <class Value>
  void Bind(int place, const Value& value) {
    if constexpr (std::is_integral_v<Value>) {
      sqlite3_bind_int64(statement_.get(), place, static_cast<sqlite3_int64>(value));
    } else {
      const std::string& text = value;
      sqlite3_bind_text(statement_.get(), place, text.data(), static_cast<int>(text.size()),
                        SQLITE_TRANSIENT);
    }
  }
  template <class Value>
  void Bind(int place, const std::optional<Value>& value) {
    value ? Bind(place, *value) : static_cast<void>(sqlite3_bind_null(statement_.get(), place));
  }

  sqlite3* database_;
  std::string table_;
  Statement statement_;
};

/// Negative numbers mean unknown and become null.
std::optional<std::int64_t> Known(std::int64_t value) {
  return value < 0 ? std::nullopt : std::optional(value);
}
std::optional<std::int64_t> Positive(std::int64_t value) {
  return value > 0 ? std::optional(value) : std::nullopt;
}

// The columns "microbatch" and "window".
std::optional<std::int64_t> MicrobatchOf(const UnitPlace& place) {
  return place.window ? std::nullopt : Known(place.number);
}
std::optional<std::int64_t> WindowOf(const UnitPlace& place) {
  return place.window ? Known(place.number) : std::nullopt;
}

void FillSmall(sqlite3* database, const TraceIndex& index, const Steps& steps) {
  const RunTrace& trace = index.trace();
  Inserter processes(database, "processes");
  for (std::size_t p = 0; p < trace.processes.size(); ++p) {
    const TraceProcess& process = trace.processes[p];
    processes.Add(p, process.name, process.host, process.pid, process.noted, process.dropped,
                  process.torn, process.clock_offset_ns);
  }
  Inserter actors(database, "actors");
  for (const TraceActor& actor : trace.actors) {
    std::optional<std::string> process;
    if (At(actor.process) < trace.processes.size()) {
      process = trace.processes[At(actor.process)].name;
    }
    actors.Add(actor.name, process);
  }
  Inserter stages(database, "stages");
  for (const StageId& stage : trace.stages) stages.Add(ToString(stage), stage.module);
  Inserter edges(database, "edges");
  for (const TraceLink& link : trace.links) {
    edges.Add(link.name, index.StageName(link.from), index.StageName(link.to), link.boundary);
  }
  Inserter spans(database, "steps");
  for (const StepSpan& span : steps.all()) {
    spans.Add(span.step, span.round, span.begin_ns, span.end_ns);
  }
}

void FillLarge(sqlite3* database, const TraceIndex& index, const Steps& steps) {
  const RunTrace& trace = index.trace();
  const auto id_of = [&](int message) {
    return message < 0 ? std::nullopt : std::optional(index.message(message).id);
  };
  const auto name_of = [&](int actor) {
    return actor < 0 ? std::nullopt : std::optional(index.ActorName(actor));
  };
  Inserter messages(database, "messages");
  for (int i = 0; At(i) < trace.messages.size(); ++i) {
    const TraceMessage& m = index.message(i);
    const UnitPlace place = index.places().OfMessage(index, i);
    std::optional<std::string> edge;
    if (const TraceLink* const link = index.LinkOf(i)) edge = link->name;
    messages.Add(m.id, id_of(m.cause), index.TypeName(i), name_of(m.sender), name_of(m.receiver),
                 Known(steps.StepOf(index.RoundOf(i))), MicrobatchOf(place), WindowOf(place),
                 Known(index.RoundOf(i)), Known(m.unit), edge, m.bytes, Known(m.credits), m.mailbox,
                 index.TripsOf(i), m.sent_ns, m.arrived_ns, Known(m.begin_ns), Known(m.end_ns));
  }
  Inserter work(database, "work");
  for (const TraceWork& one : trace.work) {
    const PassRecord& pass = one.pass;
    const WorkMemory& memory = one.memory;
    const UnitPlace place = IsPass(pass.kind) ? index.places().Of(pass) : UnitPlace{};
    work.Add(id_of(one.message), std::string(ToString(pass.kind)), index.ModuleOf(pass.stage),
             index.StageName(pass.stage), pass.dp, pass.rank, Known(steps.StepOf(pass.round)),
             MicrobatchOf(place), WindowOf(place), pass.round, pass.unit, pass.begin_ns,
             pass.end_ns, Known(one.cores.on_core_ns), Known(one.cores.without_core_ns),
             Known(memory.gpu), memory.known() ? Known(memory.in_use_bytes) : std::nullopt,
             Positive(memory.reserved_bytes), Positive(memory.peak_bytes));
  }
}

std::string CreateText(const TableText& table) {
  return std::string("CREATE TABLE ") + table.name + " (\n" + table.columns + "\n);\n";
}

/// Allows reading and pure functions; denies writing and opening files.
int Allow(void* /*context*/, int action, const char* /*a*/, const char* function, const char* /*c*/,
          const char* /*d*/) {
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
      return SQLITE_OK;
    case SQLITE_FUNCTION:
      return function != nullptr && std::string(function) == "load_extension" ? SQLITE_DENY
                                                                              : SQLITE_OK;
    default:
      return SQLITE_DENY;
  }
}

Cell ValueOf(sqlite3_stmt* statement, int column) {
  const int type = sqlite3_column_type(statement, column);
  if (type == SQLITE_NULL) return Cell::Null();
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
  std::string value(text == nullptr ? "" : text,
                    static_cast<std::size_t>(sqlite3_column_bytes(statement, column)));
  const bool number = type == SQLITE_INTEGER || type == SQLITE_FLOAT;
  // JSON has no infinities.
  if (number && value.find_first_of("Ii") == std::string::npos) return Cell::Number(value);
  return value;
}

/// "; work has message, kind, stage, ..." for each table that `sql` names.
std::string ColumnsOfNamed(sqlite3* database, const std::string& sql) {
  std::string text;
  for (const TableText& table : kTables) {
    if (sql.find(table.name) == std::string::npos) continue;
    const Statement all = Prepare(database, std::string("SELECT * FROM ") + table.name);
    text += std::string("; ") + table.name + " has ";
    for (int c = 0; c < sqlite3_column_count(all.get()); ++c) {
      text += (c == 0 ? "" : ", ") + std::string(sqlite3_column_name(all.get(), c));
    }
  }
  return text;
}

/// The reason why SQLite refuses `sql`, with the known tables or columns.
std::string WhyRefused(sqlite3* database, const std::string& sql) {
  const std::string reason = sqlite3_errmsg(database);
  if (reason == "not authorized") return "only SELECT is allowed";
  if (reason.starts_with("no such table")) {
    return reason + "; there are " +
           Listed(kTables, ", ", [](const TableText& table) { return std::string(table.name); });
  }
  return reason.starts_with("no such column") ? reason + ColumnsOfNamed(database, sql) : reason;
}

/// During its lifetime SQLite calls `stop` regularly, and true interrupts the statement.
class Stopping {
 public:
  Stopping(sqlite3* database, const std::function<bool()>& stop) : database_(database) {
    if (!stop) return;
    constexpr int kInstructions = 10'000;  // well below a millisecond
    const auto ask = [](void* asked) {
      return (*static_cast<const std::function<bool()>*>(asked))() ? 1 : 0;
    };
    sqlite3_progress_handler(database_, kInstructions, ask,
                             const_cast<std::function<bool()>*>(&stop));
  }
  ~Stopping() { sqlite3_progress_handler(database_, 0, nullptr, nullptr); }
  Stopping(const Stopping&) = delete;
  Stopping& operator=(const Stopping&) = delete;

 private:
  sqlite3* database_;
};

}  // namespace

TraceDatabase::TraceDatabase(const TraceIndex& index, const Steps& steps)
    : database_(nullptr, &sqlite3_close) {
  sqlite3* opened = nullptr;
  const int status = sqlite3_open(":memory:", &opened);
  database_.reset(opened);
  if (status != SQLITE_OK) throw std::runtime_error("SQLite: cannot open a database in memory");
  const auto run = [&](const std::string& sql) {
    if (sqlite3_exec(opened, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) Fail(opened);
  };
  run("PRAGMA journal_mode = OFF; BEGIN");
  run(Schema());
  FillSmall(opened, index, steps);
  FillLarge(opened, index, steps);
  run("COMMIT");
  sqlite3_set_authorizer(opened, &Allow, nullptr);
}

QueryAnswer TraceDatabase::Ask(const std::string& sql, const QueryLimits& limits) const {
  const auto fail = [](const std::string& reason) { throw std::invalid_argument(reason); };
  const char* rest = "";
  const Statement prepared = Prepare(database_.get(), sql, &rest);
  sqlite3_stmt* const statement = prepared.get();
  if (statement == nullptr && sqlite3_errcode(database_.get()) != SQLITE_OK) {
    fail(WhyRefused(database_.get(), sql));
  }
  if (statement == nullptr) fail("expected a SELECT, got nothing");
  if (std::string(rest).find_first_not_of(" \t\r\n;") != std::string::npos) {
    fail("expected one statement, got more after the first");
  }
  const Stopping stopping(database_.get(), limits.stop);
  QueryAnswer answer;
  Table& table = answer.table;
  for (int c = 0; c < sqlite3_column_count(statement); ++c) {
    table.columns.emplace_back(sqlite3_column_name(statement, c));
  }
  int status = sqlite3_step(statement);
  for (; status == SQLITE_ROW; status = sqlite3_step(statement)) {
    if (limits.rows > 0 && std::ssize(table.rows) >= limits.rows) {
      constexpr std::int64_t kCounted = 1'000'000;  // a recursive query may never end
      answer.more_left_out = answer.left_out == kCounted;
      if (answer.more_left_out) break;
      ++answer.left_out;
      continue;
    }
    std::vector<Cell> row;
    for (int c = 0; c < sqlite3_column_count(statement); ++c) row.push_back(ValueOf(statement, c));
    table.rows.push_back(std::move(row));
  }
  if (status == SQLITE_INTERRUPT) throw QueryStopped("interrupted");
  if (status != SQLITE_DONE && status != SQLITE_ROW) fail(sqlite3_errmsg(database_.get()));
  return answer;
}

std::string TraceDatabase::Schema() { return Listed(kTables, "", CreateText); }

}  // namespace troupe
