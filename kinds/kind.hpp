// The kinds of modules: vision transformer, language model, ... All code that depends on the kind
// of a module and needs no tensor library is in one pair of files per kind, kinds/KIND.{hpp,cpp}.
// Its body and its part of the reference are in modules/torch/KIND*. kinds/list.cpp and
// modules/torch/list.cpp list the kinds. docs/extending.md shows how to add one.
//
//   ModuleKind    one object per kind: its word, its keys
//   ModelConfig   the values of those keys for one module, and properties derived from them
//   Model         a ModelConfig as a value: copied and compared
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "kinds/field.hpp"
#include "kinds/foreign.hpp"
#include "kinds/key.hpp"
#include "kinds/parameter.hpp"
#include "kinds/work.hpp"
#include "layout/route.hpp"
#include "layout/row_table.hpp"

namespace troupe {

class Model;
class ModelConfig;

/// A field of some enumeration, whose values are in the order of the key's words.
struct EnumField {
  std::function<std::size_t()> get;
  std::function<void(std::size_t)> set;

  template <typename Enum>
  requires std::is_enum_v<Enum>
  static EnumField Of(Enum& field) {
    return {[&field] { return static_cast<std::size_t>(field); },
            [&field](std::size_t index) { field = static_cast<Enum>(index); }};
  }
};

/// The field of a ModelConfig for a key.
using ModelSlot =
    std::variant<std::string*, bool*, std::int64_t*, std::optional<std::int64_t>*, double*,
                 std::optional<double>*, std::array<double, 3>*, std::vector<TileGrid>*, EnumField>;

template <typename Field>
ModelSlot SlotOf(Field& field) {
  if constexpr (std::is_enum_v<Field>) {
    return EnumField::Of(field);
  } else {
    return &field;
  }
}

/// A key of one kind.
struct ModelKey : KeyText {
  template <typename... Parts>
  ModelKey(std::string_view key, Parts... parts) {
    name = key;
    (Set(std::move(parts)), ...);
  }
  std::function<ModelSlot(ModelConfig&)> slot;

 private:
  template <typename Struct, typename Field>
  void Set(Field Struct::*field) {
    type = TypeOf<Field>();
    slot = [field](ModelConfig& model) -> ModelSlot {
      return SlotOf(static_cast<Struct&>(model).*field);
    };
  }
  void Set(ModelSlot (*of)(ModelConfig&)) { slot = of; }
  template <typename Part>
  void Set(Part part) {
    Put(*this, std::move(part));
  }
};

struct ModuleKind {
  std::string_view word;                        ///< in TOML: "vit"
  std::string_view meaning;                     ///< "CLIP-style vision transformer"
  std::vector<std::string_view> other_words;    ///< its names in other programs
  std::vector<std::string_view> similar_words;  ///< kinds that are not supported, of which this is
                                                ///< the nearest
  Model (*make)();                              ///< with the defaults of its keys
  std::vector<ModelKey> (*keys)();
  /// Its names as `model_type` of a Hugging Face folder; empty: it is in none.
  std::vector<std::string_view> foreign_types = {};
  /// Fills the keys of `model`, of this kind, from such a folder's configuration. `whole` is the
  /// LLaVA that `config` is a part of; null: it stands alone.
  void (*read_foreign)(const ForeignConfig& config, const ForeignConfig* whole,
                       ModelConfig& model) = nullptr;
  /// Returns the values of config.json for `model`, of this kind. `source` is the model as the folder
  /// that it started from describes it; null: it started from random values.
  ForeignValues (*write_foreign)(const ModelConfig& model, const ModelConfig* source) = nullptr;
  /// Returns what a folder of a `model` that started from random values needs besides its
  /// parameters.
  std::vector<ForeignConstant> (*foreign_constants)(const ModelConfig& model) = nullptr;
  /// The names of its tensors there. The first that lead to a tensor `foreign_probe` are used. Every
  /// model of the kind has that tensor.
  std::vector<ForeignNames> foreign_names = {};
  std::string_view foreign_probe = {};
  /// The tensors with a row for each token. Where a folder has fewer rows than the module, the others
  /// start as the mean of its rows.
  std::vector<std::string_view> foreign_vocabulary = {};
  /// The first parts of the names of all its tensors there, those included that the module does not
  /// have.
  std::vector<std::string_view> foreign_roots = {};
  ForeignNames foreign_alone = {};     ///< the names to write in a folder of this module
  ForeignNames foreign_in_whole = {};  ///< and in a folder of a whole LLaVA
  /// Returns our spelling of a name in a folder of some family; null: all are spelt as ours.
  std::string (*own_spelling)(const std::string& name) = nullptr;
  /// Returns the reverse for the family of `model`.
  std::string (*foreign_spelling)(const ModelConfig& model, const std::string& name) = nullptr;
  /// The names of its tensors in a whole LLaVA in memory, by which PEFT calls them.
  ForeignNames foreign_in_memory = {};
};

/// A key with its value, as it appears in messages.
struct Named {
  std::string key;
  std::int64_t value = 0;
};

/// The interface through which a kind checks a module and reports errors. Keys are dotted:
/// "modules.vision.hidden".
class ModuleCheck {
 public:
  /// A module that feeds this one.
  struct Source {
    std::string name;
    const ModelConfig* model = nullptr;
    bool good = false;  ///< no error was reported for the keys of its kind
  };

  virtual ~ModuleCheck() = default;
  /// Returns the dotted name of a key of the module.
  virtual std::string KeyOf(const std::string& name) const = 0;
  /// Returns whether no error was reported for any of these keys, so that checks may use them.
  virtual bool Good(std::initializer_list<std::string> keys) const = 0;
  virtual void Add(const std::string& key, const std::string& text) = 0;
  /// Reports at the key written later if `number` is not a multiple of `divisor`.
  virtual void ExpectMultiple(const Named& number, const Named& divisor) = 0;

  /// Returns the module's tensor parallelism; that of its host if it is inline.
  virtual Named tp() const = 0;
  /// Returns the number of parts of each of its experts.
  virtual Named etp() const = 0;
  virtual std::vector<Source> sources() const = 0;
  /// Returns the number of modules that read a field, each with a placeholder token; none if a kind
  /// is unknown.
  virtual std::optional<std::int64_t> num_placeholders() const = 0;
  virtual bool reads_bytes() const = 0;  ///< the tokenizer is "bytes"

  Named Own(const std::string& name, std::int64_t value) const { return {KeyOf(name), value}; }
};

/// A pipeline stage of a module, as its kind sees it.
struct StagePlace {
  Interval layers;     ///< the layers that it runs
  bool first = false;  ///< of the module's stages
  bool last = false;
};

/// The layers that pipeline stages are cut from.
struct Layers {
  std::int64_t number = 0;
  std::string_view which = {};  ///< for texts: "up to feature_layer"
};

/// Requirements of a module that reads text.
struct TextInput {
  std::int64_t vocab = 0;    ///< size of its vocabulary
  std::int64_t context = 0;  ///< maximum number of tokens in a sample
};

/// The stated times of a module that computes nothing.
struct StatedTimes {
  double forward_ms = 0.0;  ///< per stage of a plain pipeline and microbatch
  double backward_ms = 0.0;
  double weight_share = 0.0;  ///< the weights' part of backward_ms in a split backward
  double sample_sigma = 0.0;  ///< deviation of the logarithm of times over samples
};

/// The defaults describe a module that reads nothing and has no parameters. A kind overrides the
/// others.
class ModelConfig {
 public:
  virtual ~ModelConfig() = default;
  virtual const ModuleKind& kind() const = 0;
  virtual std::unique_ptr<ModelConfig> Clone() const = 0;
  virtual bool Equals(const ModelConfig& other) const = 0;

  // Keys.
  /// Fills keys that are not stated and that follow from others.
  virtual void FillDefaults(const std::function<bool(const char* key)>& /*stated*/) {}
  /// Reports sizes that do not fit together.
  virtual void Check(ModuleCheck& /*check*/) const {}
  /// Returns the reason why rows of `source` cannot enter this module, ending with the expected
  /// source; "" if they can.
  virtual std::string WhyNotFrom(const ModelConfig& /*source*/) const { return {}; }

  /// Makes the squares of `side` x `side` rows of an item leave as one wide row; 1: every row alone.
  /// Returns false, and does nothing, if its rows form no squares.
  virtual bool JoinRows(std::int64_t /*side*/) { return false; }

  // Samples.
  /// Returns the field that it reads of a sample; null if none.
  virtual std::unique_ptr<const Field> field() const { return nullptr; }
  /// Returns the recipe among its keys; null if it reads no images.
  virtual ImageRecipe* images() { return nullptr; }
  /// Returns the number of rows that it emits for an item of that length; the most rows of any
  /// item. If every item gives the same number, both return it.
  virtual std::int64_t RowsOf(std::int64_t length) const { return length * rows_per_item(); }
  virtual std::int64_t rows_per_item() const { return 0; }
  /// Returns the greatest length of an item, for estimates.
  virtual std::int64_t most_length() const { return 1; }
  /// Returns its requirements if it reads text.
  virtual std::optional<TextInput> text() const { return std::nullopt; }
  /// Returns whether that stage reads the data of its samples. `source`: no module feeds this one.
  virtual bool ReadsData(bool first_stage, bool /*last_stage*/, bool /*source*/) const {
    return first_stage;
  }

  /// Returns the number of rows along a side of a tile, if the items of its field are images that are
  /// cut into tiles; else 0. The rows of tiles lie in the order of the image, each line of them ends
  /// with a newline row (plan/stage_parts.hpp, NewlineName), and those of the padding are left out.
  virtual std::int64_t tile_side() const { return 0; }

  // Sizes.
  /// Returns the width of the rows that it emits or takes.
  virtual std::int64_t row_width() const = 0;
  virtual bool emits_rows() const { return true; }   ///< else its last stage computes a loss
  virtual bool takes_rows() const { return false; }  ///< others may run inline in its first stage
  virtual std::optional<StatedTimes> stated_times() const { return std::nullopt; }
  bool computes() const { return !stated_times(); }  ///< it has a body in modules/torch
  /// Returns nothing if its stages have no layers to count.
  virtual std::optional<Layers> split_layers() const { return std::nullopt; }
  /// Keeps the first `most` of the layers that are built.
  virtual void KeepLayers(std::int64_t /*most*/) {}
  /// Returns whether its sizes can be cut into `tp` parts.
  virtual bool AllowsTp(int /*tp*/) const { return true; }
  /// Returns the number of key and value heads that ranks share if tp is larger; 0: none are
  /// shared.
  virtual std::int64_t shared_kv_heads() const { return 0; }
  /// Returns whether its body cuts the rows between the linears of its layers over tp where the group
  /// says so (modules/torch/sequence_rows.hpp). Then gradients of Cut::kNone are partial in layers.
  virtual bool cuts_rows() const { return false; }
  /// Returns whether it does so from its first stage to its last, too. Then all its gradients of
  /// Cut::kNone are partial.
  virtual bool cuts_all_rows() const { return false; }
  /// Returns how its rows are cut over `cp` ranks, as a source of an edge and as its end.
  virtual RowCut CutOver(int cp) const { return {RowCut::By::kItems, cp, rows_per_item()}; }
  /// Returns the largest cp that it allows.
  virtual std::int64_t most_context_parts() const { return 1; }
  /// Returns whether a module of its kind may have experts.
  virtual bool may_have_experts() const { return false; }
  /// Returns the experts of a layer that has some; 0: none has.
  virtual std::int64_t num_experts() const { return 0; }
  /// Returns whether each of them can be cut into `etp` parts.
  virtual bool AllowsEtp(int etp) const { return etp == 1; }
  /// Returns whether it has parameters of Cut::kSummed.
  virtual bool sums_over_tp() const { return false; }
  /// Returns whether the first and the last stage, if distinct, each hold a copy of the embedding.
  virtual bool ties_embedding() const { return false; }

  // Layers, in the order in which they run.
  virtual void AddParameters(const StagePlace& /*stage*/, ParameterList& /*list*/) const {}
  /// Lists the operations of a forward. `name` is the module's name, the key of its items in `shape`.
  virtual void ListWork(const StagePlace& /*stage*/, const StepShape& /*shape*/,
                        const std::string& /*name*/, WorkList& /*work*/) const {}
  /// Returns the elements of activations that a microbatch keeps for the backward.
  virtual std::int64_t KeptElements(const StagePlace& /*stage*/, const RankWork& /*work*/) const {
    return 0;
  }
  /// Returns what a pass of a microbatch needs for a while in one of these layers, if there is any.
  virtual LayerSpace SpaceElements(const StagePlace& /*stage*/, const RankWork& /*work*/) const {
    return {};
  }
  /// For the defaulted comparisons of kinds: it has no keys. Equals compares two models.
  friend bool operator==(const ModelConfig&, const ModelConfig&) { return true; }
};

/// Implements the functions that are the same in every kind: struct LlamaConfig :
/// ModelOf<LlamaConfig, kLlama>. The struct has a defaulted operator==. `Base`: what several kinds
/// share.
template <class Derived, const ModuleKind& kKind, std::derived_from<ModelConfig> Base = ModelConfig>
class ModelOf : public Base {
 public:
  const ModuleKind& kind() const final { return kKind; }
  std::unique_ptr<ModelConfig> Clone() const final {
    return std::make_unique<Derived>(static_cast<const Derived&>(*this));
  }
  bool Equals(const ModelConfig& other) const final {
    const auto* const same = dynamic_cast<const Derived*>(&other);
    return same != nullptr && static_cast<const Derived&>(*this) == *same;
  }
  friend bool operator==(const ModelOf&, const ModelOf&) = default;
};

/// A ModelConfig as a value.
class Model {
 public:
  template <std::derived_from<ModelConfig> Config>
  Model(const Config& config) : config_(config.Clone()) {}
  Model(const Model& other) : config_(other.config_->Clone()) {}
  Model(Model&&) noexcept = default;
  Model& operator=(Model other) noexcept {
    config_ = std::move(other.config_);
    return *this;
  }

  const ModelConfig* operator->() const { return config_.get(); }
  ModelConfig* operator->() { return config_.get(); }
  const ModelConfig& operator*() const { return *config_; }
  ModelConfig& operator*() { return *config_; }
  const ModuleKind& kind() const { return config_->kind(); }
  friend bool operator==(const Model& a, const Model& b) { return a.config_->Equals(*b.config_); }

 private:
  std::unique_ptr<ModelConfig> config_;
};

/// Returns the model of a module whose kind is not known yet: synthetic.
Model DefaultModel();

/// Returns every kind, in the order of the list.
std::span<const ModuleKind* const> Kinds();
/// Adds a kind to this program only, such as one of a test. Call it before any configuration is
/// read.
void AddKind(const ModuleKind& kind);

}  // namespace troupe
