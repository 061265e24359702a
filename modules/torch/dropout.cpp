#include "modules/torch/dropout.hpp"

#include <ATen/core/grad_mode.h>
#include <bit>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include "layout/text.hpp"
#include "modules/dropout.hpp"
#include "modules/torch/numerics.hpp"
#include "modules/torch/torch_kind.hpp"

namespace troupe {
namespace {

thread_local at::Tensor scope_rows;

at::Scalar Number(std::uint32_t bits) {
  return at::Scalar(static_cast<std::int64_t>(std::bit_cast<std::int32_t>(bits)));
}

/// x ^ (x >> bits), of bits without a sign.
at::Tensor Folded(const at::Tensor& x, int bits) {
  const at::Tensor high = at::bitwise_right_shift(x, at::Scalar(bits));
  return high.bitwise_and_(at::Scalar(static_cast<std::int64_t>(0xffffffffU >> bits)))
      .bitwise_xor_(x);
}

}  // namespace

DropoutScope::DropoutScope(at::Tensor rows) : outer_(std::exchange(scope_rows, std::move(rows))) {}
DropoutScope::~DropoutScope() { scope_rows = std::move(outer_); }
const at::Tensor& DropoutScope::Rows() { return scope_rows; }

RowDropout::RowDropout(const Config& config, const ModuleConfig& module)
    : name_(module.name),
      drops_(module.lora && module.lora->dropout > 0.0),
      seed_(config.run.seed),
      samples_per_microbatch_(config.samples_per_microbatch() * config.most_in_pack()) {}

at::Tensor RowDropout::RowsOf(const ForwardPass& pass, const RowTable* table, std::int64_t num_rows,
                              const at::Device& device, const RowNumbers& numbers) const {
  if (!drops_ || !pass.train) return {};
  if (table == nullptr) {
    throw std::invalid_argument(
        name_ + ": dropout of adapters: expected the samples of the rows, got none");
  }
  std::vector<std::int32_t> keys;
  keys.reserve(static_cast<std::size_t>(num_rows));
  const std::int64_t first = pass.first_microbatch * samples_per_microbatch_;
  for (std::size_t i = 0; i < table->samples.size(); ++i) {
    for (const std::int64_t row : numbers(i)) {
      keys.push_back(std::bit_cast<std::int32_t>(
          DropoutRow(seed_, pass.step, first + table->samples[i], row)));
    }
  }
  if (std::ssize(keys) != num_rows) {
    throw std::invalid_argument(name_ + ": dropout of adapters: expected rows that divide among " +
                                Counted(std::ssize(table->samples), "sample") + ", got " +
                                std::to_string(num_rows));
  }
  return Upload(at::tensor(keys, at::kInt), device);
}

at::Tensor RowDropout::RowsOf(const ForwardPass& pass, const RowTable* table,
                              const at::Tensor& rows, const Encoder& encoder) const {
  return RowsOf(pass, table, rows.size(0), rows.device(), [&](std::size_t place) {
    const std::int64_t leave = table->rows[place];
    if (const auto numbers = encoder.RowNumbers(leave)) return *numbers;
    std::vector<std::int64_t> all(
        static_cast<std::size_t>(leave == 0 ? 0 : leave * rows.size(0) / table->num_rows()));
    std::iota(all.begin(), all.end(), 0);
    return all;
  });
}

at::Tensor DropoutFeatures(const std::string& adapter, std::int64_t first, std::int64_t count,
                           const at::Device& device) {
  const at::Tensor features = at::empty({count}, at::kInt);
  for (std::int64_t i = 0; i < count; ++i) {
    features.data_ptr<std::int32_t>()[i] =
        std::bit_cast<std::int32_t>(DropoutFeature(adapter, first + i));
  }
  return Upload(features, device);
}

at::Tensor Dropped(const at::Tensor& rows, const at::Tensor& features, double share) {
  // IsDropped, on signed numbers: products are the same bits, and the comparison is moved by 2^31.
  const c10::AutoGradMode mode(false);
  at::Tensor x = at::bitwise_xor(rows.unsqueeze(1), features);
  x = Folded(x, 16).mul_(Number(0x85ebca6bU));
  x = Folded(x, 13).mul_(Number(0xc2b2ae35U));
  x = Folded(x, 16).bitwise_xor_(Number(0x80000000U));
  return x.lt(Number(DropoutLimit(share) ^ 0x80000000U));
}

}  // namespace troupe
