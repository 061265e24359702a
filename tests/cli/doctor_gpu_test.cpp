// What the doctor says of GPUs.
#include <catch2/catch.hpp>

#include "cli/doctor/checks.hpp"
#include "configs/config.hpp"

namespace troupe {
namespace {

using Catch::Matchers::Contains;

}  // namespace

TEST_CASE("no device is a line, not a failure", "[cli][doctor]") {
  CHECK(CheckDevices({}, Backend::kCpu, 8, "").verdict == Verdict::kOk);
  CHECK_THAT(CheckDevices({"nvidia0", "nvidia1"}, Backend::kCpu, 8, "").line,
             Contains("2 NVIDIA: nvidia0, nvidia1; backend cpu uses none"));
  CHECK(CheckDevices({"nvidia0", "nvidia1"}, Backend::kCuda, 2, "").verdict == Verdict::kOk);
  CHECK_THAT(CheckDevices({"nvidia0"}, Backend::kCuda, 2, "").line,
             Contains("1 NVIDIA: nvidia0; the ranks of a node need 2"));
  CHECK(CheckDevices({}, Backend::kCuda, 2, "").verdict == Verdict::kFailure);
  CHECK(CheckDevices({"nvidia0", "nvidia1"}, Backend::kCuda, 2, "no GPU code").verdict ==
        Verdict::kFailure);
}

TEST_CASE("of the GPUs the fullest is reported", "[cli][doctor]") {
  constexpr std::uint64_t kGib = std::uint64_t{1} << 30;
  CHECK(CheckGpuMemory({}).empty());
  const GpuMemory large{0, "NVIDIA H100", {0}, 60 * kGib, 80 * kGib};
  GpuMemory small{1, "NVIDIA L4", {1, 2}, 20 * kGib, 24 * kGib};
  Findings findings = CheckGpuMemory({large, small});
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].verdict == Verdict::kOk);
  CHECK_THAT(findings[0].line, Contains("GPU 1: about 20.00 GiB needed by ranks 1-2, NVIDIA L4 has "
                                        "24.00 GiB"));
  small.need = 23 * kGib;
  CHECK(CheckGpuMemory({large, small})[0].verdict == Verdict::kWarning);
  small.need = 25 * kGib;
  CHECK(CheckGpuMemory({small, large})[0].verdict == Verdict::kFailure);
}

TEST_CASE("GPUs that ranks of a process lack are counted", "[cli][doctor]") {
  ClusterConfig cluster;
  cluster.ranks = 4;
  cluster.ranks_per_gpu = 2;
  CHECK(MissingGpus(cluster, {0, 1, 2, 3}, 2).empty());
  CHECK(MissingGpus(cluster, {0, 1, 2, 3}, 1) ==
        "expected 2 GPUs for ranks 0-3 with at most 2 on each, found 1 (cluster.ranks_per_gpu says "
        "how many "
        "ranks may share one)");
  CHECK(MissingGpus(cluster, {3}, 0) == "expected 2 GPUs for rank 3, found 0");
}

TEST_CASE("GPUs that are there and hidden from the process are a failure", "[cli][doctor]") {
  ClusterConfig cluster;
  cluster.ranks = 4;
  cluster.ranks_per_gpu = 2;
  CHECK(CheckVisibleGpus(cluster, {0, 1, 2, 3}, 0).empty());
  cluster.backend = Backend::kCuda;
  CHECK(CheckVisibleGpus(cluster, {0, 1, 2, 3}, 2).empty());
  const Findings hidden = CheckVisibleGpus(cluster, {0, 1, 2, 3}, 1);
  REQUIRE(hidden.size() == 1);
  CHECK(hidden[0].verdict == Verdict::kFailure);
  CHECK_THAT(hidden[0].line, Contains("as CUDA counts them: expected 2 GPUs for ranks 0-3"));
  CHECK_THAT(hidden[0].advice, Contains("CUDA_VISIBLE_DEVICES"));
}

}  // namespace troupe
