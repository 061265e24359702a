#include "trace/export/sql.hpp"

#include <sqlite3.h>
#include <stdexcept>
#include <vector>

#include "trace/export/sql_tables.hpp"

namespace troupe {
namespace {

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
  for (const std::string& table : TraceTableNames()) {
    if (sql.find(table) == std::string::npos) continue;
    sqlite3_stmt* all = nullptr;
    const std::string select = "SELECT * FROM " + table;
    if (sqlite3_prepare_v2(database, select.c_str(), -1, &all, nullptr) != SQLITE_OK) continue;
    text += "; " + table + " has ";
    for (int c = 0; c < sqlite3_column_count(all); ++c) {
      text += (c == 0 ? "" : ", ") + std::string(sqlite3_column_name(all, c));
    }
    sqlite3_finalize(all);
  }
  return text;
}

/// The reason why SQLite refuses `sql`, with the known tables or columns.
std::string WhyRefused(sqlite3* database, const std::string& sql) {
  const std::string words = sqlite3_errmsg(database);
  if (words == "not authorized") return "only SELECT is allowed";
  if (words.rfind("no such table", 0) == 0) {
    std::string text = words + "; there are ";
    for (const std::string& table : TraceTableNames()) {
      text += (text.back() == ' ' ? "" : ", ") + table;
    }
    return text;
  }
  return words.rfind("no such column", 0) == 0 ? words + ColumnsOfNamed(database, sql) : words;
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

struct TraceDatabase::State {
  sqlite3* database = nullptr;
  ~State() { sqlite3_close(database); }
};

TraceDatabase::TraceDatabase(const TraceIndex& index, const Steps& steps)
    : state_(std::make_unique<State>()) {
  if (sqlite3_open(":memory:", &state_->database) != SQLITE_OK) {
    throw std::runtime_error("SQLite: cannot open a database in memory");
  }
  const auto run = [&](const char* sql) {
    if (sqlite3_exec(state_->database, sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
      throw std::runtime_error(std::string("SQLite: ") + sqlite3_errmsg(state_->database));
    }
  };
  run("PRAGMA journal_mode = OFF; BEGIN");
  for (const char* table : TraceTables()) run(table);
  FillTables(state_->database, index, steps);
  run("COMMIT");
  sqlite3_set_authorizer(state_->database, &Allow, nullptr);
}

TraceDatabase::~TraceDatabase() = default;

QueryAnswer TraceDatabase::Ask(const std::string& sql, const QueryLimits& limits) const {
  sqlite3_stmt* statement = nullptr;
  const char* rest = nullptr;
  const auto fail = [&](const std::string& words) {
    sqlite3_finalize(statement);
    throw std::invalid_argument("sql: " + words);
  };
  if (sqlite3_prepare_v2(state_->database, sql.c_str(), -1, &statement, &rest) != SQLITE_OK) {
    fail(WhyRefused(state_->database, sql));
  }
  if (statement == nullptr) fail("expected a SELECT, got nothing");
  if (std::string(rest).find_first_not_of(" \t\r\n;") != std::string::npos) {
    fail("expected one statement, got more after the first");
  }
  const Stopping stopping(state_->database, limits.stop);
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
  if (status == SQLITE_INTERRUPT) {
    sqlite3_finalize(statement);
    throw QueryStopped("sql: interrupted");
  }
  if (status != SQLITE_DONE && status != SQLITE_ROW) fail(sqlite3_errmsg(state_->database));
  sqlite3_finalize(statement);
  return answer;
}

std::string TraceDatabase::Schema() {
  std::string text;
  for (const char* table : TraceTables()) text += table;
  return text;
}

}  // namespace troupe
