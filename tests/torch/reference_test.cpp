#include "modules/torch/reference.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "kinds/synthetic.hpp"
#include "modules/torch/compare.hpp"
#include "tests/torch/reference_fixture.hpp"

using namespace troupe;
using namespace troupe::fixture;

namespace {

std::map<std::string, Buffer> ByName(const std::vector<TensorPiece>& pieces) {
  std::map<std::string, Buffer> result;
  for (const TensorPiece& piece : pieces) result[piece.name] = piece.value;
  return result;
}

double LossAt(Reference& reference, std::vector<TensorPiece> parameters, std::size_t which,
              double distance, const Inputs& whole) {
  Buffer moved = Buffer::Allocate(parameters[which].global_shape, DType::kFloat64);
  const Buffer direction = Normal(moved.shape(), DType::kFloat64, "direction");
  for (std::int64_t i = 0; i < moved.num_elements(); ++i) {
    moved.as<double>()[i] =
        parameters[which].value.as<double>()[i] + distance * direction.as<double>()[i];
  }
  parameters[which].value = moved;
  reference.SetParameters(parameters);
  return reference.Evaluate(whole).loss;
}

double Along(const Buffer& gradient) {
  const Buffer direction = Normal(gradient.shape(), DType::kFloat64, "direction");
  double sum = 0.0;
  for (std::int64_t i = 0; i < gradient.num_elements(); ++i) {
    sum += gradient.as<double>()[i] * direction.as<double>()[i];
  }
  return sum;
}

/// Every tensor's gradient, along a direction in which all its elements differ, is the slope of the
/// loss there.
void CheckGradients(const Config& config, const Inputs& whole) {
  constexpr double kDistance = 2e-6;
  constexpr double kScale = 0.25;
  Reference reference(config);
  const auto start = Perturbed(reference.Tensors(TensorKind::kParameter), 0.2);
  reference.SetParameters(start);
  reference.Step(whole, kScale, 0);
  const auto gradients = ByName(reference.Tensors(TensorKind::kGradient));
  for (std::size_t i = 0; i < start.size(); ++i) {
    if (!gradients.contains(start[i].name)) continue;
    const double up = LossAt(reference, start, i, kDistance, whole);
    const double down = LossAt(reference, start, i, -kDistance, whole);
    INFO(start[i].name);
    CHECK(Along(gradients.at(start[i].name)) ==
          Approx(kScale * (up - down) / (2.0 * kDistance)).epsilon(1e-6).margin(5e-8));
  }
}

double Largest(const Buffer& buffer) {
  double largest = 0.0;
  for (std::int64_t i = 0; i < buffer.num_elements(); ++i) {
    largest = std::max(largest, std::abs(buffer.as<double>()[i]));
  }
  return largest;
}

}  // namespace

TEST_CASE("the reference's loss is that of another implementation with the same weights") {
  // Computed from these weights and inputs by the Flax CLIP and Llama models of
  // transformers 4.44.2, with the float32 constants in them widened to float64.
  struct Case {
    bool class_token;
    bool tied_head;
    double loss;
    std::int64_t correct;
  };
  const auto expected = GENERATE(values<Case>({
      {false, false, 99.7158919628281, 8},
      {true, true, 91.1706324736177, 2},
  }));
  Config config = Tiny();
  config.modules[0].As<VitConfig>().class_token = expected.class_token;
  config.modules[1].As<LlamaConfig>().tied_head = expected.tied_head;
  Reference reference(config);
  reference.SetParameters(Perturbed(reference.Tensors(TensorKind::kParameter), 0.2));
  const LossSums sums = reference.Evaluate(Batch(config, {{"vision", {1, 0, 2}}}));
  CHECK(sums.loss == Approx(expected.loss).epsilon(1e-12));
  CHECK(sums.correct == expected.correct);
}

TEST_CASE("the reference's gradients are the slopes of its loss") {
  Config config = Tiny();
  SECTION("with 0, 1 and 2 images per sample") {
    CheckGradients(config, Batch(config, {{"vision", {1, 0, 2}}}));
  }
  SECTION("with the class token and a tied head") {
    config.modules[0].As<VitConfig>().class_token = true;
    config.modules[1].As<LlamaConfig>().tied_head = true;
    CheckGradients(config, Batch(config, {{"vision", {2, 1}}}));
  }
  SECTION("with all layers of the encoder") {
    config.modules[0].As<VitConfig>().feature_layer = -1;
    CheckGradients(config, Batch(config, {{"vision", {1}}}));
  }
  SECTION("with the embeddings alone as the feature") {
    config.modules[0].As<VitConfig>().feature_layer = 0;
    CheckGradients(config, Batch(config, {{"vision", {1, 1}}}));
  }
  SECTION("without any image") { CheckGradients(config, Batch(config, {{"vision", {0, 0}}})); }
  SECTION("with two encoders") {
    config = TwoEncoders();
    CheckGradients(config, Batch(config, {{"vision", {1, 2}}, {"depth", {1, 0}}}));
  }
  SECTION("through a frozen language model") {
    config.modules[1].frozen = true;
    CheckGradients(config, Batch(config, {{"vision", {1, 2}}}));
  }
  SECTION("of a projector on a frozen encoder") {
    config.modules[0].frozen = true;
    CheckGradients(config, Batch(config, {{"vision", {1, 2}}}));
  }
}

TEST_CASE("two language models add their losses") {
  Config both = Tiny();
  both.modules.push_back(Language("generator", 8));
  both.edges.push_back(Edge("vision", "generator", ProjectorEnd::kTo));
  Config other = both;
  other.modules.erase(other.modules.begin() + 1);
  other.edges.erase(other.edges.begin());
  const Config one = Tiny();
  const Inputs whole = Batch(both, {{"vision", {1, 2}}});

  LossSums sum = Reference(one).Evaluate(whole);
  sum += Reference(other).Evaluate(whole);
  const LossSums together = Reference(both).Evaluate(whole);
  CHECK(together.loss == Approx(sum.loss).epsilon(1e-12));
  CHECK(together.tokens == sum.tokens);
  CHECK(together.correct == sum.correct);
  CHECK(together.content_tokens == sum.content_tokens);
  CheckGradients(both, whole);
}

TEST_CASE("frozen modules and projectors have no gradient and no state and do not move") {
  Config config = Tiny();
  config.modules[0].frozen = true;
  config.edges[0].through->frozen = true;
  Reference reference(config);
  const auto before = ByName(reference.Tensors(TensorKind::kParameter));
  reference.Step(Batch(config, {{"vision", {1, 1}}}), 0.1, 0);
  for (const TensorKind kind :
       {TensorKind::kGradient, TensorKind::kFirstMoment, TensorKind::kSecondMoment}) {
    const auto tensors = ByName(reference.Tensors(kind));
    CHECK(tensors.size() == 2 + 2 * 9 + 1);
    for (const auto& [name, value] : tensors) CHECK(name.starts_with("language."));
  }
  for (const auto& [name, after] : ByName(reference.Tensors(TensorKind::kParameter))) {
    INFO(name);
    const double* old = before.at(name).as<double>();
    const bool same = std::equal(old, old + after.num_elements(), after.as<double>());
    CHECK(same == !name.starts_with("language."));
  }
}

TEST_CASE("a model that is frozen completely is only evaluated") {
  Config config = Tiny();
  for (ModuleConfig& module : config.modules) module.frozen = true;
  config.edges[0].through->frozen = true;
  Reference reference(config);
  const Inputs whole = Batch(config, {{"vision", {1, 1}}});
  CHECK(reference.Step(whole, 0.1, 0).loss == reference.Evaluate(whole).loss);
  CHECK(reference.gradient_norm() == 0.0);
}

TEST_CASE("a batch without a valid label has zero loss and zero gradients") {
  const Config config = Tiny();
  Inputs whole = Batch(config, {{"vision", {1, 1}}});
  std::fill_n(whole.labels.as<std::int64_t>(), whole.labels.num_elements(), -100);
  Reference reference(config);
  const LossSums sums = reference.Step(whole, 1.0, 0);
  CHECK(sums.loss == 0.0);
  CHECK(sums.tokens == 0);
  CHECK(reference.gradient_norm() == 0.0);
  for (const TensorPiece& piece : reference.Tensors(TensorKind::kGradient)) {
    CHECK(Largest(piece.value) == 0.0);
  }
}

TEST_CASE("the loss counts tokens, correct ones and those of content words") {
  const Config config = Tiny();
  Inputs whole = Batch(config, {{"vision", {0, 0}}});
  const LossSums sums = Reference(config).Evaluate(whole);
  CHECK(sums.tokens == 32 - 4);          // every seventh has no label
  CHECK(sums.content_tokens == 11 - 2);  // every third is content; 6 and 27 have no label
  CHECK(sums.loss > 0.0);
  CHECK(sums.correct < sums.tokens);

  const LossSums content = Reference(config).Evaluate(whole);
  for (std::int64_t i = 0; i < 32; ++i) whole.content.as<std::uint8_t>()[i] ^= 1;
  const LossSums other = Reference(config).Evaluate(whole);
  CHECK(content.content_tokens + other.content_tokens == sums.tokens);
  CHECK(content.content_correct + other.content_correct == sums.correct);
  whole.content = Buffer();
  CHECK(Reference(config).Evaluate(whole).content_tokens == 0);
}

TEST_CASE("a training step computes the loss of the weights before it") {
  const Config config = Tiny();
  const Inputs whole = Batch(config, {{"vision", {1, 2}}});
  Reference reference(config);
  const double before = reference.Evaluate(whole).loss;
  CHECK(reference.Step(whole, 1.0 / 25.0, 0).loss == before);
  for (std::int64_t step = 1; step < 8; ++step) reference.Step(whole, 1.0 / 25.0, step);
  CHECK(reference.Evaluate(whole).loss < before);
}

namespace {

/// AdamW of one element, as a person would compute it.
struct Element {
  double w;
  double m = 0.0;
  double v = 0.0;

  void Update(double gradient, double rate, double decay, int update, const OptimizerConfig& all) {
    m = all.beta1 * m + (1.0 - all.beta1) * gradient;
    v = all.beta2 * v + (1.0 - all.beta2) * gradient * gradient;
    const double m_hat = m / (1.0 - std::pow(all.beta1, update));
    const double v_hat = v / (1.0 - std::pow(all.beta2, update));
    w = w - rate * decay * w;
    w = w - rate * m_hat / (std::sqrt(v_hat) + all.epsilon);
  }
};

struct Rates {
  double rate;
  double decay;
};

void CheckAdamW(const Config& config, double expected_clip_below,
                const std::map<std::string, std::vector<Rates>>& rates) {
  const Inputs whole = Batch(config, {{"vision", {1, 2}}});
  Reference reference(config);
  reference.SetParameters(Perturbed(reference.Tensors(TensorKind::kParameter), 0.2));
  std::map<std::string, std::vector<Element>> elements;
  for (const auto& [name, value] : ByName(reference.Tensors(TensorKind::kParameter))) {
    for (std::int64_t i = 0; i < value.num_elements(); ++i) {
      elements[name].push_back({value.as<double>()[i]});
    }
  }
  for (int step = 0; step < 3; ++step) {
    reference.Step(whole, 1.0, step);
    const double norm = reference.gradient_norm();
    const double limit = config.optimizer.clip_norm;
    const double clip = limit > 0.0 ? std::min(1.0, limit / (norm + 1e-6)) : 1.0;
    CHECK(clip <= expected_clip_below);
    double squares = 0.0;
    for (const auto& [name, gradient] : ByName(reference.Tensors(TensorKind::kGradient))) {
      const Rates& rate = rates.at(name.substr(0, name.find('.')))[static_cast<std::size_t>(step)];
      const double decay = gradient.shape().size() > 1 ? rate.decay : 0.0;
      for (std::size_t i = 0; i < elements[name].size(); ++i) {
        const double g = gradient.as<double>()[i];
        squares += g * g;
        elements[name][i].Update(g * clip, rate.rate, decay, step + 1, config.optimizer);
      }
    }
    CHECK(norm == Approx(std::sqrt(squares)).epsilon(1e-12));
  }
  const auto parameters = ByName(reference.Tensors(TensorKind::kParameter));
  const auto first = ByName(reference.Tensors(TensorKind::kFirstMoment));
  const auto second = ByName(reference.Tensors(TensorKind::kSecondMoment));
  for (const auto& [name, expected] : elements) {
    INFO(name);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      REQUIRE(parameters.at(name).as<double>()[i] == Approx(expected[i].w).epsilon(1e-12));
      REQUIRE(first.at(name).as<double>()[i] == Approx(expected[i].m).epsilon(1e-12).margin(1e-20));
      REQUIRE(second.at(name).as<double>()[i] ==
              Approx(expected[i].v).epsilon(1e-12).margin(1e-40));
    }
  }
}

}  // namespace

TEST_CASE("the optimizer is AdamW with warm-up, clipping and each module's own rates") {
  Config config = Tiny();
  config.optimizer.learning_rate = 0.02;
  config.optimizer.min_learning_rate = 0.01;
  config.optimizer.weight_decay = 0.3;
  config.optimizer.warmup_steps = 2;
  config.optimizer.schedule = RateSchedule::kConstant;
  config.optimizer.clip_norm = 0.5;
  config.modules[0].optimizer.learning_rate = 0.05;
  config.modules[1].optimizer.weight_decay = 0.1;
  config.modules[1].optimizer.min_learning_rate = 0.004;
  const std::vector<Rates> vision = {{0.03, 0.3}, {0.05, 0.3}, {0.05, 0.3}};
  const std::vector<Rates> language = {{0.012, 0.1}, {0.02, 0.1}, {0.02, 0.1}};

  SECTION("a projector at the encoder's end has the encoder's rates") {
    CheckAdamW(config, 0.5,
               {{"vision", vision}, {"language", language}, {"vision_to_language", vision}});
  }
  SECTION("a projector at the language model's end has the language model's rates") {
    config.edges[0].through->on = ProjectorEnd::kTo;
    CheckAdamW(config, 0.5,
               {{"vision", vision}, {"language", language}, {"vision_to_language", language}});
  }
  SECTION("a clip norm of 0 does not clip") {
    config.optimizer.clip_norm = 0.0;
    CheckAdamW(config, 1.0,
               {{"vision", vision}, {"language", language}, {"vision_to_language", vision}});
  }
}

TEST_CASE("float32 agrees with float64 within its rounding") {
  Config config = Tiny();
  const Inputs whole = Batch(config, {{"vision", {1, 0, 2}}});
  Reference wide(config);
  config.run.precision = Precision::kFloat32;
  Reference narrow(config);
  CHECK(Faults(CompareTensors(wide.Tensors(TensorKind::kParameter),
                              narrow.Tensors(TensorKind::kParameter)),
               1e-7)
            .empty());
  wide.Step(whole, 0.1, 0);
  narrow.Step(whole, 0.1, 0);
  const Comparison gradients =
      CompareTensors(wide.Tensors(TensorKind::kGradient), narrow.Tensors(TensorKind::kGradient));
  CHECK(Faults(gradients, 1e-5).empty());
  CHECK_FALSE(Faults(gradients, 1e-9).empty());
}

TEST_CASE("initial values have the stated spread") {
  Config config = Tiny();
  config.modules[1].As<LlamaConfig>().vocab = 4000;
  const auto parameters = ByName(Reference(config).Tensors(TensorKind::kParameter));
  const Buffer& head = parameters.at("language.lm_head.weight");
  double squares = 0.0;
  for (std::int64_t i = 0; i < head.num_elements(); ++i) {
    squares += head.as<double>()[i] * head.as<double>()[i];
  }
  CHECK(squares / static_cast<double>(head.num_elements()) == Approx(1.0 / 16.0).epsilon(0.03));
  const auto first = [&](const std::string& name, double std) {
    INFO(name);
    CHECK(parameters.at(name).as<double>()[1] ==
          Approx(std * static_cast<double>(NormalAt(ParameterKey(5, name), 1))).epsilon(1e-14));
  };
  first("language.embed_tokens.weight", 1.0 / std::sqrt(16.0));
  first("language.layers.1.self_attn.k_proj.weight", 1.0 / std::sqrt(16.0));
  first("language.layers.1.self_attn.o_proj.weight", 1.0 / std::sqrt(16.0 * 4.0));
  first("language.layers.0.mlp.down_proj.weight", 1.0 / std::sqrt(10.0 * 4.0));
  first("vision.embeddings.class_embedding", 1.0 / std::sqrt(6.0));
  first("vision.embeddings.position_embedding.weight", 1.0 / std::sqrt(6.0));
  first("vision.embeddings.patch_embedding.weight", 1.0 / std::sqrt(12.0));
  first("vision.encoder.layers.1.self_attn.out_proj.weight", 1.0 / std::sqrt(6.0 * 6.0));
  first("vision.encoder.layers.1.mlp.fc1.weight", 1.0 / std::sqrt(6.0));
  first("vision.encoder.layers.1.mlp.fc2.weight", 1.0 / std::sqrt(7.0 * 6.0));
  first("vision_to_language.linear_1.weight", 1.0 / std::sqrt(6.0));
  first("vision_to_language.linear_2.weight", 1.0 / std::sqrt(9.0));
  CHECK(Largest(parameters.at("vision_to_language.linear_2.bias")) == 0.0);
  CHECK(Largest(parameters.at("language.norm.weight")) == 1.0);
  CHECK_FALSE(parameters.contains("vision.encoder.layers.2.layer_norm1.weight"));
}

TEST_CASE("parameters can be set from pieces that are cut and repeated") {
  const Config config = Tiny();
  Reference reference(config);
  const auto before = reference.Tensors(TensorKind::kParameter);
  const auto target = Perturbed(before, 0.2);
  std::vector<TensorPiece> pieces;
  for (const TensorPiece& whole : target) {
    const std::int64_t rows = whole.value.num_rows();
    for (const std::int64_t begin : {std::int64_t{0}, rows / 2}) {
      TensorPiece piece = whole;
      piece.value = whole.value.Rows(begin, begin == 0 ? (rows + 3) / 2 : rows);
      piece.offsets[0] = begin;
      pieces.push_back(piece);
    }
  }
  SECTION("all elements are set") {
    reference.SetParameters(pieces);
    CHECK(Faults(CompareTensors(target, reference.Tensors(TensorKind::kParameter)), 0.0).empty());
  }
  SECTION("a gap is refused and nothing is changed") {
    pieces.pop_back();
    CHECK_THROWS_WITH(reference.SetParameters(pieces),
                      Catch::Contains("vision_to_language.linear_2.weight: expected finite"));
    CHECK(Faults(CompareTensors(before, reference.Tensors(TensorKind::kParameter)), 0.0).empty());
  }
  SECTION("an unknown name is refused") {
    pieces[0].name = "language.nothing";
    CHECK_THROWS_WITH(reference.SetParameters(pieces),
                      "language.nothing: the model has no such parameter");
  }
  SECTION("a piece outside its tensor is refused") {
    pieces[0].offsets[0] = GENERATE(-1, 100);
    CHECK_THROWS_WITH(reference.SetParameters(pieces), Catch::Contains("expected a piece of"));
  }
}

TEST_CASE("inputs that do not fit are refused with what was expected and what came") {
  const Config config = Tiny();
  Inputs whole = Batch(config, {{"vision", {1, 1}}});
  Reference reference(config);
  SECTION("no images") {
    whole.fields.clear();
    CHECK_THROWS_WITH(reference.Evaluate(whole),
                      "image of vision: expected 4 dimensions of float32, got no tensor");
  }
  SECTION("images of another size") {
    whole.fields["vision"].values = Buffer::Zeros({2, 3, 4, 6}, DType::kFloat32);
    CHECK_THROWS_WITH(reference.Evaluate(whole),
                      "image of vision: expected [n, 3, 4, 4], got [2, 3, 4, 6]");
  }
  SECTION("too few positions") {
    whole.positions["vision"] = whole.positions["vision"].Rows(0, 7);
    CHECK_THROWS_WITH(reference.Evaluate(whole),
                      "positions of vision: expected 8, one for each row, got 7");
  }
  SECTION("a position behind the last token") {
    whole.positions["vision"].as<std::int64_t>()[3] = 32;
    CHECK_THROWS_WITH(reference.Evaluate(whole),
                      "positions of vision: expected 0 to 31, got 1 to 32");
  }
  SECTION("a token outside the vocabulary") {
    whole.tokens.as<std::int64_t>()[3] = 13;
    CHECK_THROWS_WITH(reference.Evaluate(whole), "tokens: expected 0 to 12, got 0 to 13");
  }
  SECTION("a label outside the vocabulary") {
    whole.labels.as<std::int64_t>()[0] = -1;
    CHECK_THROWS_WITH(reference.Evaluate(whole), Catch::Contains("labels: expected 0 to 12"));
  }
  SECTION("labels for fewer tokens") {
    whole.labels = Buffer::Zeros({2, 15}, DType::kInt64);
    CHECK_THROWS_WITH(reference.Evaluate(whole),
                      "labels: expected [2, 16] as for the tokens, got [2, 15]");
  }
  SECTION("tokens of another type") {
    whole.tokens = Buffer::Zeros({2, 16}, DType::kInt32);
    CHECK_THROWS_WITH(reference.Evaluate(whole),
                      "tokens: expected 2 dimensions of int64, got [2, 16] of int32");
  }
}

TEST_CASE("a model that is not of encoders and language models has no reference") {
  Config config = Tiny();
  SECTION("a synthetic module") {
    config.modules[0].model = SyntheticConfig();
    CHECK_THROWS_WITH(Reference(config),
                      "vision: expected a module that computes, got a synthetic one");
  }
  SECTION("heads whose halves cannot be turned against each other") {
    config.modules[1].As<LlamaConfig>().hidden = 12;
    CHECK_THROWS_WITH(Reference(config),
                      "language: expected a hidden size that is a multiple of 2 x 4 heads, got 12");
  }
  SECTION("rows of another size than the language model's") {
    config.edges[0].through.reset();
    CHECK_THROWS_WITH(Reference(config),
                      "edge vision -> language: expected equal hidden sizes without a projector, "
                      "got 6 and 16");
  }
  SECTION("an edge out of a language model") {
    std::swap(config.edges[0].from, config.edges[0].to);
    CHECK_THROWS_WITH(Reference(config), "edges: expected from an encoder, got \"language\"");
  }
}
