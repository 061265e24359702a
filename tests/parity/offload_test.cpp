// What leaves its device comes back as it was: not one bit of a run is another one.
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include <catch2/catch.hpp>

#include "modules/wrapped_program.hpp"
#include "tests/parity/proof.hpp"
#include "tests/parity/setup.hpp"

namespace troupe {
namespace {

/// The bits of all gradients, parameters and moments of every step, of all shards, and how much
/// left the devices.
struct Bits {
  std::mutex mutex;
  std::map<std::string, std::string> tensors;
  std::int64_t offloads = 0;
  std::size_t most_away = 0;  ///< bytes of one shard
};

class BitsOfPasses : public WrappedProgram {
 public:
  BitsOfPasses(std::unique_ptr<StageProgram> inner, ShardAddress shard, std::shared_ptr<Bits> bits)
      : WrappedProgram(std::move(inner)), shard_(std::move(shard)), bits_(std::move(bits)) {}

  void Offload(StateMovedCallback done) override {
    const std::size_t before = program->state_bytes();
    // Only whether it is away is asked here: what is left is known when the copies have begun.
    program->Offload(std::move(done));
    const std::lock_guard lock(bits_->mutex);
    ++bits_->offloads;
    bits_->most_away = std::max(bits_->most_away, before - program->state_bytes());
  }
  void Update(const UpdateStep& step) override {
    Note(step, TensorKind::kGradient);
    program->Update(step);
    Note(step, TensorKind::kParameter);
    Note(step, TensorKind::kFirstMoment);
    Note(step, TensorKind::kSecondMoment);
  }

 private:
  void Note(const UpdateStep& step, TensorKind kind) {
    for (const TensorPiece& piece : program->Tensors(kind)) {
      const std::string key = ToString(shard_) + " step " + std::to_string(step.step) + " kind " +
                              std::to_string(static_cast<int>(kind)) + " " + piece.name;
      const std::lock_guard lock(bits_->mutex);
      bits_->tensors[key].assign(reinterpret_cast<const char*>(piece.value.data()),
                                 piece.value.num_bytes());
    }
  }

  ShardAddress shard_;
  std::shared_ptr<Bits> bits_;
};

std::shared_ptr<Bits> Run(Config config, Offload what) {
  for (ModuleConfig& module : config.modules) {
    if (module.name != "language") module.offload = what;
  }
  auto bits = std::make_shared<Bits>();
  const Proof proof = Prove(config, [bits](ProgramFactory make) -> ProgramFactory {
    return [=](const ShardAddress& shard) -> std::unique_ptr<StageProgram> {
      return std::make_unique<BitsOfPasses>(make(shard), shard, bits);
    };
  });
  CHECK(proof.Objection() == "");
  return bits;
}

}  // namespace

TEST_CASE("offloading changes no bit of a gradient, parameter or moment", "[parity]") {
  const Setup setup = GENERATE(
      Setup(Colocated({.dp = 4}), {.tp = 2, .dp = 2}),
      Setup(Colocated({.tp = 2, .dp = 3}), {.tp = 3, .dp = 2}).Heads("language", 6, 3).Samples(3),
      Setup(Colocated({.pp = 2, .dp = 2}), {.pp = 2, .dp = 2}).Window(2),
      Setup(Colocated({.dp = 2}), {.pp = 2})
          .Recomputed("vision", Recompute{LayerPart::kLayer})
          .Window(1),
      Setup(Colocated({.dp = 4}), Colocated({.pp = 2, .dp = 2}), {.tp = 4}));
  INFO(setup.name());
  const auto without = Run(setup.config(), Offload::kNone);
  const auto parameters = Run(setup.config(), Offload::kParameters);
  const auto state = Run(setup.config(), Offload::kState);
  CHECK(without->tensors.size() > 4 * 30 * static_cast<std::size_t>(kProofSteps));
  CHECK(parameters->tensors == without->tensors);
  CHECK(state->tensors == without->tensors);
  CHECK(without->most_away == 0);
  CHECK(parameters->most_away > 10'000);
  CHECK(state->most_away == 4 * parameters->most_away);  // gradients and two moments of the same
  CHECK(parameters->offloads > 0);
  CHECK(parameters->offloads == state->offloads);
}

}  // namespace troupe
