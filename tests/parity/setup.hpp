// One configuration of the parity matrix, said in one line: where the encoders are, how every
// module is cut, and what else is different from the base.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "configs/config.hpp"

namespace troupe {

/// Where an encoder is, and how it is cut.
struct EncoderPlace {
  Placement placement = Placement::kDisjoint;
  Layout layout = {};
};
inline EncoderPlace Disjoint(Layout layout = {}) { return {Placement::kDisjoint, layout}; }
inline EncoderPlace Colocated(Layout layout = {}) { return {Placement::kColocated, layout}; }
inline EncoderPlace Inline() { return {Placement::kInline, {}}; }

/// A small model and its layout. The language model has the ranks from 0 on, disjoint encoders
/// those behind it. Every verb changes one thing and says so in the name.
///   vision    4 rows per image, hidden 24, 2 of 3 layers built, field "image": 0 to 2 in a sample
///   detail    9 rows per image, hidden 12, 2 layers, field "detail": 0 or 1 in a sample
///   language  hidden 24, 3 layers, 4 heads, 2 key/value heads
/// Training clips, warms up and decays, and the encoder has a learning rate of its own.
class Setup {
 public:
  explicit Setup(Layout language);
  Setup(EncoderPlace vision, Layout language);
  Setup(EncoderPlace vision, EncoderPlace detail, Layout language);

  Setup& Frozen(const std::string& module);
  Setup& Recomputed(const std::string& module, Recompute what);
  /// All its linear layers have adapters, which drop `dropout` of their inputs.
  Setup& Adapters(const std::string& module, double dropout);
  Setup& Offloaded(const std::string& module, Offload what);
  Setup& ResultsOnHost(const std::string& module);
  Setup& ActivationsAway(const std::string& module, std::vector<std::int64_t> layers = {});
  /// The replicas of every module, or of one, divide the state of its optimizer.
  Setup& Sharded(std::int64_t instances = 1);
  Setup& Sharded(const std::string& module, std::int64_t instances = 1);
  /// Samples share rows, as many as fit into the context, of windows of that many.
  Setup& Packed(std::int64_t window = 16);
  /// The layers of the language model have experts, 12 wide, whose loads are balanced by sample.
  Setup& Experts(std::int64_t count, std::int64_t per_token = 2);
  /// And one for all tokens; the router's softmax comes before its choice.
  Setup& SharedExpert();
  Setup& ExpertsEvery(std::int64_t layers);
  Setup& BalancedByMicrobatch();
  /// Ranks along cp gather keys and values at once.
  Setup& Gathered();
  /// Rows between the linear layers of a module are not cut over tp.
  Setup& WithoutSp(const std::string& module);
  Setup& FrozenProjector();
  Setup& ProjectorAtLanguage();
  Setup& NoProjector();
  Setup& ClassToken();
  /// The images of other rows, of many sizes, are cut into tiles: 8 to 16 rows of the encoder each,
  /// some of which are left out.
  Setup& Tiles();
  Setup& FeatureLayer(std::int64_t layer);
  Setup& TiedHead();
  Setup& NoClip();
  /// Rows grouped by modality and length, decay by rule, a projector with values of its own, a
  /// linear schedule with a warm-up ratio from zero.
  Setup& Recipe();
  Setup& Layers(const std::string& module, std::int64_t layers);
  Setup& LayersPerStage(const std::string& module, const std::vector<std::int64_t>& layers);
  Setup& Heads(const std::string& module, std::int64_t heads);
  Setup& Heads(const std::string& module, std::int64_t heads, std::int64_t kv_heads);
  Setup& PipelineFastest(const std::string& module);  ///< axis order pp, dp, cp, tp
  Setup& Ranks(const std::string& module, const std::vector<int>& ranks);
  Setup& Credits(int credits);
  Setup& Context(std::int64_t tokens);
  Setup& Samples(std::int64_t micro_batch_size);
  Setup& Microbatches(std::int64_t microbatches);
  Setup& Window(std::int64_t microbatches);
  Setup& Seed(std::uint64_t seed);
  Setup& Gpipe();
  Setup& ZbH1();
  Setup& Interleaved(int chunks);
  Setup& Csv(const std::string& orders);  ///< what the file says
  /// Part of the default tests.
  Setup& Quick();
  /// Compared in float32 as well.
  Setup& Float32();
  /// Compared as a device would compute it as well, see TorchOptions.
  Setup& Portable();

  /// "vision dp4 disjoint to language tp2 pp2, tied head"
  const std::string& name() const { return name_; }
  const Config& config() const { return config_; }
  bool quick() const { return quick_; }
  bool float32() const { return float32_; }
  bool portable() const { return portable_; }

 private:
  ModuleConfig& Module(const std::string& name);
  void AddEncoder(ModuleConfig encoder, const EncoderPlace& place);
  Setup& Note(const std::string& note);
  Setup& Scheduled(const std::string& kind);

  Config config_;
  std::string name_;
  bool quick_ = false;
  bool float32_ = false;
  bool portable_ = false;
};

}  // namespace troupe
