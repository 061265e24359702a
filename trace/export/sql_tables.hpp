// The tables of TraceDatabase, and the code that fills them.
#pragma once

#include <span>
#include <sqlite3.h>
#include <string>

#include "trace/analyze/steps.hpp"

namespace troupe {

/// One CREATE TABLE each, with a comment after every column.
std::span<const char* const> TraceTables();

/// "processes", "messages", ...
std::span<const std::string> TraceTableNames();

/// Fills the tables, which must exist and be empty. Throws std::runtime_error with SQLite's
/// message.
void FillTables(sqlite3* database, const TraceIndex& index, const Steps& steps);

}  // namespace troupe
