#include "modules/torch/key_value_cache.hpp"

#include <algorithm>
#include <cmath>

#include "modules/torch/attention.hpp"
#include "modules/torch/numerics.hpp"
#include "modules/torch/products.hpp"

namespace troupe {

static at::Tensor ToDevice(const std::vector<std::int64_t>& values, const at::TensorOptions& on) {
  const at::Tensor host = at::empty({std::ssize(values)}, at::kLong);
  std::ranges::copy(values, host.data_ptr<std::int64_t>());
  return Upload(host, on.device());
}

Turning TurningOf(const CachedTokens& tokens, const at::Tensor& cosine, const at::Tensor& sine) {
  const auto at_positions = [&](const at::Tensor& table) {
    return table.index_select(0, tokens.positions)
        .view({tokens.count, 1, tokens.each, table.size(1)});
  };
  return {at_positions(cosine), at_positions(sine)};
}

/// Heads [n, h, T, D] whose first half is turned against the second.
static at::Tensor Turned(const at::Tensor& heads, const Turning& turning) {
  const std::int64_t half = heads.size(3) / 2;
  const at::Tensor first = heads.narrow(3, 0, half);
  const at::Tensor second = heads.narrow(3, half, half);
  // A product with the tables has their type: only the result is rounded to that of the heads.
  return at::cat({first * turning.cosine - second * turning.sine,
                  second * turning.cosine + first * turning.sine},
                 3)
      .to(heads.scalar_type());
}

KeyValueCache::KeyValueCache(const CacheSizes& sizes, const at::TensorOptions& options)
    : sizes_(sizes),
      options_(options),
      keys_(static_cast<std::size_t>(sizes.layers)),
      values_(static_cast<std::size_t>(sizes.layers)) {}

void KeyValueCache::Remove(std::int64_t number) {
  const std::int64_t last = num_sequences() - 1;
  if (number != last) {
    const std::int64_t length = lengths_.back();
    for (auto* tensors : {&keys_, &values_}) {
      for (at::Tensor& tensor : *tensors) {
        tensor[number].narrow(1, 0, length).copy_(tensor[last].narrow(1, 0, length));
      }
    }
    lengths_[static_cast<std::size_t>(number)] = length;
  }
  lengths_.pop_back();
}

void KeyValueCache::Reserve(std::int64_t sequences, std::int64_t tokens) {
  if (sequences <= sequences_ && tokens <= capacity_) return;
  constexpr std::int64_t kSmallest = 64;
  const auto grown = [](std::int64_t needed, std::int64_t has) {
    return needed <= has ? has : std::max(needed, has + has / 2);
  };
  const std::int64_t new_sequences = std::max(sequences, sequences_);
  const std::int64_t new_capacity = grown(std::max(tokens, kSmallest), capacity_);
  for (auto* tensors : {&keys_, &values_}) {
    for (at::Tensor& tensor : *tensors) {
      const at::Tensor larger =
          at::zeros({new_sequences, sizes_.kv_heads, new_capacity, sizes_.head_dim}, options_);
      if (tensor.defined()) {
        larger.narrow(0, 0, sequences_).narrow(2, 0, capacity_).copy_(tensor);
      }
      tensor = larger;
    }
  }
  sequences_ = new_sequences;
  capacity_ = new_capacity;
}

CachedTokens KeyValueCache::Append(std::int64_t first, std::int64_t count, std::int64_t each) {
  CachedTokens tokens;
  tokens.first = first;
  tokens.count = count;
  tokens.each = each;
  std::vector<std::int64_t> positions;
  for (std::int64_t i = first; i < first + count; ++i) {
    std::int64_t& length = lengths_[static_cast<std::size_t>(i)];
    for (std::int64_t t = 0; t < each; ++t) positions.push_back(length++);
    tokens.keys = std::max(tokens.keys, length);
  }
  Reserve(num_sequences(), tokens.keys);
  std::vector<std::int64_t> slots;
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t head = 0; head < sizes_.kv_heads; ++head) {
      const std::int64_t begin = ((first + i) * sizes_.kv_heads + head) * capacity_;
      for (std::int64_t t = 0; t < each; ++t) {
        slots.push_back(begin + positions[static_cast<std::size_t>(i * each + t)]);
      }
    }
  }
  tokens.positions = ToDevice(positions, options_);
  tokens.slots = ToDevice(slots, options_);
  const bool any_hidden = std::ranges::any_of(
      positions, [&](std::int64_t position) { return position + 1 < tokens.keys; });
  if (any_hidden) {
    const at::Tensor keys = at::arange(tokens.keys, tokens.positions.options());
    tokens.hidden = keys.gt(tokens.positions.unsqueeze(1)).view({count, 1, 1, each, tokens.keys});
  }
  return tokens;
}

at::Tensor KeyValueCache::Attend(std::size_t layer, const at::Tensor& qkv,
                                 const CachedTokens& tokens, const Turning& turning) {
  const std::int64_t n = tokens.count;
  const std::int64_t shared = sizes_.heads / sizes_.kv_heads;
  const at::Tensor all =
      qkv.view({n, tokens.each, sizes_.heads + 2 * sizes_.kv_heads, sizes_.head_dim})
          .transpose(1, 2);
  const auto part = [&](std::int64_t begin, std::int64_t number) {
    return all.narrow(1, begin, number);
  };
  const auto store = [&](at::Tensor& cache, const at::Tensor& heads) {
    cache.view({-1, sizes_.head_dim})
        .index_copy_(0, tokens.slots, heads.reshape({-1, sizes_.head_dim}));
    return cache.narrow(0, tokens.first, n)
        .narrow(2, 0, tokens.keys)
        .view({n * sizes_.kv_heads, tokens.keys, sizes_.head_dim});
  };
  const at::Tensor q = Turned(part(0, sizes_.heads), turning);
  const at::Tensor keys = store(keys_[layer], Turned(part(sizes_.heads, sizes_.kv_heads), turning));
  const at::Tensor values =
      store(values_[layer], part(sizes_.heads + sizes_.kv_heads, sizes_.kv_heads));
  // The query heads of a key head are neighbours: one product serves them.
  const at::Tensor queries =
      Widened(q.reshape({n * sizes_.kv_heads, shared * tokens.each, sizes_.head_dim})) /
      std::sqrt(static_cast<double>(sizes_.head_dim));
  at::Tensor scores = at::bmm(queries, Widened(keys).transpose(1, 2));
  if (tokens.hidden.defined()) {
    scores.view({n, sizes_.kv_heads, shared, tokens.each, tokens.keys})
        .masked_fill_(tokens.hidden, kHiddenScore);
  }
  const at::ScalarType type = scores.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor weights = at::softmax(scores, -1, type).to(scores.scalar_type());
  return at::bmm(weights, Widened(values))
      .to(qkv.scalar_type())
      .view({n, sizes_.heads, tokens.each, sizes_.head_dim})
      .transpose(1, 2)
      .reshape({n * tokens.each, sizes_.heads * sizes_.head_dim});
}

}  // namespace troupe
