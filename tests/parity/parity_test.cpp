// The headline: whatever the layout, the gradients are those of the unsharded model.
#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/parity/matrix.hpp"
#include "tests/parity/proof.hpp"

namespace troupe {
namespace {

/// What the comparisons of one precision came to.
struct Tally {
  int configurations = 0;
  double worst = -1.0;
  std::string worst_name;
  std::vector<double> gradients;  ///< worst of every tensor in every step

  void Add(const Setup& setup, const Proof& proof) {
    ++configurations;
    gradients.insert(gradients.end(), proof.gradients.begin(), proof.gradients.end());
    if (proof.worst_gradient <= worst) return;
    worst = proof.worst_gradient;
    worst_name = setup.name();
  }
};

void Check(const Setup& setup, Precision precision, Tally& tally, bool portable = false,
           bool queues = false) {
  Config config = setup.config();
  config.run.precision = precision;
  const Proof proof = Prove(config, portable ? Portable(config) : Wrap(), queues);
  INFO(setup.name());
  CHECK(proof.Objection() == "");
  tally.Add(setup, proof);
}

/// Half of all gradients are at most as far off as `part` = 0.5 says.
double Quantile(std::vector<double> values, double part) {
  if (values.empty()) return 0.0;
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
}

void Print(const std::string& precision, const Tally& tally) {
  std::cout << "parity: " << tally.configurations << " configurations, " << kProofSteps
            << " steps each, in " << precision << ": worst gradient " << tally.worst
            << " of its tensor's maximum (" << tally.worst_name << "); of "
            << tally.gradients.size() << " gradients half are within "
            << Quantile(tally.gradients, 0.5) << ", 99% within " << Quantile(tally.gradients, 0.99)
            << "\n"
            << std::flush;
}

/// Checks the wanted layouts in float64, and some in float32 and bfloat16.
void CheckInAllPrecisions(bool (*wanted)(const Setup&)) {
  Tally doubles;
  Tally singles;
  Tally halves;
  for (const Setup& setup : Matrix()) {
    if (!wanted(setup)) continue;
    Check(setup, Precision::kFloat64, doubles);
    if (!setup.float32()) continue;
    Check(setup, Precision::kFloat32, singles);
    Check(setup, Precision::kBFloat16, halves);
  }
  Print("float64", doubles);
  Print("float32", singles);
  Print("bfloat16 against float64", halves);
}

}  // namespace

TEST_CASE("a representative third of the layouts has the gradients of the unsharded model",
          "[parity]") {
  Tally doubles;
  Tally singles;
  for (const Setup& setup : Matrix()) {
    if (!setup.quick()) continue;
    Check(setup, Precision::kFloat64, doubles);
    if (setup.float32()) Check(setup, Precision::kFloat32, singles);
  }
  CHECK(doubles.configurations >= 22);
  CHECK(singles.configurations > 0);
}

TEST_CASE("computed as on a device, layouts have the gradients of the unsharded model",
          "[parity]") {
  Tally doubles;
  Tally singles;
  for (const Setup& setup : Matrix()) {
    if (!setup.portable()) continue;
    Check(setup, Precision::kFloat64, doubles, /*portable=*/true);
    if (setup.float32()) Check(setup, Precision::kFloat32, singles, /*portable=*/true);
  }
  Print("float64 as on a device", doubles);
  Print("float32 as on a device", singles);
  CHECK(doubles.configurations >= 10);
  CHECK(singles.configurations >= 5);
}

TEST_CASE("on devices that run queues, layouts have the gradients of the unsharded model",
          "[parity]") {
  Tally doubles;
  for (const Setup& setup : Matrix()) {
    if (!setup.portable()) continue;
    Check(setup, Precision::kFloat64, doubles, /*portable=*/true, /*queues=*/true);
  }
  Print("float64 on devices that run queues", doubles);
  CHECK(doubles.configurations >= 10);
}

TEST_CASE("in bfloat16, layouts have the gradients of the unsharded model in float64, nearly",
          "[parity]") {
  Tally halves;
  for (const Setup& setup : Matrix()) {
    if (setup.portable()) Check(setup, Precision::kBFloat16, halves);
  }
  // One microbatch with many rows, whose products have many terms.
  const Setup large = Setup(Disjoint({.dp = 2}), {.pp = 2}).Samples(128).Microbatches(1);
  Check(large, Precision::kBFloat16, halves);
  Print("bfloat16 against float64", halves);
  CHECK(halves.configurations >= 10);
}

TEST_CASE("every schedule has the gradients of the unsharded model", "[parity][.schedules]") {
  Tally doubles;
  Tally singles;
  for (const Setup& setup : Matrix()) {
    if (setup.config().schedule.kind == ScheduleKind::k1F1B) continue;
    Check(setup, Precision::kFloat64, doubles);
    if (setup.float32()) Check(setup, Precision::kFloat32, singles);
  }
  Print("float64", doubles);
  Print("float32", singles);
}

TEST_CASE("layouts whose replicas divide states have the gradients of the unsharded model",
          "[parity][.sharded]") {
  CheckInAllPrecisions(
      [](const Setup& setup) { return setup.name().find("sharded") != std::string::npos; });
}

TEST_CASE("layouts that cut samples and images have the gradients of the unsharded model",
          "[parity][.context]") {
  CheckInAllPrecisions(
      [](const Setup& setup) { return setup.name().find("cp") != std::string::npos; });
}

TEST_CASE("packs have the gradients of samples one by one", "[parity][.packs]") {
  CheckInAllPrecisions(
      [](const Setup& setup) { return setup.name().find("packs") != std::string::npos; });
}

TEST_CASE("experts that are divided over ranks have the gradients of all of them in one place",
          "[parity][.experts]") {
  CheckInAllPrecisions(
      [](const Setup& setup) { return setup.config().Find("language")->model->num_experts() > 0; });
}

TEST_CASE("every layout of the matrix has the gradients of the unsharded model", "[parity][slow]") {
  CheckInAllPrecisions([](const Setup&) { return true; });
}

}  // namespace troupe
