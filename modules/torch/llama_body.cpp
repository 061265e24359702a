#include <cstdint>
#include <optional>
#include <stdexcept>
#include <utility>

#include "modules/torch/dropout.hpp"
#include "modules/torch/encoder_body.hpp"
#include "modules/torch/llama.hpp"
#include "modules/torch/placed_rows.hpp"
#include "modules/torch/projector.hpp"
#include "modules/torch/routed_rows.hpp"
#include "modules/torch/sequence_rows.hpp"
#include "modules/torch/tensors.hpp"
#include "modules/torch/token_places.hpp"
#include "plan/row_cuts.hpp"

namespace troupe {
namespace {

/// One edge into the language model: the origin of its rows and the modules that run here.
struct Source {
  ModuleConfig module;
  RowDropout dropout;
  std::unique_ptr<Encoder> encoder = nullptr;  ///< when it runs inline
  std::optional<Projector> projector = {};     ///< when it runs here
  at::Tensor newline = {};                     ///< a leaf [H], where its images are cut into tiles
  std::size_t input = 0;                       ///< otherwise its place among the incoming links
  RowCut cut = {};                             ///< likewise
};

/// [tokens, rows of every encoder] -> layers -> [loss].
class LlamaBody : public StageBody {
 public:
  LlamaBody(const Config& config, const ModuleConfig& module, int pp, const ParameterStore& store,
            const BodyGroups& groups)
      : name_(module.name),
        packs_(config.data.packing),
        groups_(groups),
        dropout_(config, module),
        first_(pp == 0),
        last_(pp + 1 == module.num_stages()),
        routing_(config, module, pp),
        llama_(module, pp, store, groups) {
    if (first_) AddSources(config, store, groups.tensor);
  }

  BodyResult Forward(const std::vector<at::Tensor>& inputs, const ForwardPass& pass) override {
    const Rows in = first_ ? Merge(inputs, pass) : FromHop(inputs.at(0), pass);
    const DropoutScope dropout(
        dropout_.RowsOf(pass, pass.table(), in.places.num_rows(), in.rows.device(),
                        [&in](std::size_t sample) { return in.places.TokensOf(sample); }));
    const at::Tensor rows =
        llama_.RunLayers(in.rows, in.places.lengths(),
                         routing_.RowsOf(pass, in.places, *groups_.tensor, in.rows.device()));
    if (last_) return Loss(rows, in, RequireData(pass, name_));
    if (ragged() || cuts_rows()) return {{rows}, {}, {}};
    return {{rows.view({std::ssize(in.places.lengths()), in.width, rows.size(1)})}, {}, {}};
  }

 private:
  /// Rows [M, H] and their tokens.
  struct Rows {
    at::Tensor rows;
    TokenPlaces places;
    std::int64_t width = 0;  ///< T
  };

  /// Samples have rows for their own tokens only.
  bool ragged() const { return packs_ || groups_.context->size() > 1; }
  bool cuts_rows() const { return groups_.tensor->cuts_rows(); }

  /// The tokens of each sample of a pass.
  const std::vector<std::int64_t>& LengthsOf(const ForwardPass& pass) const {
    if (pass.table() != nullptr) return pass.table()->rows;
    throw std::invalid_argument(name_ + ": expected the samples of the rows, got none");
  }

  /// Of B samples that are padded to `width` tokens, or cut over cp without padding.
  TokenPlaces PlacesIn(std::int64_t num_samples, std::int64_t width,
                       const ForwardPass& pass) const {
    if (ragged()) return {LengthsOf(pass), width, /*padded=*/false, groups_};
    return {std::vector<std::int64_t>(static_cast<std::size_t>(num_samples), width), width,
            /*padded=*/true, groups_};
  }

  void AddSources(const Config& config, const ParameterStore& store, const TensorGroupPtr& group) {
    std::size_t num_inputs = 0;
    for (const EdgeConfig& edge : config.edges) {
      if (edge.to != name_) continue;
      const ModuleConfig& from = FindModule(config, edge.from);
      Source& source = sources_.emplace_back(Source{.module = from, .dropout = {config, from}});
      const bool is_inline = source.module.inline_in.has_value();
      if (is_inline) {
        // Its images are not cut: every rank along cp computes them for its own tokens.
        source.encoder = TorchKindOf(source.module).make_encoder(source.module, 0, store, {group});
      } else {
        source.input = num_inputs++;
        source.cut = DestinationCut(config, edge);
      }
      if (edge.through && (is_inline || edge.through->on == ProjectorEnd::kTo)) {
        source.projector.emplace(edge, store, group);
      }
      if (HasNewline(config, edge)) source.newline = store.Leaf(NewlineName(edge));
    }
  }

  /// The rows of an encoder that runs here.
  static at::Tensor Encode(const Source& source, const ForwardPass& pass) {
    const Inputs& data = *pass.data;
    const at::Tensor in = source.encoder->Embed(ItemsOf(data, source.module));
    const auto table = data.expected.find(source.module.name);
    const DropoutScope dropout(source.dropout.RowsOf(
        pass, table == data.expected.end() ? nullptr : &table->second, in, *source.encoder));
    return source.encoder->Features(source.encoder->RunLayers(in));
  }

  /// The places of an encoder in `by_encoder`; none if it has none.
  static at::Tensor PlacesIn(const std::map<std::string, Buffer>& by_encoder,
                             const std::string& encoder, const std::string& what) {
    const auto found = by_encoder.find(encoder);
    const bool any = found != by_encoder.end() && found->second.defined();
    return any ? AsTensor(found->second, DType::kInt64, 1, what) : at::empty({0}, at::kLong);
  }

  /// Rows of an encoder, and the rows of this rank whose places they take; -1: none.
  struct Placed {
    at::Tensor rows;
    at::Tensor places;
    bool shared = false;  ///< all ranks along tp have the same rows

    void KeepPlaced(const std::string& who) {
      if (rows.size(0) != places.numel()) {
        throw std::invalid_argument(who + ": expected " + std::to_string(places.numel()) +
                                    " rows, one for each position, got " +
                                    std::to_string(rows.size(0)));
      }
      const at::Tensor kept = places.ge(0).nonzero().view({-1});
      if (kept.numel() == places.numel()) return;
      rows = SelectRows(rows, Upload(kept, rows.device()));
      places = places.index_select(0, kept);
    }
  };

  /// Those that a leader or phase has cut for this rank, or all, of a source elsewhere or here.
  Placed RowsOf(const Source& source, const std::vector<at::Tensor>& inputs,
                const ForwardPass& pass, const TokenPlaces& tokens) const {
    const std::string& encoder = source.module.name;
    const Inputs& data = *pass.data;
    const auto table = data.expected.find(encoder);
    if (!source.encoder && table != data.expected.end() && !table->second.lengths.empty()) {
      return {inputs.at(source.input), tokens.OfRows(table->second, source.cut),
              source.cut.slices == 1};
    }
    const at::Tensor places =
        PlacesIn(data.positions, encoder, name_ + ": positions of " + encoder);
    Placed placed{source.encoder ? Encode(source, pass) : inputs.at(source.input),
                  tokens.InPart(places), true};
    if (ragged()) placed.KeepPlaced(name_ + ": " + encoder);
    placed.places = tokens.InSlice(placed.places);
    return placed;
  }

  /// Puts the encoder's rows in the places of their placeholders.
  at::Tensor Place(at::Tensor text, const Source& source, const std::vector<at::Tensor>& inputs,
                   const ForwardPass& pass, const TokenPlaces& tokens) const {
    const std::string& encoder = source.module.name;
    Placed placed = RowsOf(source, inputs, pass, tokens);
    if (source.projector) placed.rows = source.projector->Forward(placed.rows);
    if (cuts_rows() && placed.shared) {
      placed.rows = SharedRows(placed.rows, groups_.tensor);
      placed.KeepPlaced(name_ + ": " + encoder);
    }
    at::Tensor newlines =
        PlacesIn(pass.data->newlines, encoder, name_ + ": newlines of " + encoder);
    newlines = tokens.InSlice(tokens.InPart(newlines));
    if (ragged() || cuts_rows()) newlines = newlines.masked_select(newlines.ge(0));
    const at::Tensor newline = source.newline.defined() ? LeafValues(source.newline) : at::Tensor();
    return PlaceEncoderRows(std::move(text), placed.rows, newline, {placed.places, newlines}, name_,
                            encoder);
  }

  Rows Merge(const std::vector<at::Tensor>& inputs, const ForwardPass& pass) const {
    const Inputs& data = RequireData(pass, name_);
    const at::Tensor tokens = AsTensor(data.tokens, DType::kInt64, 2, name_ + ": tokens");
    const TokenPlaces places = PlacesIn(tokens.size(0), tokens.size(1), pass);
    at::Tensor rows = llama_.EmbedTokens(places.Own(tokens));
    for (const Source& source : sources_) {
      rows = Place(std::move(rows), source, inputs, pass, places);
    }
    return {rows, places, tokens.size(1)};
  }

  Rows FromHop(const at::Tensor& input, const ForwardPass& pass) const {
    if ((ragged() || cuts_rows()) && input.dim() == 2) {
      const std::int64_t width = last_ ? RequireData(pass, name_).labels.shape().at(1) : 0;
      return {input, TokenPlaces(LengthsOf(pass), width, !ragged(), groups_), width};
    }
    if (ragged() || cuts_rows() || input.dim() != 3) {
      throw std::invalid_argument("hop: expected [samples, tokens, hidden], got " +
                                  ToString(input.sizes().vec()));
    }
    return {input.reshape({-1, input.size(2)}), PlacesIn(input.size(0), input.size(1), pass),
            input.size(1)};
  }

  /// Norm, head and loss of the rows that have a label, which the host finds in its own copy of the
  /// labels. The other rows take no part.
  BodyResult Loss(const at::Tensor& rows, const Rows& in, const Inputs& data) const {
    const at::Tensor labels = AsTensor(data.labels, DType::kInt64, 2, name_ + ": labels");
    const std::int64_t num_samples = std::ssize(in.places.lengths());
    if (labels.sizes() != at::IntArrayRef({num_samples, in.width})) {
      throw std::invalid_argument(name_ + ": expected labels " +
                                  ToString(Shape{num_samples, in.width}) + ", got " +
                                  ToString(labels.sizes().vec()));
    }
    const at::Tensor flat = in.places.Own(labels);
    const at::Tensor valid = flat.ne(kNoLabel).nonzero().view({-1});
    const at::Tensor content = ContentOf(data, in.places, valid);
    Predictions predictions;
    BodyResult result;
    at::Tensor own = in.places.InSlice(valid);
    if (cuts_rows()) own = own.masked_select(own.ge(0));
    result.outputs.push_back(llama_.Loss(SelectRows(rows, Upload(own, rows.device())),
                                         in.places.CountsOf(valid), flat.index_select(0, valid),
                                         predictions));
    result.loss.tokens = valid.numel();
    result.loss.content_tokens = content.sum().item<std::int64_t>();
    result.late_loss = LateSums(predictions, content);
    return result;
  }

  /// [M] uint8 in host memory: whether the labels at `valid` are part of content words.
  static at::Tensor ContentOf(const Inputs& data, const TokenPlaces& places,
                              const at::Tensor& valid) {
    if (!data.content.defined()) return at::zeros({valid.numel()}, at::kByte);
    return places.Own(AsTensor(data.content)).index_select(0, valid).ne(0).to(at::kByte);
  }

  static at::Tensor LateSums(const Predictions& predictions, const at::Tensor& content) {
    const at::Tensor is_content = Upload(content, predictions.correct.device());
    return at::stack({predictions.losses, predictions.correct, predictions.correct * is_content})
        .sum(1);
  }

  std::string name_;
  bool packs_;
  BodyGroups groups_;
  RowDropout dropout_;
  bool first_;
  bool last_;
  RowRouting routing_;
  Llama llama_;
  std::vector<Source> sources_;  ///< in the order of config.edges
};

std::unique_ptr<StageBody> MakeLlamaBody(const Config& config, const ModuleConfig& module, int pp,
                                         const ParameterStore& store, const BodyGroups& groups) {
  return std::make_unique<LlamaBody>(config, module, pp, store, groups);
}

std::unique_ptr<Decoder> MakeLlamaDecoder(const ModuleConfig& module, const ParameterStore& store,
                                          const TensorGroupPtr& group) {
  return std::make_unique<Llama>(module, 0, store, BodyGroups{group});
}

}  // namespace

const TorchKind kTorchLlama = {.kind = &kLlama,
                               .make_encoder = nullptr,
                               .make_body = MakeLlamaBody,
                               .make_decoder = MakeLlamaDecoder,
                               .reference = {.add_parameters = reference::AddLlama,
                                             .encode = nullptr,
                                             .logits = reference::LlamaLogits}};

}  // namespace troupe
