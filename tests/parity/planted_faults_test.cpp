// The proof must fail when a layout is wrong: faults put between the runtime and its programs.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "app/verify_observer.hpp"
#include "modules/torch/planted.hpp"
#include "modules/wrapped_program.hpp"
#include "tests/parity/proof.hpp"
#include "tests/parity/setup.hpp"

namespace troupe {
namespace {

/// `times` counts how often a fault has struck.
struct Decorator : WrappedProgram {
  Decorator(std::unique_ptr<StageProgram> inner, std::shared_ptr<std::atomic<int>> counter)
      : WrappedProgram(std::move(inner)), times(std::move(counter)) {}

  std::shared_ptr<std::atomic<int>> times;
};

Buffer Copy(const Buffer& buffer) {
  Buffer copy = Buffer::Allocate(buffer.shape(), buffer.dtype());
  std::memcpy(copy.data(), buffer.data(), buffer.num_bytes());
  return copy;
}

using Values = std::vector<std::pair<TensorPiece, Buffer>>;

Values SaveGradients(const StageProgram& program) {
  Values values;
  for (const TensorPiece& piece : program.Tensors(TensorKind::kGradient)) {
    values.emplace_back(piece, Copy(piece.value));
  }
  return values;
}

/// The pieces are the program's own memory.
void RestoreGradients(const Values& values) {
  for (const auto& [piece, saved] : values) {
    std::memcpy(piece.value.data(), saved.data(), saved.num_bytes());
  }
}

/// Exchanges the rows of the first two samples that have as many, once.
struct SwapSamples : Decorator {
  using Decorator::Decorator;
  ForwardResult Forward(const ForwardPass& pass) override {
    ForwardResult result = program->Forward(pass);
    const auto& rows = pass.data->table.rows;
    for (std::size_t a = 0, at = 0; a + 1 < rows.size() && *times == 0; at += Size(rows[a++])) {
      if (rows[a] == 0 || rows[a] != rows[a + 1]) continue;
      Buffer swapped = Copy(result.outputs.at(0));
      const std::size_t bytes = Size(rows[a]) * swapped.row_bytes();
      std::byte* first = swapped.data() + at * swapped.row_bytes();
      std::swap_ranges(first, first + bytes, first + bytes);
      result.outputs[0] = swapped;
      ++*times;
    }
    return result;
  }
  static std::size_t Size(std::int64_t rows) { return static_cast<std::size_t>(rows); }
};

/// Gives the output of the unit before, once, where its shape allows.
struct StaleOutput : Decorator {
  using Decorator::Decorator;
  ForwardResult Forward(const ForwardPass& pass) override {
    ForwardResult result = program->Forward(pass);
    const Buffer fresh = result.outputs.at(0);
    if (*times == 0 && latest.defined() && latest.shape() == fresh.shape()) {
      result.outputs[0] = latest;
      ++*times;
    }
    latest = Copy(fresh);
    return result;
  }
  Buffer latest;
};

/// Twice the gradient that goes upstream, once.
struct DoubledGradient : Decorator {
  using Decorator::Decorator;
  BackwardResult Backward(const BackwardPass& pass) override {
    BackwardResult result = program->Backward(pass);
    const Buffer& gradient = result.gradients.at(0);
    if (gradient.num_elements() == 0 || (*times)++ > 0) return result;
    Buffer doubled = Copy(gradient);
    for (std::int64_t i = 0; i < doubled.num_elements(); ++i) doubled.as<double>()[i] *= 2.0;
    result.gradients[0] = doubled;
    return result;
  }
};

/// Twice the gradients of everything, in any precision.
struct DoubledLoss : Decorator {
  using Decorator::Decorator;
  ForwardResult Forward(const ForwardPass& pass) override {
    ForwardPass doubled = pass;
    doubled.loss_scale *= 2.0;
    ++*times;
    return program->Forward(doubled);
  }
};

/// Adds every product up in bfloat16.
struct ShortSums : Decorator {
  using Decorator::Decorator;
  ForwardResult Forward(const ForwardPass& pass) override {
    const PlantLibraryFault planted(LibraryFault::kShortSums);
    ++*times;
    return program->Forward(pass);
  }
  BackwardResult Backward(const BackwardPass& pass) override {
    const PlantLibraryFault planted(LibraryFault::kShortSums);
    return program->Backward(pass);
  }
  void BackwardWeights(std::int64_t unit) override {
    const PlantLibraryFault planted(LibraryFault::kShortSums);
    program->BackwardWeights(unit);
  }
};

/// Takes part in the reduction over replicas, then keeps what it had before.
struct UnreducedGradient : Decorator {
  using Decorator::Decorator;
  BackwardResult Backward(const BackwardPass& pass) override {
    BackwardPass plain = pass;
    plain.last = false;  // no sum may begin before ReduceGradients
    return program->Backward(plain);
  }
  ReducedGradients ReduceGradients() override {
    const Values before = SaveGradients(*program);
    ReducedGradients done = program->ReduceGradients();
    RestoreGradients(before);
    ++*times;
    return done;
  }
};

/// Steps the optimizer twice with the same gradients.
struct UpdateTwice : Decorator {
  using Decorator::Decorator;
  void Update(const UpdateStep& step) override {
    const Values gradients = SaveGradients(*program);
    program->Update(step);
    RestoreGradients(gradients);
    program->Update(step);
    ++*times;
  }
};

/// Steps the part of the state that this replica updates twice.
struct UpdateShardTwice : Decorator {
  using Decorator::Decorator;
  void Update(const UpdateStep& step) override {
    const PlantLibraryFault planted(LibraryFault::kSecondUpdate);
    program->Update(step);
    ++*times;
  }
};

/// Has a fault of the library in its forwards.
template <LibraryFault kFault>
struct FaultyForward : Decorator {
  using Decorator::Decorator;
  ForwardResult Forward(const ForwardPass& pass) override {
    const PlantLibraryFault planted(kFault);
    ++*times;
    return program->Forward(pass);
  }
};

struct Outcome {
  Proof proof;
  int times = 0;  ///< how often the fault struck
};

/// Proves `config` with the fault in one shard (at tp 0).
template <class Fault>
Outcome ProveWith(const Config& config, const std::string& module, int pp, int dp) {
  const auto times = std::make_shared<std::atomic<int>>(0);
  const Wrap wrap = [=](ProgramFactory make) -> ProgramFactory {
    return [=](const ShardAddress& shard) -> std::unique_ptr<StageProgram> {
      auto program = make(shard);
      const bool here = shard.module == module && shard.pp == pp && shard.dp == dp && shard.tp == 0;
      if (!here) return program;
      return std::make_unique<Fault>(std::move(program), times);
    };
  };
  Outcome outcome{Prove(config, wrap), 0};
  outcome.times = *times;
  return outcome;
}

template <class Fault>
Outcome ProveWith(const Setup& setup, const std::string& module, int pp, int dp) {
  return ProveWith<Fault>(setup.config(), module, pp, dp);
}

/// The modules (a projector is one) whose `kind` is said to be wrong in step 1.
std::set<std::string> ModulesAtFault(const Proof& proof, const std::string& kind) {
  const std::string prefix = "step 1, " + kind + ": ";
  std::set<std::string> modules;
  for (const std::string& fault : proof.faults) {
    if (!fault.starts_with(prefix)) continue;
    modules.insert(fault.substr(prefix.size(), fault.find('.') - prefix.size()));
  }
  return modules;
}

/// Whether a fault of step 1 names a tensor whose name begins with `tensor`.
bool Names(const Proof& proof, const std::string& kind, const std::string& tensor) {
  return std::ranges::any_of(proof.faults, [&](const std::string& fault) {
    return fault.starts_with("step 1, " + kind + ": " + tensor);
  });
}

using Modules = std::set<std::string>;
const Modules kEverything = {"vision", "vision_to_language", "language"};

}  // namespace

TEST_CASE("a decorator that changes nothing keeps the proof", "[parity][faults]") {
  const Setup setup(Disjoint({.pp = 2, .dp = 2}), {.tp = 2, .pp = 2});
  CHECK(ProveWith<Decorator>(setup, "vision", 1, 1).proof.Objection() == "");
}

TEST_CASE("two samples' rows exchanged in an encoder's output break the proof",
          "[parity][faults]") {
  const Setup setup =
      Setup(GENERATE(Disjoint({.dp = 2}), Colocated({.dp = 4})), {.tp = 2, .dp = 2}).Samples(4);
  const Outcome outcome = ProveWith<SwapSamples>(setup, "vision", 0, 1);
  CHECK(outcome.times == 1);
  CHECK(outcome.proof.failure == "");
  CHECK(ModulesAtFault(outcome.proof, "gradient") == kEverything);
}

TEST_CASE("the activation of the microbatch before breaks the proof", "[parity][faults]") {
  const Setup setup = Setup(Disjoint({.dp = 2}), {.pp = 2}).Microbatches(8);
  const Outcome outcome = ProveWith<StaleOutput>(setup, "vision", 0, 0);
  CHECK(outcome.times == 1);
  CHECK(outcome.proof.failure == "");
  CHECK(ModulesAtFault(outcome.proof, "gradient") == kEverything);
}

TEST_CASE("a gradient doubled between two stages is found upstream of it only",
          "[parity][faults]") {
  const Setup setup(Disjoint({.pp = 2, .dp = 2}), {.pp = 2});
  const Outcome outcome = ProveWith<DoubledGradient>(setup, "vision", 1, 0);
  CHECK(outcome.times > 0);
  CHECK(outcome.proof.failure == "");
  CHECK(ModulesAtFault(outcome.proof, "gradient") == Modules{"vision"});
  CHECK(Names(outcome.proof, "gradient", "vision.encoder.layers.0."));
  CHECK_FALSE(Names(outcome.proof, "gradient", "vision.encoder.layers.1."));
}

TEST_CASE("a gradient doubled on an edge is found in the encoder and its projector",
          "[parity][faults]") {
  const Setup setup(GENERATE(Disjoint({.dp = 2}), Colocated({.dp = 2})), {.pp = 2});
  const Outcome outcome = ProveWith<DoubledGradient>(setup, "language", 0, 0);
  CHECK(outcome.times > 0);
  CHECK(outcome.proof.failure == "");
  CHECK(ModulesAtFault(outcome.proof, "gradient") == Modules{"vision", "vision_to_language"});
}

TEST_CASE("bfloat16 has no room for a loss that counts twice", "[parity][faults]") {
  Config config = Setup(Disjoint({.dp = 2}), {.pp = 2}).config();
  config.run.precision = Precision::kBFloat16;
  const Outcome outcome = ProveWith<DoubledLoss>(config, "language", 1, 0);
  CHECK(outcome.times > 0);
  CHECK(outcome.proof.failure == "");
  CHECK(ModulesAtFault(outcome.proof, "gradient") == kEverything);
  CHECK(Names(outcome.proof, "gradient", "language.lm_head.weight"));
}

TEST_CASE("bfloat16 has no room for products that add up in bfloat16", "[parity][faults]") {
  Config config = Setup(Disjoint({.dp = 2}), {.pp = 2}).Samples(32).Microbatches(1).config();
  config.run.precision = Precision::kBFloat16;
  CHECK(ProveWith<Decorator>(config, "language", 1, 0).proof.Objection() == "");
  const Outcome outcome = ProveWith<ShortSums>(config, "language", 1, 0);
  CHECK(outcome.times > 0);
  CHECK(outcome.proof.failure == "");
  CHECK(ModulesAtFault(outcome.proof, "gradient").contains("language"));
  CHECK(outcome.proof.worst_gradient >
        1.25 * ToleranceOf(config.run.precision, TensorKind::kGradient));
}

TEST_CASE("a shard without the gradients of its replicas is found in its module only",
          "[parity][faults]") {
  const Setup setup(Disjoint({.dp = 3}), {.tp = 2, .dp = 2});
  const auto [module, dp] = GENERATE(std::pair<std::string, int>("vision", 2),
                                     std::pair<std::string, int>("language", 0));
  const Outcome outcome = ProveWith<UnreducedGradient>(setup, module, 0, dp);
  CHECK(outcome.times == kProofSteps);
  CHECK(outcome.proof.failure == "");
  const Modules expected =
      module == "vision" ? Modules{"vision", "vision_to_language"} : Modules{"language"};
  CHECK(ModulesAtFault(outcome.proof, "gradient") == expected);
}

TEST_CASE("a shard of a state that is updated twice is found in its module only",
          "[parity][faults]") {
  const Precision precision = GENERATE(Precision::kFloat64, Precision::kFloat32);
  Config config = Setup(Disjoint({.dp = 2}), {.tp = 2, .dp = 2}).Sharded().config();
  config.run.precision = precision;
  const Outcome outcome = ProveWith<UpdateShardTwice>(config, "language", 0, 1);
  CHECK(outcome.times == kProofSteps);
  CHECK(outcome.proof.failure == "");
  CHECK(ModulesAtFault(outcome.proof, "gradient") == Modules{});
  for (const char* kind : {"first moment", "second moment"}) {
    CHECK(ModulesAtFault(outcome.proof, kind) == Modules{"language"});
  }
  if (precision != Precision::kFloat64) return;
  CHECK(ModulesAtFault(outcome.proof, "parameter") == Modules{"language"});
}

TEST_CASE("keys and values that are stale by one exchange break the proof", "[parity][faults]") {
  const ContextExchange exchange = GENERATE(ContextExchange::kRing, ContextExchange::kGather);
  Config config = Setup(Disjoint({.cp = 2}), {.cp = 3}).Context(48).config();
  config.schedule.context_exchange = exchange;
  const auto module = GENERATE(std::string("vision"), std::string("language"));
  const Outcome outcome =
      ProveWith<FaultyForward<LibraryFault::kStaleKeyValues>>(config, module, 0, 0);
  CHECK(outcome.times > 0);
  CHECK(outcome.proof.failure == "");
  CHECK(ModulesAtFault(outcome.proof, "gradient") == kEverything);
}

TEST_CASE("a pack whose samples see each other breaks the proof", "[parity][faults]") {
  // The table of positions is as long as the context, into which a pack fits.
  const Setup setup = Setup(Disjoint(), {.pp = 2}).Context(300).Samples(1).Packed();
  CHECK(ProveWith<Decorator>(setup, "language", 0, 0).proof.Objection() == "");
  const Outcome outcome =
      ProveWith<FaultyForward<LibraryFault::kJoinedSamples>>(setup, "language", 0, 0);
  CHECK(outcome.times > 0);
  CHECK(outcome.proof.failure == "");
  CHECK(ModulesAtFault(outcome.proof, "gradient") == kEverything);
}

TEST_CASE("experts that get each other's tokens break the proof", "[parity][faults]") {
  const Setup setup = Setup(Disjoint(), {.tp = 2, .dp = 2, .ep = 2}).Experts(4);
  CHECK(ProveWith<Decorator>(setup, "language", 0, 1).proof.Objection() == "");
  const Outcome outcome =
      ProveWith<FaultyForward<LibraryFault::kSwappedExperts>>(setup, "language", 0, 1);
  CHECK(outcome.times > 0);
  CHECK(outcome.proof.failure == "");
  CHECK(ModulesAtFault(outcome.proof, "gradient") == kEverything);
}

TEST_CASE("a load that is balanced by the tokens of a rank alone breaks the proof",
          "[parity][faults]") {
  // Ranks along tp share a sample.
  Setup setup = Setup(Disjoint(), {.tp = 2, .dp = 2, .ep = 2}).Samples(3).Experts(4);
  if (GENERATE(false, true)) setup.BalancedByMicrobatch();
  const Outcome outcome =
      ProveWith<FaultyForward<LibraryFault::kUnsharedBalance>>(setup, "language", 0, 1);
  CHECK(outcome.times > 0);
  CHECK(outcome.proof.failure == "");
  CHECK(ModulesAtFault(outcome.proof, "gradient") == kEverything);
  CHECK(Names(outcome.proof, "gradient", "language.layers.0.mlp.gate.weight"));
}

TEST_CASE("an update that is applied twice is found in its module only", "[parity][faults]") {
  const Setup setup(Disjoint({.dp = 2}), {.tp = 2, .pp = 2});
  const Outcome outcome = ProveWith<UpdateTwice>(setup, "language", 1, 0);
  CHECK(outcome.times == kProofSteps);
  CHECK(outcome.proof.failure == "");
  CHECK(ModulesAtFault(outcome.proof, "gradient") == Modules{});
  for (const char* kind : {"parameter", "first moment", "second moment"}) {
    CHECK(ModulesAtFault(outcome.proof, kind) == Modules{"language"});
  }
}

}  // namespace troupe
