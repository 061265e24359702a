#include "cluster/hello_check.hpp"

#include <catch2/catch.hpp>

using namespace troupe;
using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;

namespace {

Hello Of(ProcessId process) {
  Hello hello;
  hello.process = process;
  hello.num_processes = 3;
  hello.name = "n" + std::to_string(process);
  hello.build = "0.1 abc";
  hello.config = "a = 1\nb = 2\n";
  hello.pid = 100 + process;
  return hello;
}

Claim From(const Hello& hello) { return {hello, "10.0.0." + std::to_string(hello.process + 1)}; }

std::string Mismatch(const std::vector<Claim>& claims) {
  return FindMismatch(Of(0), claims).value_or(JoinProblem{"none"}).text;
}

}  // namespace

TEST_CASE("processes that say the same fit together, also while some are missing") {
  CHECK(Mismatch({}) == "none");
  CHECK(Mismatch({From(Of(2))}) == "none");
  CHECK(Mismatch({From(Of(2)), From(Of(1))}) == "none");
}

TEST_CASE("another build is named with both") {
  Hello other = Of(2);
  other.build = "0.2 def";
  CHECK(Mismatch({From(other), From(Of(1))}) ==
        "n2 (10.0.0.3) is built from 0.2 def, n0 from 0.1 abc");
}

TEST_CASE("another configuration is named by key, with both values") {
  Hello other = Of(1);
  other.config = "a = 7\nc = 3\n";
  CHECK(Mismatch({From(other)}) ==
        "the configuration of n1 (10.0.0.2) differs from that of n0: a is 7, n0 has 1; b is not "
        "set, n0 has 2; c is 3, n0 does not set it");
}

TEST_CASE("of many different keys eight are named") {
  std::string config;
  for (char key = 'a'; key < 'a' + 13; ++key) config += std::string(1, key) + " = 1\n";
  const std::string text = DescribeDifferences(config, "", "n0");
  CHECK_THAT(text, Contains("h is 1") && !Contains("i is 1") && EndsWith("; and 5 more"));
  CHECK(DescribeDifferences(config, config, "n0").empty());
}

TEST_CASE("a number that is taken twice is named with both who say it") {
  Hello other = Of(1);
  other.pid = 7;
  CHECK(Mismatch({From(Of(1)), From(other)}) ==
        "two processes joined as process 1: n1 (10.0.0.2, pid 101) and n1 (10.0.0.2, pid 7)");
  CHECK(Mismatch({From(Of(0))}) ==
        "two processes joined as process 0: n0 and n0 (10.0.0.1, pid 100)");
}

TEST_CASE("another number of processes is named before what follows from it") {
  Hello other = Of(3);
  other.num_processes = 4;
  CHECK(Mismatch({From(other)}) == "n3 (10.0.0.4) expects 4 processes, n0 3");
  CHECK(Mismatch({From(Of(3))}) == "n3 (10.0.0.4) joined as process 3, expected 0 to 2");
}
