#include "trace/export/sql.hpp"

#include <catch2/catch.hpp>

#include "tests/trace/generated/generated.hpp"

namespace troupe {
namespace {

class Asked {
 public:
  explicit Asked(const generated::Spec& spec = {})
      : trace_(generated::Generate(spec)),
        index_(trace_),
        steps_(index_),
        database_(index_, steps_) {}
  std::string operator()(const std::string& sql) const { return ToCsv(database_.Query(sql)); }
  QueryAnswer Within(const QueryLimits& limits, const std::string& sql) const {
    return database_.Ask(sql, limits);
  }

 private:
  RunTrace trace_;
  TraceIndex index_;
  Steps steps_;
  TraceDatabase database_;
};

TEST_CASE("messages, work, actors, stages, edges and steps can be joined", "[trace]") {
  const Asked ask;
  CHECK(ask("select count(*) n from messages") == "n\n628\n");
  CHECK(ask("select stage, kind, count(*) from work "
            "where step = 2 and kind in ('F', 'update') group by 1, 2 order by 1, 2") ==
        "stage,kind,count(*)\nlanguage.s0,F,8\nlanguage.s0,update,2\nlanguage.s1,F,8\n"
        "language.s1,update,2\nvision.s0,F,4\nvision.s0,update,1\n");
  CHECK(ask("select module, count(*) from work join stages using (stage, module) group by 1") ==
        "module,count(*)\nlanguage,120\nvision,30\n");
  CHECK(ask("select edge, source, a.process from messages m join edges e using (edge) "
            "join actors a on a.actor = m.receiver where type = 'Slice' and unit = 3") ==
        "edge,source,process\nvision>language,vision.s0,n0\n");
  CHECK(ask("select count(*) from messages m left join messages c on c.id = m.cause "
            "where c.id is null") == "count(*)\n1\n");
  CHECK(ask("select name, pid from processes") == "name,pid\nn0,100\n");
  // 3 steps of 4 microbatches on 5 devices: F, B; a reduction and an update of each.
  CHECK(ask("select count(*), min(memory_bytes), max(memory_bytes) from work") ==
        "count(*),min(memory_bytes),max(memory_bytes)\n150,1004096,1614400\n");
}

TEST_CASE("microbatches are numbered within their step", "[trace]") {
  const Asked ask;
  const std::string numbers = "step,first,last\n1,0,3\n2,0,3\n3,0,3\n";
  CHECK(ask("select step, min(microbatch) first, max(microbatch) last from work "
            "where kind = 'B' group by 1") == numbers);
  CHECK(ask("select step, min(microbatch) first, max(microbatch) last from messages "
            "where type in ('Slice', 'Gradient', 'RunForward', 'ForwardDone') group by 1") ==
        numbers);
  CHECK(ask("select count(*) from work where kind = 'update' and microbatch is not null") ==
        "count(*)\n0\n");
}

TEST_CASE("a checkpoint is work of the step after it, and says which step it is of", "[trace]") {
  generated::Spec spec;
  spec.steps = 4;
  spec.checkpoint_every = 2;
  const Asked ask(spec);
  CHECK(ask("select step, unit, microbatch, count(*) n from work where kind = 'checkpoint' "
            "group by 1, 2, 3 order by 2") == "step,unit,microbatch,n\n3,2,,5\n,4,,5\n");
}

TEST_CASE("a column that is not there is answered with those that are", "[trace]") {
  const Asked ask;
  CHECK_THROWS_WITH(ask("select start_ns from work"),
                    Catch::StartsWith("no such column: start_ns; work has message, kind, "
                                      "module, stage, dp, rank, step, microbatch, ") &&
                        !Catch::Contains("messages has"));
  CHECK_THROWS_WITH(ask("select 1 from passes"),
                    "no such table: passes; there are processes, actors, stages, edges, "
                    "steps, messages, work");
}

TEST_CASE("the schema that is printed is that of the tables", "[trace]") {
  const Asked ask;
  for (const char* table :
       {"messages", "work", "actors", "stages", "edges", "processes", "steps"}) {
    CHECK_THAT(TraceDatabase::Schema(), Catch::Contains("CREATE TABLE " + std::string(table)));
    CHECK_NOTHROW(ask("select * from " + std::string(table)));
  }
}

TEST_CASE("what would write, reach a file or is no statement is refused in one line", "[trace]") {
  const Asked ask;
  CHECK_THROWS_WITH(ask("delete from messages"), "only SELECT is allowed");
  CHECK_THROWS_WITH(ask("attach 'x.db' as x"), "only SELECT is allowed");
  CHECK_THROWS_WITH(ask("pragma user_version = 3"), "only SELECT is allowed");
  CHECK_THROWS_AS(ask("select load_extension('x')"), std::invalid_argument);
  CHECK_THROWS_WITH(ask("select 1; select 2"),
                    "expected one statement, got more after the "
                    "first");
  CHECK_THROWS_WITH(ask("selekt"), Catch::Contains("syntax error"));
  CHECK_THROWS_WITH(ask(" "), "expected a SELECT, got nothing");
  CHECK(ask("select count(*) from messages;") == "count(*)\n628\n");
}

const std::string kEndless =
    "with recursive c(x) as (select 1 union all select x + 1 from c) select ";

TEST_CASE("an answer is cut at its limit, and says how much it lacks", "[trace]") {
  const Asked ask;
  const QueryAnswer cut = ask.Within({10}, "select id from messages order by id");
  CHECK(cut.table.rows.size() == 10);
  CHECK(cut.left_out == 618);
  CHECK_FALSE(cut.more_left_out);
  const QueryAnswer whole = ask.Within({628}, "select id from messages");
  CHECK(whole.table.rows.size() == 628);
  CHECK(whole.left_out == 0);
  CHECK(ask.Within({0}, "select id from messages").table.rows.size() == 628);
}

TEST_CASE("an answer without an end is cut, too", "[trace]") {
  const Asked ask;
  const QueryAnswer cut = ask.Within({3}, kEndless + "x from c");
  CHECK(ToCsv(cut.table) == "x\n1\n2\n3\n");
  CHECK(cut.left_out == 1'000'000);
  CHECK(cut.more_left_out);
}

TEST_CASE("a query that never answers can be stopped, and the next one answers", "[trace]") {
  const Asked ask;
  int asked = 0;
  CHECK_THROWS_AS(ask.Within({10, [&] { return ++asked == 5; }}, kEndless + "count(*) from c"),
                  QueryStopped);
  CHECK(asked == 5);
  CHECK(ask("select count(*) n from steps") == "n\n3\n");
}

}  // namespace
}  // namespace troupe
