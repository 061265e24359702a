#include "layout/stage_graph.hpp"

#include <algorithm>
#include <numeric>

#include <catch2/catch.hpp>

using Catch::Matchers::Message;

namespace troupe {
namespace {

constexpr int kPlenty = 100;  ///< credits that never bind

std::vector<int> Distances(const StageGraph& graph) {
  std::vector<int> distances;
  for (int s = 0; s < static_cast<int>(graph.stages().size()); ++s) {
    distances.push_back(graph.SinkDistance(s));
  }
  return distances;
}

std::vector<int> Limits(const StageGraph& graph) {
  std::vector<int> limits;
  for (int s = 0; s < static_cast<int>(graph.stages().size()); ++s) {
    limits.push_back(graph.InFlightLimit(s));
  }
  return limits;
}

std::vector<std::string> Successors(const StageGraph& graph, const std::string& name) {
  std::vector<std::string> names;
  for (const StageLink& link : graph.links()) {
    if (graph.StageName(link.from) == name) names.push_back(graph.StageName(link.to));
  }
  return names;
}

/// What holds in every graph: links and stages name each other, and the order follows the links.
void CheckConsistent(const StageGraph& graph) {
  const std::vector<int>& order = graph.TopologicalOrder();
  std::vector<int> all(graph.stages().size());
  std::iota(all.begin(), all.end(), 0);
  REQUIRE(std::is_permutation(order.begin(), order.end(), all.begin(), all.end()));
  for (int l = 0; l < static_cast<int>(graph.links().size()); ++l) {
    const StageLink& link = graph.links()[static_cast<std::size_t>(l)];
    const std::vector<int>& out = graph.stages()[static_cast<std::size_t>(link.from)].out;
    const std::vector<int>& in = graph.stages()[static_cast<std::size_t>(link.to)].in;
    REQUIRE(std::count(out.begin(), out.end(), l) == 1);
    REQUIRE(std::count(in.begin(), in.end(), l) == 1);
    REQUIRE(std::find(order.begin(), order.end(), link.from) <
            std::find(order.begin(), order.end(), link.to));
  }
  for (int s = 0; s < static_cast<int>(graph.stages().size()); ++s) {
    const StageNode& stage = graph.stages()[static_cast<std::size_t>(s)];
    REQUIRE(graph.StageIndex(stage.module, stage.pp) == s);
  }
}

void CheckRefused(const std::vector<ModuleNode>& modules, const std::vector<ModuleEdge>& edges,
                  const std::string& text) {
  CHECK_THROWS_MATCHES(StageGraph(modules, edges), LayoutError, Message(text));
}

TEST_CASE("a chain counts down to its sink", "[layout]") {
  const StageGraph graph({{"language", 4}}, {});
  CheckConsistent(graph);
  CHECK(Distances(graph) == std::vector<int>{3, 2, 1, 0});
  CHECK(Limits(graph) == std::vector<int>{4, 3, 2, 1});
  CHECK(graph.IsSource(0));
  CHECK(graph.links().front().edge == -1);
}

TEST_CASE("a chain of two modules counts the stages of both", "[layout]") {
  const StageGraph graph({{"language", 2}, {"vision", 3}}, {{1, 0, kPlenty}});
  CheckConsistent(graph);
  CHECK(Distances(graph) == std::vector<int>{1, 0, 4, 3, 2});
  CHECK(graph.TopologicalOrder() == std::vector<int>{2, 3, 4, 0, 1});
  CHECK(Successors(graph, "vision.s2") == std::vector<std::string>{"language.s0"});
}

TEST_CASE("on the paper's figure 4a graph the short encoder does not warm up as if it were long",
          "[layout]") {
  const StageGraph graph({{"encoder1", 2}, {"encoder2", 1}, {"language", 3}},
                         {{0, 2, kPlenty}, {1, 2, kPlenty}});
  CheckConsistent(graph);
  CHECK(Distances(graph) == std::vector<int>{4, 3, 3, 2, 1, 0});
  CHECK(Limits(graph) == std::vector<int>{5, 4, 4, 3, 2, 1});
  CHECK(Successors(graph, "encoder1.s1") == std::vector<std::string>{"language.s0"});
  CHECK(Successors(graph, "encoder2.s0") == std::vector<std::string>{"language.s0"});
  CHECK(graph.IsSource(graph.StageIndex(1, 0)));
  CHECK_FALSE(graph.IsSource(graph.StageIndex(2, 0)));
}

TEST_CASE("incoming boundaries of a join are in module-edge order", "[layout]") {
  const StageGraph graph({{"language", 2}, {"vision", 1}, {"audio", 1}},
                         {{2, 0, kPlenty}, {1, 0, kPlenty}});
  std::vector<int> edges;
  for (const int in : graph.stages()[0].in) {
    edges.push_back(graph.links()[static_cast<std::size_t>(in)].edge);
  }
  CHECK(edges == std::vector<int>{0, 1});
}

TEST_CASE("a branch takes the distance of its deeper sink", "[layout]") {
  const StageGraph graph({{"trunk", 2}, {"deep", 3}, {"shallow", 1}},
                         {{0, 1, kPlenty}, {0, 2, kPlenty}});
  CheckConsistent(graph);
  CHECK(Distances(graph) == std::vector<int>{4, 3, 2, 1, 0, 0});
  CHECK(Limits(graph) == std::vector<int>{5, 4, 3, 2, 1, 1});
}

TEST_CASE("a diamond takes the distance of its longer side", "[layout]") {
  const StageGraph graph({{"top", 1}, {"long", 3}, {"short", 1}, {"bottom", 2}},
                         {{0, 1, kPlenty}, {0, 2, kPlenty}, {1, 3, kPlenty}, {2, 3, kPlenty}});
  CheckConsistent(graph);
  CHECK(Distances(graph) == std::vector<int>{5, 4, 3, 2, 2, 1, 0});
  CHECK(Limits(graph) == std::vector<int>{6, 5, 4, 3, 3, 2, 1});
}

TEST_CASE("credits of a boundary bound the stage before it and so all upstream", "[layout]") {
  const StageGraph graph({{"vision", 3}, {"language", 4}}, {{0, 1, 2}});
  CHECK(Distances(graph) == std::vector<int>{6, 5, 4, 3, 2, 1, 0});
  CHECK(Limits(graph) == std::vector<int>{4, 3, 2, 4, 3, 2, 1});
}

TEST_CASE("one tight edge of a branch bounds the whole stage", "[layout]") {
  const StageGraph graph({{"trunk", 1}, {"deep", 5}, {"shallow", 1}}, {{0, 1, 4}, {0, 2, 1}});
  CHECK(graph.SinkDistance(0) == 5);
  CHECK(graph.InFlightLimit(0) == 1);
}

TEST_CASE("credits beyond the sink distance allow nothing more", "[layout]") {
  const StageGraph graph({{"vision", 1}, {"language", 1}}, {{0, 1, kPlenty}});
  CHECK(Limits(graph) == std::vector<int>{2, 1});
}

TEST_CASE("modules without edges are sources and sinks of their own", "[layout]") {
  const StageGraph graph({{"a", 1}, {"b", 2}}, {});
  CheckConsistent(graph);
  CHECK(Distances(graph) == std::vector<int>{0, 1, 0});
  CHECK(StageGraph({}, {}).stages().empty());
}

TEST_CASE("a cycle is refused by its path, without what merely leads to or from it", "[layout]") {
  CheckRefused({{"a"}, {"b"}}, {{0, 1}, {1, 0}}, "edges form a cycle: a -> b -> a");
  CheckRefused({{"in"}, {"out"}, {"c"}, {"a"}, {"b"}}, {{0, 2}, {2, 4}, {4, 3}, {3, 2}, {3, 1}},
               "edges form a cycle: c -> b -> a -> c");
}

TEST_CASE("edges and modules that cannot be are refused", "[layout]") {
  CheckRefused({{"a"}}, {{0, 0}}, "edge a -> a leads from a module to itself");
  CheckRefused({{"a"}, {"b"}}, {{0, 1}, {0, 1}}, "edge a -> b is given twice");
  CheckRefused({{"a"}, {"b"}}, {{0, 2}}, "edge 0 names module 2, but there are 2 modules");
  CheckRefused({{"a"}, {"b"}}, {{0, 1}, {-1, 1}},
               "edge 1 names module -1, but there are 2 modules");
  CheckRefused({{"a"}, {"b"}}, {{0, 1, 0}}, "edge a -> b has 0 credits, expected at least 1");
  CheckRefused({{"a", 0}}, {}, "module a has pp 0, expected at least 1");
}

TEST_CASE("stages outside the graph are refused", "[layout]") {
  const StageGraph graph({{"vision", 2}}, {});
  CHECK(graph.StageName(1) == "vision.s1");
  CHECK_THROWS_MATCHES(graph.StageIndex(0, 2), LayoutError,
                       Message("stage 2 of vision does not exist, its pp is 2"));
  CHECK_THROWS_AS(graph.StageIndex(1, 0), LayoutError);
  CHECK_THROWS_AS(graph.StageIndex(0, -1), LayoutError);
  CHECK_THROWS_AS(graph.StageName(2), LayoutError);
}

}  // namespace
}  // namespace troupe
