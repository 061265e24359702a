// `troupe trace` on a run that really ran.
#include <fstream>
#include <nlohmann/json.hpp>

#include <catch2/catch.hpp>

#include "tests/cli/run_folder.hpp"
#include "tests/cli/trace_output.hpp"

namespace troupe {
namespace {

using Catch::Contains;

std::string Refused(const std::vector<std::string>& arguments) {
  std::vector<std::string> all = {"trace"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  const Outcome outcome = RunTroupe(all);
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.out.empty());
  return LinesOf(outcome.err).at(0);
}

}  // namespace

TEST_CASE("a trace of several processes has the sender and the receiver of each message", "[cli]") {
  const RunFolder folder;
  auto arguments = folder.Arguments("train", "configs/shapes_2node.toml");
  arguments.insert(arguments.end(), {"--local", "2"});
  const Outcome outcome = RunTroupe(arguments);
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.exit_code == 0);
  const std::string run = folder.Runs().at(0);
  // The first message is from the program, which is no actor.
  CHECK(Printed({"sql", run,
                 "select type, count(*) n from messages where sender is null or receiver is null "
                 "group by 1",
                 "--format", "csv"}) == "type,n\nRunJob,1\n");
  // Stages answer devices' stages, leaders send to leaders: no actor to itself in another process.
  CHECK(Printed({"sql", run,
                 "select count(*) n from messages join actors a on a.actor = sender join actors b "
                 "on b.actor = receiver where type = 'Slice' and not (a.actor like 'leader %' and "
                 "b.actor like 'leader %')",
                 "--format", "csv"}) == "n\n0\n");
}

TEST_CASE("durations of a run of another model are refused", "[cli]") {
  const RunFolder folder;
  REQUIRE(folder.Train({"run.steps=2"}).exit_code == 0);
  const std::string run = folder.Runs().at(0);
  const auto why = [&](const std::vector<std::string>& settings) {
    auto arguments = folder.Arguments("bench", "schedules", settings);
    arguments.insert(arguments.begin() + 2, "configs/shapes.toml");
    arguments.insert(arguments.end(), {"--kinds", "1f1b", "--durations", run});
    const Outcome outcome = RunTroupe(arguments);
    CHECK(outcome.exit_code == (outcome.err.empty() ? 0 : 2));
    const auto at = outcome.err.find("another model: ");
    return at == std::string::npos ? outcome.err : outcome.err.substr(at + 15);
  };
  CHECK(why({}) == "");
  CHECK(why({"schedule.microbatches=4"}) == "");
  CHECK(why({"modules.language.layout.tp=4", "modules.language.layout.pp=1"}) ==
        "language has tp 2 there, 4 here\n");
  CHECK(why({"schedule.micro_batch_size=8"}) ==
        "vision has 1 samples per replica and microbatch there, 2 here\n");
  CHECK(why({"modules.language.mlp_hidden=64"}) == "language has other sizes there\n");
  CHECK(why({"modules.vision.frozen=true"}) == "vision trains there\n");
}

TEST_CASE("every verb of trace answers about a run", "[cli]") {
  const RunFolder folder;
  REQUIRE(folder.Train({"run.steps=3"}).exit_code == 0);
  const std::string run = folder.Runs().at(0);
  CHECK_THAT(Printed({"summary", run}), Contains("steps 1-3") && Contains("longest waits") &&
                                            Contains("busy  computing  no core") &&
                                            !Contains("FromSet<"));
  CHECK_THAT(Printed({"summary", run, "--actors"}), Contains(" from stage "));
  // Every pass knows how much of its time it was on a core.
  CHECK(Printed({"sql", run,
                 "select count(*) n from work where on_core_ns is null or "
                 "on_core_ns + ifnull(without_core_ns, 0) > end_ns - begin_ns + 1000000",
                 "--format", "csv"}) == "n\n0\n");
  CHECK(Printed({"sql", run,
                 "select step, min(microbatch) a, max(microbatch) b from work where kind = 'B' "
                 "group by 1",
                 "--format", "csv"}) == "step,a,b\n1,0,1\n2,0,1\n3,0,1\n");
  CHECK_THAT(Printed({"order", run, "--step", "2"}), Contains("step 2\n") && Contains("F0"));
  CHECK_THAT(Printed({"critical", run}), Contains("critical path of step 3: "));
  CHECK_THAT(Printed({"why", run, "--step", "2"}),
             Contains("in step 2 ") || Contains("step 2 took"));
  CHECK_THAT(Printed({"diff", run, run}), Contains("the configurations are the same\n") &&
                                              Contains("is as fast as the first, within 2%\n"));
  const auto messages =
      nlohmann::json::parse(Printed({"messages", run, "--step", "2", "--format", "json"}));
  REQUIRE(messages.size() > 20);
  for (const auto& message : messages) CHECK(message["step"] == 2);
  CHECK(Printed({"sql", run, "select count(*) n from steps", "--format", "csv"}) == "n\n3\n");
  CHECK_THAT(Printed({"sql", run}), Contains("CREATE TABLE messages"));
  CHECK(LinesOf(Printed({"sql", run, "select id from messages", "--limit", "3"})).size() == 4);
  for (const std::string format : {"perfetto", "html"}) {
    const std::string file = folder / ("out." + format);
    CHECK_THAT(Printed({"export", run, "--steps", "2-3", "--format", format, "--out", file}),
               Contains(file + ": ") && Contains(" of work, ") && Contains(" arrows, "));
    if (format != "html") CHECK_THAT(Linted(file), Contains("nothing an importer"));
  }

  CHECK_THAT(Refused({"export", run, "--format", "chrome"}),
             Contains("--format: expected perfetto or html, got \"chrome\""));
  CHECK_THAT(Refused({"order", run, "--step", "9"}),
             Contains("step 9 is not in the trace, which has steps 1-3"));
  CHECK_THAT(Refused({"messages", run, "--actor", "audio"}),
             Contains("no actor is called \"audio\""));
  CHECK_THAT(Refused({"sql", run, "drop table work"}), Contains("only SELECT is allowed"));
}

TEST_CASE("messages of a colocated encoder are of the step of their window", "[cli]") {
  const RunFolder folder;
  const Outcome outcome = RunTroupe(
      folder.Arguments("train", "configs/shapes_colocated.toml",
                       {"run.steps=4", "schedule.micro_batch_size=8", "schedule.microbatches=4"}));
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  // Windows and microbatches both count from 0, and a step has more of the latter.
  CHECK(Printed({"sql", folder.Runs().at(0),
                 "select distinct step, window from messages where receiver = 'stage vision.s0 "
                 "dp0' and type = 'Gradient' order by step",
                 "--format", "csv"}) == "step,window\n1,0\n2,0\n3,0\n4,0\n");
}

TEST_CASE("a long answer of sql is cut, and a query without an end is ended by Ctrl-C", "[cli]") {
  const RunFolder folder;
  REQUIRE(folder.Train({"run.steps=1"}).exit_code == 0);
  const std::string endless =
      "with recursive c(x) as (select 1 union all select x + 1 from c) select ";
  const std::string run = folder.Runs().at(0);
  const Outcome cut = RunTroupe({"trace", "sql", run, endless + "x from c", "--format", "csv"});
  CHECK(cut.exit_code == 0);
  CHECK(LinesOf(cut.out).size() == 1001);  // a head and what --limit says by itself
  CHECK(LinesOf(cut.err).at(0) ==
        "troupe trace sql: the first 1000 rows; more than 1000000 rows are left out (--limit "
        "1000)");
  ProcessOptions options;
  options.interrupt_again_at = "Ctrl-C ends it";
  const Outcome ended =
      RunTroupe({"trace", "sql", run, endless + "count(*) from c", "--limit", "0"}, options);
  CHECK_FALSE(ended.timed_out);
  CHECK(ended.exit_code == 130);
  CHECK(LinesOf(ended.err).back() == "troupe trace sql: interrupted");
  CHECK_THAT(Refused({"sql", run, "select 1", "--limit", "-1"}),
             Contains("--limit: expected a whole number from 0 on, got \"-1\""));
}

TEST_CASE("what trace cannot answer is one line", "[cli]") {
  CHECK_THAT(Refused({"summary", "nowhere"}), Contains("nowhere: expected a run directory"));
  CHECK_THAT(Refused({"sumary", "nowhere"}), Contains("did you mean summary?"));
  CHECK_THAT(Refused({"sql", "nowhere", "--format", "xml"}),
             Contains("expected table, json or csv, got \"xml\""));
  CHECK_THAT(Refused({"summary", ".", "--steps", "3-1"}), Contains("got \"3-1\""));
}

}  // namespace troupe
