// The matrix on a GPU that all ranks share, against the reference on the CPU. Run by
// bench/gpu_check.sh; without a device the same configurations run on the CPU, which shows only
// that they and the limits below hold there.
#include <iostream>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#ifdef TROUPE_HAS_CUDA
#include "gpu/device.hpp"
#endif
#include "tests/parity/proof.hpp"
#include "tests/parity/setup.hpp"

namespace troupe {
namespace {

/// Of each tensor's maximum: a GPU adds the terms of a product in another order than a CPU.
constexpr double kLimit = 1e-4;

bool HasDevice() {
#ifdef TROUPE_HAS_CUDA
  return gpu::NumDevices() > 0;
#else
  return false;
#endif
}

/// Every placement, every direction of a layout, replicas that do not pair up, and what differs in
/// kernels: tied heads, class tokens, recomputation, split backwards.
std::vector<Setup> Representatives() {
  return {
      Setup(Disjoint(), Layout{}),
      Setup(Disjoint({.dp = 4}), {.tp = 2, .pp = 2}),
      Setup(Disjoint({.dp = 3}), {.dp = 2}),
      Setup(Disjoint({.tp = 2, .pp = 2}), {.pp = 2, .dp = 2}).ClassToken(),
      Setup(Disjoint({.pp = 2}), {.pp = 2}).TiedHead().ZbH1(),
      Setup(Disjoint({.dp = 2}), {.tp = 2}).Recomputed("language", Recompute{LayerPart::kLayer}),
      Setup(Inline(), {.tp = 2, .pp = 2}),
      Setup(Colocated({.dp = 4}), {.tp = 4})
          .ResultsOnHost("vision")
          .ActivationsAway("vision")
          .ActivationsAway("language"),
      Setup(Colocated({.dp = 4}), {.pp = 2, .dp = 2}).Window(1),
      Setup(Colocated({.dp = 4}), Disjoint({.tp = 2, .dp = 2}), {.tp = 2, .dp = 2}),
  };
}

Config OnDevice(Config config) {
  config.run.precision = Precision::kFloat32;
  if (!HasDevice()) return config;
  config.cluster.backend = Backend::kCuda;
  config.cluster.ranks_per_gpu = config.cluster.ranks;
  return config;
}

}  // namespace

TEST_CASE("ten layouts on a device have the gradients and moments of the model on the CPU",
          "[parity][gpu]") {
  double worst = 0.0;
  std::string worst_name;
  for (const Setup& setup : Representatives()) {
    const Proof proof = Prove(OnDevice(setup.config()));
    INFO(setup.name());
    CHECK(proof.failure == "");
    CHECK(proof.comparisons == 4 * kProofSteps);
    if (proof.worst.empty()) continue;
    CHECK(proof.worst.at(TensorKind::kGradient) <= kLimit);
    CHECK(proof.worst.at(TensorKind::kFirstMoment) <= kLimit);
    CHECK(proof.worst.at(TensorKind::kSecondMoment) <= 2 * kLimit);  // squares
    // The CPU's tighter limits for these do not hold on a device; all else does (docs/verify.md).
    for (const std::string& fault : proof.faults) {
      const bool numeric =
          fault.find(", gradient: ") != fault.npos || fault.find(" moment: ") != fault.npos;
      if (!numeric) FAIL_CHECK(fault);
    }
    if (proof.worst_gradient < worst) continue;
    worst = proof.worst_gradient;
    worst_name = setup.name();
  }
  std::cout << "parity on " << (HasDevice() ? "device 0" : "the CPU, no device here")
            << ", float32, " << Representatives().size() << " configurations, " << kProofSteps
            << " steps each: worst gradient " << worst << " of its tensor's maximum (" << worst_name
            << ")\n";
}

}  // namespace troupe
