// One stage alone: the test plays the stages around it, its feed, its devices and its update.
#pragma once

#include <memory>
#include <string>

#include "actors/stage_actor.hpp"
#include "tests/actors/probes.hpp"

namespace troupe {

inline ActorId StageOf(const std::string& of, int stage) {
  return {.kind = ActorKind::kStage, .stage = stage, .replica = 0, .of = of};
}

/// language.s1 on ranks 4 and 5, between language.s0 and language.s2, at most 2 units in flight.
class StageFixture : public ActorFixture {
 public:
  StageFixture() {
    config.stage = 1;
    config.name = "language.s1 dp0";
    config.ranks = {4, 5};
    config.local = {true, true};
    config.devices = devices.As<LockStep>();
    config.rule.limit = config.rule_without_backward.limit = 2;
    config.feed = {.kind = ActorKind::kFeed, .stage = 1, .replica = 0, .of = "language"};
    config.in = {{"language", StageOf("language.s0", 0), true, {}}};
    config.out = {{{next.As<Downstream>(), 6}, StageOf("language.s2", 2), {}}};
    config.tensors = std::make_shared<TensorStore>(abort);
    config.abort = abort;
  }
  /// It gets `num_links` incoming links.
  void SetLinks(std::size_t num_links) {
    config.in.resize(num_links, {"vision", StageOf("vision.s0", 0), true, {}});
    for (std::size_t l = 0; l < num_links; ++l) config.in[l].place = l;
  }
  void MakeSink() { config.out.clear(); }
  void ReadData() { config.reads_data = true; }
  void Open() { stage = Spawn(RunStage, config); }

  auto Begin(std::int64_t number, std::int64_t microbatches, bool train = true) {
    return Ask<StageReport>(stage, RoundBegin{Round{number, train, number, microbatches, 0.25}});
  }
  auto Activate(std::int64_t unit, int link = 0) {
    const auto value = static_cast<double>(100 * unit + 10 * link);
    return Ask<Gradient>(stage, Activation{unit, link, {RowsOf({value, value + 1})}, {}, {}});
  }
  auto GiveInput(std::int64_t unit, const std::shared_ptr<const Inputs>& data,
                 const DataDelay& delay = {}) {
    return Ask<InputTaken>(stage, Input{unit, data, {"sample " + std::to_string(unit)}, delay});
  }

  /// The devices finish their oldest forward; shard i outputs 1000 * (i + 1) + unit.
  void FinishForward() {
    const auto set = devices.Oldest<ToSet<RunForward>>();
    FromSet<ForwardDone> done;
    for (std::size_t i = 0; i < set.parts.size(); ++i) {
      ForwardDone part{static_cast<std::int64_t>(i) + 1, {}};
      const auto unit = static_cast<double>(set.parts[i].second.pass.unit);
      const auto shard = 1000.0 * static_cast<double>(i + 1);
      for (std::size_t l = 0; l < config.out.size(); ++l) {
        part.result.outputs.push_back(RowsOf({shard + unit}));
      }
      part.result.loss = {0.5 + unit, 3, 2, 0, 0, 0};
      done.parts.push_back(part);
    }
    Give<ToSet<RunForward>>(devices, done);
  }
  /// The same of a backward; the gradient of link l on shard i is -1000 * (i + 1) - 10 * l - unit.
  void FinishBackward() {
    const auto set = devices.Oldest<ToSet<RunBackward>>();
    FromSet<BackwardDone> done;
    for (std::size_t i = 0; i < set.parts.size(); ++i) {
      BackwardDone part{10 * (static_cast<std::int64_t>(i) + 1), {}};
      const auto unit = static_cast<double>(set.parts[i].second.pass.unit);
      for (std::size_t l = 0; l < config.in.size(); ++l) {
        const auto link = static_cast<double>(l);
        part.result.gradients.push_back(
            RowsOf({-1000.0 * static_cast<double>(i + 1) - 10 * link - unit}));
      }
      done.parts.push_back(part);
    }
    Give<ToSet<RunBackward>>(devices, done);
  }
  void GiveGradient(std::int64_t unit) {
    Give<Activation>(next, Gradient{unit, {RowsOf({7.0 + static_cast<double>(unit)})}});
  }
  /// The commands since the last call: "F0 B0".
  std::string Passes() {
    std::string text;
    for (const std::string& line : TakeLog()) {
      const bool forward = line.starts_with("devices: RunForward ");
      if (!forward && !line.starts_with("devices: RunBackward ")) continue;
      text += (text.empty() ? "" : " ") + std::string(forward ? "F" : "B") +
              line.substr(line.rfind(' ') + 1);
    }
    return text;
  }

  Probe& devices = AddProbe("devices");
  Probe& next = AddProbe("next");
  Probe& update = AddProbe("update");
  StageConfig config;
  Stage stage;
};

}  // namespace troupe
