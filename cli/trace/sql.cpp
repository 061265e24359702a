#include "trace/export/sql.hpp"

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <iostream>
#include <utility>

#include "app/exit_code.hpp"
#include "app/interrupt.hpp"
#include "app/run_job.hpp"
#include "cli/trace/trace.hpp"

namespace troupe {
namespace {

/// Reports once that a query takes long, and checks for Ctrl-C.
class Patience {
 public:
  Patience() {
    interrupt_.OnSignal([asked = false](int signal) mutable {
      // SQLite may be in an operation that it does not interrupt.
      if (EndsJob(signal) && std::exchange(asked, true)) QuickExit(ExitCodeOfSignal(signal));
    });
  }
  bool IsOver() {
    const auto now = std::chrono::steady_clock::now();
    if (!reported_ && now - begin_ > std::chrono::seconds(2)) {
      reported_ = true;
      std::cerr << "troupe trace sql: still working; Ctrl-C ends it\n" << std::flush;
    }
    return interrupt_.signal() != 0;
  }
  int signal() const { return interrupt_.signal(); }

 private:
  Interrupt interrupt_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  bool reported_ = false;
};

int AnswerQuery(const TraceDatabase& database, const std::string& query, std::int64_t limit,
                const std::string& format) {
  Patience patience;
  QueryAnswer answer;
  try {
    answer = database.Ask(query, {limit, [&] { return patience.IsOver(); }});
  } catch (const QueryStopped&) {
    std::cerr << "troupe trace sql: interrupted\n";
    return ExitCodeOfSignal(patience.signal());
  }
  std::cout << Write(answer.table, format);
  if (answer.left_out > 0) {
    std::cerr << "troupe trace sql: the first " << answer.table.rows.size() << " rows; "
              << (answer.more_left_out ? "more than " : "") << answer.left_out
              << (answer.left_out == 1 ? " row is" : " rows are") << " left out (--limit " << limit
              << ")\n";
  }
  return kExitDone;
}

}  // namespace

void AddTraceSql(CLI::App& trace, Command& command) {
  struct Arguments {
    std::string run;
    std::string query;
    std::string format = "table";
    std::int64_t limit = 1000;
  };
  auto arguments = std::make_shared<Arguments>();
  auto* verb = AddRunVerb(
      trace, "sql",
      "Run a SELECT of SQLite over tables of messages, work, actors, stages, edges, steps and\n"
      "processes. Without a query: print the tables and their columns.\n"
      "Ctrl-C ends a query that takes too long (exit code 130).",
      arguments->run);
  verb->add_option("QUERY", arguments->query, "\"select type, count(*) from messages group by 1\"");
  AddChoice(*verb, "--format", kTableFormats, arguments->format);
  verb->add_option("--limit", arguments->limit, "print the first ROWS only; 0 prints all")
      ->type_name("ROWS")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  SetAction(*verb, command, [arguments] {
    if (arguments->query.empty()) {
      std::cout << TraceDatabase::Schema();
      return static_cast<int>(kExitDone);
    }
    const OpenedTrace run(arguments->run);
    return AnswerQuery(TraceDatabase(run.index, run.steps), arguments->query, arguments->limit,
                       arguments->format);
  });
}

}  // namespace troupe
