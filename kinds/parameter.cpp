#include "kinds/parameter.hpp"

#include <cmath>
#include <utility>

namespace troupe {

double InverseRoot(std::int64_t n) { return 1.0 / std::sqrt(static_cast<double>(n)); }

ParameterSpec& ParameterList::Add(const std::string& name, Shape shape, Cut cut) {
  ParameterSpec& spec = specs_.emplace_back();
  spec.name = prefix_ + "." + name;
  spec.shape = std::move(shape);
  spec.cut = cut;
  spec.module = module_;
  spec.frozen = frozen_;
  return spec;
}

ParameterSpec& ParameterList::AddNormal(const std::string& name, Shape shape, double std, Cut cut) {
  ParameterSpec& spec = Add(name, std::move(shape), cut);
  spec.initial = Initial::kNormal;
  spec.std = std;
  return spec;
}

ParameterSpec& ParameterList::AddWeight(const std::string& name, std::int64_t out, std::int64_t in,
                                        Cut cut, double scale) {
  return AddNormal(name + ".weight", {out, in}, InverseRoot(in) * scale, cut);
}

void ParameterList::AddNormWeight(const std::string& name, std::int64_t hidden) {
  Add(name + ".weight", {hidden}).initial = Initial::kOnes;
}

void ParameterList::AddLayerNorm(const std::string& name, std::int64_t hidden) {
  AddNormWeight(name, hidden);
  Add(name + ".bias", {hidden});
}

}  // namespace troupe
