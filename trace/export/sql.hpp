// A trace as tables of SQLite, in memory and for reading only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "trace/analyze/steps.hpp"
#include "trace/analyze/table.hpp"

namespace troupe {

/// How far an answer may go.
struct QueryLimits {
  std::int64_t rows = 0;            ///< kept of the answer; 0: all
  std::function<bool()> stop = {};  ///< asked often while SQLite works: true ends it
};

struct QueryAnswer {
  Table table;
  std::int64_t left_out = 0;   ///< rows beyond the limit
  bool more_left_out = false;  ///< there are still more: they were not counted to the end
};

/// `stop` said so.
struct QueryStopped : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class TraceDatabase {
 public:
  /// Throws std::runtime_error when SQLite refuses (memory).
  TraceDatabase(const TraceIndex& index, const Steps& steps);
  ~TraceDatabase();
  TraceDatabase(const TraceDatabase&) = delete;
  TraceDatabase& operator=(const TraceDatabase&) = delete;

  /// The rows of one SELECT. Throws std::invalid_argument in SQLite's words: a mistake, something
  /// that would write or reach another file, more than one statement. Throws QueryStopped.
  Table Query(const std::string& sql) const { return Ask(sql, {}).table; }
  QueryAnswer Ask(const std::string& sql, const QueryLimits& limits) const;

  /// The tables and what their columns are.
  static std::string Schema();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace troupe
