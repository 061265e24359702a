#include "modules/torch/attention_blocks.hpp"

#include <algorithm>

#include "modules/torch/fused_attention.hpp"
#include "modules/torch/score_kernels.hpp"
#include "modules/torch/versions.hpp"

namespace troupe {
namespace {

/// Some rows of q of some batches, and some keys.
struct Block {
  std::int64_t first_batch = 0;
  std::int64_t batches = 0;
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
  std::int64_t first_key = 0;
  std::int64_t keys = 0;

  at::Tensor RowsOf(const at::Tensor& of) const {
    return of.narrow(0, first_batch, batches).narrow(1, first_row, rows);
  }
  at::Tensor KeysOf(const at::Tensor& of) const {
    return of.narrow(0, first_batch, batches).narrow(1, first_key, keys);
  }
  /// Scores of the block, inside a buffer.
  at::Tensor In(const at::Tensor& buffer) const {
    return buffer.narrow(0, 0, batches * rows * keys).view({batches, rows, keys});
  }
};

/// The blocks of scores [B, rows, keys], in an order that goes over all keys of a row before the
/// next rows. Blocks that are hidden from all their rows are left out.
class Blocks {
 public:
  Blocks(const AttentionHeads& heads, const BlockPlan& plan)
      : plan_(plan),
        batches_(heads.q.size(0)),
        rows_(heads.q.size(1)),
        keys_(heads.k.size(1)),
        // Measured: small ones skip more of what is hidden, large ones have the faster products.
        most_rows_(std::min<std::int64_t>(rows_, plan.causal && rows_ <= kManyRows ? 128 : 256)),
        most_keys_(std::min<std::int64_t>(keys_, 512)),
        most_batches_(std::clamp<std::int64_t>(
            MostElements(heads.q) / std::max<std::int64_t>(1, most_rows_ * most_keys_), 1,
            std::max<std::int64_t>(1, batches_))) {}

  at::Tensor Buffer(const at::TensorOptions& options) const {
    return at::empty({most_batches_ * most_rows_ * most_keys_}, options);
  }

  template <class Visit>
  void ForEach(Visit visit) const {
    Block block;
    for (std::int64_t batch = 0; batch < batches_; batch += most_batches_) {
      block.first_batch = batch;
      block.batches = std::min(most_batches_, batches_ - batch);
      for (std::int64_t row = 0; row < rows_; row += most_rows_) {
        block.first_row = row;
        block.rows = std::min(most_rows_, rows_ - row);
        const std::int64_t seen = SeenBy(row + block.rows - 1);
        for (std::int64_t key = 0; key < seen; key += most_keys_) {
          block.first_key = key;
          block.keys = std::min(most_keys_, seen - key);
          visit(block);
        }
      }
    }
  }

  /// [rows, keys] bool: which scores are hidden; undefined: none is.
  at::Tensor Hidden(const Block& block, const at::TensorOptions& options) const {
    if (SeenBy(block.first_row) >= block.first_key + block.keys) return {};
    const auto range = [&](std::int64_t first, std::int64_t count) {
      return at::arange(first, first + count, options.dtype(at::kLong));
    };
    const at::Tensor last = range(block.first_row, block.rows).floor_divide(plan_.shared);
    return range(block.first_key, block.keys).gt(last.unsqueeze(1));
  }

 private:
  static constexpr std::int64_t kManyRows = 2048;
  /// Elements of one buffer of scores: on a CPU, what fits a core's own cache.
  static std::int64_t MostElements(const at::Tensor& q) {
    return std::int64_t(1) << (q.is_cuda() ? 24 : 17);
  }

  std::int64_t SeenBy(std::int64_t row) const {
    return plan_.causal ? std::min(keys_, row / plan_.shared + 1) : keys_;
  }

  BlockPlan plan_;
  std::int64_t batches_;
  std::int64_t rows_;
  std::int64_t keys_;
  std::int64_t most_rows_;
  std::int64_t most_keys_;
  std::int64_t most_batches_;
};

ScoreBlock ScoresOf(const Block& block, const BlockPlan& plan) {
  return {.batches = block.batches,
          .rows = block.rows,
          .keys = block.keys,
          .first_row = block.first_row,
          .first_key = block.first_key,
          .shared = plan.causal ? plan.shared : 0};
}

/// Where a block's first row is in [B, rows, ...].
template <class T>
RowState<T> StateOf(const at::Tensor& tensor, const Block& block) {
  const std::int64_t stride = tensor.stride(0);
  return {tensor.data_ptr<T>() + block.first_batch * stride + block.first_row * tensor.stride(1),
          stride};
}

/// Turns scores into exponentials less a maximum. Brings maxima, sums and outputs of the blocks
/// before up to that maximum, and adds to the sums.
void AddScores(const at::Tensor& scores, const Block& block, const BlockPlan& plan,
               const at::Tensor& maxima, const at::Tensor& sums, const at::Tensor& out) {
  AT_DISPATCH_FLOATING_TYPES(scores.scalar_type(), "Attention", [&] {
    ExponentiateScores(ScoresOf(block, plan), scores.data_ptr<scalar_t>(),
                       StateOf<scalar_t>(maxima, block), StateOf<scalar_t>(sums, block),
                       StateOf<scalar_t>(out, block), out.size(2));
  });
}

/// Brings the maxima of some rows up to `seen`, with their sums and outputs. Returns the maxima.
at::Tensor Raise(const at::Tensor& seen, const at::Tensor& maxima, const at::Tensor& sums,
                 const at::Tensor& out) {
  const at::Tensor maximum = at::maximum(maxima, seen);
  const at::Tensor shrink = (maxima - maximum).exp_();
  sums.mul_(shrink);
  out.mul_(shrink.unsqueeze(2));
  maxima.copy_(maximum);
  return maximum;
}

void AddScoresPortably(const at::Tensor& scores, const Block& block, const at::Tensor& hidden,
                       const at::Tensor& maxima, const at::Tensor& sums, const at::Tensor& out) {
  if (hidden.defined()) scores.masked_fill_(hidden, kHiddenScore);
  const at::Tensor maximum =
      Raise(scores.amax(2), block.RowsOf(maxima), block.RowsOf(sums), block.RowsOf(out));
  scores.sub_(maximum.unsqueeze(2)).exp_();
  block.RowsOf(sums).add_(scores.sum(2));
}

/// Turns scores into weights, and the gradients of weights into those of scores.
void ScoreGradients(const at::Tensor& scores, const at::Tensor& gradients, const Block& block,
                    const BlockPlan& plan, const at::Tensor& log_sums, const at::Tensor& dots) {
  AT_DISPATCH_FLOATING_TYPES(scores.scalar_type(), "Attention", [&] {
    GradientsOfScores(ScoresOf(block, plan), scores.data_ptr<scalar_t>(),
                      gradients.data_ptr<scalar_t>(), StateOf<scalar_t>(log_sums, block),
                      StateOf<scalar_t>(dots, block));
  });
}

void ScoreGradientsPortably(const at::Tensor& scores, const at::Tensor& gradients,
                            const Block& block, const at::Tensor& hidden,
                            const at::Tensor& log_sums, const at::Tensor& dots) {
  if (hidden.defined()) scores.masked_fill_(hidden, kHiddenScore);
  scores.sub_(block.RowsOf(log_sums).unsqueeze(2)).exp_();
  gradients.sub_(block.RowsOf(dots).unsqueeze(2)).mul_(scores);
}

/// Heads [B, rows * shared, D] as the library's kernel sees them: [B, rows, shared, D].
at::Tensor Shared(const at::Tensor& heads, const BlockPlan& plan) {
  return heads.view({heads.size(0), heads.size(1) / plan.shared, plan.shared, heads.size(2)});
}

/// [B, shared, rows] of the kernel as [B, rows * shared].
at::Tensor SumsOfRows(const at::Tensor& sums) {
  return sums.transpose(1, 2).reshape({sums.size(0), sums.size(1) * sums.size(2)});
}

void SeeWithKernel(const AttentionHeads& heads, const BlockPlan& plan, const at::Tensor& maxima,
                   const at::Tensor& sums, const at::Tensor& out) {
  const FlashOutput part =
      FlashForward(Shared(heads.q, plan), heads.k.unsqueeze(2), heads.v.unsqueeze(2), plan.causal);
  const at::Tensor log_sums = SumsOfRows(part.log_sums);
  const at::Tensor weight = (log_sums - Raise(log_sums, maxima, sums, out)).exp_();
  sums.add_(weight);
  out.add_(part.heads.reshape(out.sizes()) * weight.unsqueeze(2));
}

void AddKernelGradients(const AttentionHeads& heads, const OutputGradients& output,
                        const BlockPlan& plan, const AttentionHeads& sums) {
  const at::Tensor log_sums =
      output.log_sums.view({heads.q.size(0), heads.q.size(1) / plan.shared, plan.shared})
          .transpose(1, 2)
          .contiguous();
  const auto [q, k, v] =
      FlashBackward(Shared(output.gradient, plan), Shared(heads.q, plan), heads.k.unsqueeze(2),
                    heads.v.unsqueeze(2), {Shared(output.output, plan), log_sums}, plan.causal);
  sums.q.add_(q.reshape(sums.q.sizes()));
  sums.k.add_(k.squeeze(2));
  sums.v.add_(v.squeeze(2));
}

bool HasKernel(const at::Tensor& heads) {
  return HasFlashAttention(heads.options(), heads.size(2));
}

at::TensorOptions SumOptions(const at::Tensor& heads) {
  return heads.options().dtype(WideType(heads.scalar_type()));
}

}  // namespace

at::Tensor ZeroSums(const at::Tensor& heads) { return at::zeros(heads.sizes(), SumOptions(heads)); }

RunningAttention::RunningAttention(const at::Tensor& q)
    : q_(q),
      maxima_(at::full({q.size(0), q.size(1)}, kHiddenScore, SumOptions(q))),
      sums_(at::zeros_like(maxima_)),
      out_(ZeroSums(q)) {}

void RunningAttention::See(std::int64_t first, std::int64_t count, const at::Tensor& k,
                           const at::Tensor& v, const BlockPlan& plan) {
  const auto rows = [=](const at::Tensor& of) { return of.narrow(1, first, count); };
  const AttentionHeads heads{rows(q_), k, v};
  const at::Tensor maxima = rows(maxima_);
  const at::Tensor sums = rows(sums_);
  const at::Tensor out = rows(out_);
  if (HasKernel(q_)) {
    if (heads.q.numel() > 0 && k.numel() > 0) SeeWithKernel(heads, plan, maxima, sums, out);
    return;
  }
  const at::TensorOptions options = q_.options();
  const Blocks blocks(heads, plan);
  const at::Tensor buffer = blocks.Buffer(options);
  blocks.ForEach([&](const Block& block) {
    at::Tensor scores = block.In(buffer);
    at::bmm_out(scores, block.RowsOf(heads.q), block.KeysOf(k).transpose(1, 2));
    if (plan.portable) {
      AddScoresPortably(scores, block, blocks.Hidden(block, options), maxima, sums, out);
    } else {
      AddScores(scores, block, plan, maxima, sums, out);
    }
    block.RowsOf(out).baddbmm_(scores, block.KeysOf(v));
  });
}

AttentionOutput RunningAttention::Finish() {
  return {out_.div_(sums_.unsqueeze(2)), sums_.log().add_(maxima_)};
}

AttentionOutput AttendInBlocks(const AttentionHeads& heads, const BlockPlan& plan) {
  RunningAttention attention(heads.q);
  attention.See(0, heads.q.size(1), heads.k, heads.v, plan);
  return attention.Finish();
}

void AddAttentionGradients(const AttentionHeads& heads, const OutputGradients& output,
                           const BlockPlan& plan, const AttentionHeads& sums) {
  if (HasKernel(heads.q)) {
    if (heads.q.numel() > 0 && heads.k.numel() > 0) {
      AddKernelGradients(heads, output, plan, sums);
    }
    return;
  }
  const at::TensorOptions options = heads.q.options();
  const Blocks blocks(heads, plan);
  const at::Tensor buffer = blocks.Buffer(options);
  const at::Tensor gradient_buffer = at::empty_like(buffer);
  blocks.ForEach([&](const Block& block) {
    at::Tensor scores = block.In(buffer);
    at::Tensor score_gradients = block.In(gradient_buffer);
    const at::Tensor q = block.RowsOf(heads.q);
    const at::Tensor k = block.KeysOf(heads.k);
    const at::Tensor rows = block.RowsOf(output.gradient);
    at::bmm_out(scores, q, k.transpose(1, 2));
    at::bmm_out(score_gradients, rows, block.KeysOf(heads.v).transpose(1, 2));
    if (plan.portable) {
      ScoreGradientsPortably(scores, score_gradients, block, blocks.Hidden(block, options),
                             output.log_sums, output.dots);
    } else {
      ScoreGradients(scores, score_gradients, block, plan, output.log_sums, output.dots);
    }
    block.RowsOf(sums.q).baddbmm_(score_gradients, k);
    block.KeysOf(sums.k).baddbmm_(score_gradients.transpose(1, 2), q);
    block.KeysOf(sums.v).baddbmm_(scores.transpose(1, 2), rows);
  });
}

}  // namespace troupe
