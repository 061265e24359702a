#include "kinds/experts.hpp"

#include <array>
#include <string_view>
#include <utility>

namespace troupe {

void CheckExperts(const ExpertsConfig& experts, ModuleCheck& check) {
  const Named count = check.Own("experts", experts.count);
  if (!check.Good({count.key})) return;
  if (experts.count == 0) {
    for (const Named& size : {check.Own("expert_hidden", experts.hidden),
                              check.Own("shared_expert_hidden", experts.shared_hidden)}) {
      if (size.value == 0 || !check.Good({size.key})) continue;
      check.Add(size.key, "expected 0 without `experts`, got " + std::to_string(size.value));
    }
    const auto expect_default = [&](const Named& given, std::int64_t by_default) {
      if (given.value == by_default || !check.Good({given.key})) return;
      check.Add(given.key,
                "expected no value without `experts`, got " + std::to_string(given.value));
    };
    expect_default(check.Own("experts_per_token", experts.per_token), ExpertsConfig{}.per_token);
    expect_default(check.Own("expert_every", experts.every), ExpertsConfig{}.every);
    return;
  }
  const Named per_token = check.Own("experts_per_token", experts.per_token);
  const Named hidden = check.Own("expert_hidden", experts.hidden);
  if (check.Good({per_token.key}) && experts.per_token > experts.count) {
    check.Add(per_token.key, "expected at most " + count.key + " = " + std::to_string(count.value) +
                                 ", got " + std::to_string(per_token.value));
  }
  const std::string softmax = check.KeyOf("router_softmax");
  if (experts.per_token == 1 && experts.softmax == RouterSoftmax::kAfter &&
      check.Good({per_token.key, softmax})) {
    check.Add(softmax, "expected \"before\" with " + per_token.key +
                           " = 1, since the weight of one expert would always be 1, and the router "
                           "would not train");
  }
  if (experts.hidden == 0) {
    check.Add(hidden.key, "expected the width inside an expert, for `experts` = " +
                              std::to_string(count.value) + ", got none");
  } else {
    check.ExpectMultiple(hidden, check.etp());
  }
  if (experts.shared_hidden == 0) return;
  check.ExpectMultiple(check.Own("shared_expert_hidden", experts.shared_hidden), check.tp());
}

void AddGatedMlp(const std::string& name, std::int64_t inner, std::int64_t width, double residual,
                 ParameterList& list) {
  using enum LinearRole;
  list.AddWeight(name + ".gate_proj", kGate, inner, width, Cut::kRows);
  list.AddWeight(name + ".up_proj", kUp, inner, width, Cut::kRows);
  list.AddWeight(name + ".down_proj", kDown, width, inner, Cut::kColumns, residual);
}

/// The first weights of all experts are neighbours, and so are the last ones: those of a rank are one
/// matrix each.
void AddExperts(const ExpertsConfig& experts, const std::string& name, std::int64_t width,
                double residual, ParameterList& list) {
  // Each rank routes its own rows.
  list.AddWeight(name + ".gate", experts.count, width, Cut::kSummed).unrounded = true;
  const auto add = [&](std::int64_t number, const char* part, std::int64_t out, std::int64_t in,
                       Cut cut, double scale) {
    list.AddWeight(name + ".experts." + std::to_string(number) + part, out, in, cut, scale)
        .expert = {number, experts.count};
  };
  for (std::int64_t i = 0; i < experts.count; ++i) {
    add(i, ".gate_proj", experts.hidden, width, Cut::kRows, 1.0);
    add(i, ".up_proj", experts.hidden, width, Cut::kRows, 1.0);
  }
  for (std::int64_t i = 0; i < experts.count; ++i) {
    add(i, ".down_proj", width, experts.hidden, Cut::kColumns, residual);
  }
  if (experts.shared_hidden == 0) return;
  const std::string shared = name + ".shared_expert";
  AddGatedMlp(shared, experts.shared_hidden, width, residual, list);
  list.AddWeight(shared + "_gate", 1, width, Cut::kNone);
}

namespace {

/// The parts of names: ours, Mixtral's.
constexpr auto kMixtralParts = std::to_array<std::pair<std::string_view, std::string_view>>(
    {{".gate_proj.", ".w1."}, {".down_proj.", ".w2."}, {".up_proj.", ".w3."}});
constexpr std::string_view kOwnMlp = ".mlp.";
constexpr std::string_view kMixtralMlp = ".block_sparse_moe.";
constexpr std::string_view kExpertsOf = "experts.";

/// Replaces the first `from` at or after `begin`. Returns whether there was one.
bool Replace(std::string& name, std::size_t begin, std::string_view from, std::string_view to) {
  const std::size_t at = name.find(from, begin);
  if (at == std::string::npos) return false;
  name.replace(at, from.size(), to);
  return true;
}

}  // namespace

std::string OwnExpertName(const std::string& name) {
  std::string own = name;
  const std::size_t at = own.find(kMixtralMlp);
  if (at == std::string::npos) return own;
  Replace(own, at, kMixtralMlp, kOwnMlp);
  for (const auto& [ours, mixtral] : kMixtralParts) Replace(own, at, mixtral, ours);
  return own;
}

std::string MixtralName(const std::string& name) {
  const std::size_t at = name.find(kOwnMlp);
  if (at == std::string::npos) return name;
  const std::string_view rest = std::string_view(name).substr(at + kOwnMlp.size());
  if (!rest.starts_with(kExpertsOf) && !rest.starts_with("gate.")) return name;
  std::string mixtral = name;
  Replace(mixtral, at, kOwnMlp, kMixtralMlp);
  for (const auto& [ours, theirs] : kMixtralParts) Replace(mixtral, at, ours, theirs);
  return mixtral;
}

}  // namespace troupe
