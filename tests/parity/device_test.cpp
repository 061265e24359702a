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
std::vector<Setup> Placements() {
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

/// Every axis within a module: tokens cut over cp and tp, packs, experts, divided states.
std::vector<Setup> Axes() {
  return {
      Setup(Disjoint({.cp = 2}), {.cp = 3}),
      Setup(Disjoint({.cp = 2}), {.cp = 2}).Gathered().Packed(),
      Setup(Disjoint({.dp = 2}), {.tp = 2, .cp = 2}).Packed(8).Sharded(),
      Setup(Disjoint({.tp = 2}), {.tp = 2}).WithoutSp("vision").WithoutSp("language"),
      Setup({.dp = 2, .ep = 2}).Experts(4),
      Setup({.tp = 2, .dp = 2, .ep = 4}).Experts(4).SharedExpert().Sharded(2),
      Setup({.cp = 2, .dp = 2, .ep = 2, .etp = 2}).Experts(4),
      Setup({.pp = 2, .dp = 2, .ep = 2}).Experts(4).ZbH1().ActivationsAway("language"),
      Setup(Disjoint({.dp = 4}), {.pp = 2, .dp = 2}).Sharded(),
      Setup(Colocated({.dp = 4}), {.cp = 2, .dp = 2}).Sharded().ResultsOnHost("vision"),
  };
}

/// What attention in bfloat16 has kernels for, where heads are 8 wide: all tokens, cut ones, packs, key
/// heads that are shared and not.
std::vector<Setup> Attended() {
  return {
      Setup(Disjoint(), Layout{}).Heads("vision", 3).Heads("language", 3, 1),
      Setup(Disjoint({.cp = 2}), {.cp = 3}).Heads("vision", 3).Heads("language", 3, 1),
      Setup(Disjoint({.cp = 3}), {.cp = 2}).Gathered().Packed().Heads("language", 3, 3),
      Setup(Disjoint(), {.pp = 2}).Packed(8).ActivationsAway("language").Heads("language", 3, 1),
      Setup({.dp = 2, .ep = 2}).Experts(4).Packed(8).Heads("language", 3, 3),
      Setup(Disjoint({.dp = 2}), {.pp = 2}).Samples(128).Microbatches(1).Heads("language", 3, 1),
  };
}

Config OnDevice(Config config, Precision precision) {
  config.run.precision = precision;
  if (!HasDevice()) return config;
  config.cluster.backend = Backend::kCuda;
  config.cluster.ranks_per_gpu = config.cluster.ranks;
  return config;
}

/// Says which layout is next, since one that hangs ends the program.
Proof ProveOnDevice(const Setup& setup, Precision precision) {
  std::cout << "on " << (HasDevice() ? "device 0" : "the CPU, no device here") << ": "
            << setup.name() << "\n"
            << std::flush;
  return Prove(OnDevice(setup.config(), precision));
}

void CheckOnDevice(const std::string& what, const std::vector<Setup>& setups) {
  double worst = 0.0;
  std::string worst_name;
  for (const Setup& setup : setups) {
    const Proof proof = ProveOnDevice(setup, Precision::kFloat32);
    INFO(setup.name());
    CHECK(proof.failure == "");
    CHECK(proof.comparisons == 4 * kProofSteps);
    CHECK(proof.choices.followed == proof.choices.asked);
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
            << ", float32, " << setups.size() << " " << what << ", " << kProofSteps
            << " steps each: worst gradient " << worst << " of its tensor's maximum (" << worst_name
            << ")\n";
}

}  // namespace

TEST_CASE("layouts on a device have the gradients and moments of the model on the CPU",
          "[parity][gpu]") {
  CheckOnDevice("placements and layouts", Placements());
}

TEST_CASE(
    "tokens cut, packed, sent to experts on a device have the gradients of the model on the CPU",
    "[parity][gpu]") {
  CheckOnDevice("axes within a module", Axes());
}

TEST_CASE("in bfloat16 on a device, gradients are those of float64 on the CPU, nearly",
          "[parity][gpu]") {
  for (const Setup& setup : Attended()) {
    const Proof proof = ProveOnDevice(setup, Precision::kBFloat16);
    INFO(setup.name());
    CHECK(proof.Objection() == "");
  }
}

}  // namespace troupe
