// A trace as read-only SQLite tables in memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "trace/analyze/steps.hpp"
#include "trace/analyze/table.hpp"

struct sqlite3;

namespace troupe {

struct QueryLimits {
  std::int64_t rows = 0;            ///< maximum number of rows; 0: all
  std::function<bool()> stop = {};  ///< called often while SQLite works; true ends the query
};

struct QueryAnswer {
  Table table;
  std::int64_t left_out = 0;   ///< rows beyond the limit
  bool more_left_out = false;  ///< left_out is a lower bound: counting stopped early
};

/// `stop` returned true.
struct QueryStopped : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class TraceDatabase {
 public:
  /// Throws std::runtime_error if SQLite fails (memory).
  TraceDatabase(const TraceIndex& index, const Steps& steps);

  /// The rows of one SELECT. Throws std::invalid_argument with SQLite's message for a malformed
  /// query, a query that would write or open another file, or more than one statement. Throws
  /// QueryStopped.
  Table Query(const std::string& sql) const { return Ask(sql, {}).table; }
  QueryAnswer Ask(const std::string& sql, const QueryLimits& limits) const;

  /// The CREATE statements of all tables, with a comment for each column.
  static std::string Schema();

 private:
  std::unique_ptr<sqlite3, int (*)(sqlite3*)> database_;
};

}  // namespace troupe
