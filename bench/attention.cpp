// Compares attention in blocks, forward and backward, with the loop that it replaced, which makes all
// scores at once and keeps them. One thread, float32.
#include "modules/torch/attention.hpp"

#include <ATen/core/grad_mode.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <string>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <utility>
#include <vector>

#include "bench/report.hpp"
#include "modules/torch/compute.hpp"
#include "modules/torch/row_kernels.hpp"

namespace troupe::bench {
namespace {

struct Case {
  const char* name;
  std::int64_t sequences;
  std::int64_t length;
  std::int64_t heads;
  std::int64_t kv_heads;  ///< heads, unless there is one sequence
  std::int64_t head_dim;
  bool causal;
};

constexpr Case kCases[] = {
    {"256 tokens", 16, 256, 8, 8, 64, true},
    {"577 patches", 4, 577, 16, 16, 64, false},
    {"2,048 tokens", 2, 2048, 8, 8, 64, true},
    {"2,048, 4 heads share a key", 1, 2048, 16, 4, 128, true},
    {"8,192 tokens", 1, 8192, 4, 4, 64, true},
    {"8,192, 4 heads share a key", 1, 8192, 4, 1, 128, true},
};
constexpr int kRounds = 7;

/// What a side gives: outputs, and gradients of the rows of q, k and v.
struct Result {
  at::Tensor output;
  at::Tensor gradient;
};

AttentionPlanPtr PlanOf(const Case& c) {
  auto plan = c10::make_intrusive<AttentionPlan>();
  plan->sequences = c.sequences;
  plan->length = c.length;
  plan->heads = c.heads;
  plan->kv_heads = c.kv_heads;
  plan->head_dim = c.head_dim;
  plan->causal = c.causal;
  if (c.causal) {
    std::tie(plan->cosine, plan->sine) = RotaryTables(c.length, c.head_dim, {}, at::kFloat);
  }
  return plan;
}

Result InBlocks(const at::Tensor& rows, const at::Tensor& output_gradient,
                const AttentionPlanPtr& plan) {
  const at::Tensor qkv = rows.detach().requires_grad_(true);
  const at::Tensor output = Attention(qkv, plan);
  torch::autograd::backward({output}, {output_gradient});
  return {output.detach(), qkv.grad()};
}

/// The loop with all scores: heads [kv_heads * sequences, heads of a key * length, head_dim].
class AllScores {
 public:
  explicit AllScores(const AttentionPlan& plan) : plan_(plan) {}

  Result Run(const at::Tensor& rows, const at::Tensor& output_gradient) const {
    const at::NoGradGuard no_graph;
    const std::int64_t h = plan_.heads;
    const std::int64_t kv = plan_.kv_heads;
    const double scale = 1.0 / std::sqrt(static_cast<double>(plan_.head_dim));
    const at::Tensor q = Gather(rows, 0, h, true, scale);
    const at::Tensor k = Gather(rows, h, kv, true, 1.0);
    const at::Tensor v = Gather(rows, h + kv, kv, false, 1.0);
    const at::Tensor weights = Weights(q, k);
    Result result;
    result.output = at::empty_like(output_gradient);
    Scatter(at::bmm(weights, v), 0, h, false, 1.0, result.output);

    const at::Tensor gradient = Gather(output_gradient, 0, h, false, 1.0);
    at::Tensor scores = at::bmm(gradient, v.transpose(1, 2));
    at::_softmax_backward_data_out(scores, scores, weights, -1, weights.scalar_type());
    result.gradient = at::empty_like(rows);
    Scatter(at::bmm(scores, k), 0, h, true, scale, result.gradient);
    Scatter(at::bmm(scores.transpose(1, 2), q), h, kv, true, 1.0, result.gradient);
    Scatter(at::bmm(weights.transpose(1, 2), gradient), h + kv, kv, false, 1.0, result.gradient);
    return result;
  }

 private:
  HeadColumns Columns(const at::Tensor& rows, std::int64_t first, std::int64_t heads) const {
    return {.sequences = plan_.sequences,
            .length = plan_.length,
            .row_width = rows.size(1),
            .first_column = first * plan_.head_dim,
            .heads = heads,
            .head_dim = plan_.head_dim};
  }

  Rotation<float> Turning(bool turns) const {
    if (!turns || !plan_.cosine.defined()) return {};
    return {plan_.cosine.data_ptr<float>(), plan_.sine.data_ptr<float>()};
  }

  at::Tensor Gather(const at::Tensor& rows, std::int64_t first, std::int64_t heads, bool turns,
                    double scale) const {
    at::Tensor to = at::empty(
        {plan_.kv_heads * plan_.sequences, heads / plan_.kv_heads * plan_.length, plan_.head_dim},
        at::kFloat);
    GatherHeads(rows.data_ptr<float>(), Columns(rows, first, heads), Turning(turns),
                static_cast<float>(scale), to.data_ptr<float>());
    return to;
  }

  void Scatter(const at::Tensor& heads, std::int64_t first, std::int64_t count, bool turns,
               double scale, at::Tensor& rows) const {
    ScatterHeads(heads.data_ptr<float>(), Columns(rows, first, count), Turning(turns),
                 static_cast<float>(scale), rows.data_ptr<float>());
  }

  at::Tensor Weights(const at::Tensor& q, const at::Tensor& k) const {
    at::Tensor weights;
    if (plan_.causal) {
      const std::int64_t length = plan_.length;
      weights = at::empty({q.size(0), q.size(1), length}, q.options());
      weights.view({q.size(0), plan_.heads / plan_.kv_heads, length, length})
          .copy_(at::full({length, length}, -1e30, at::kFloat).triu_(1));
      weights.baddbmm_(q, k.transpose(1, 2));
    } else {
      weights = at::bmm(q, k.transpose(1, 2));
    }
    return at::_softmax_out(weights, weights, -1, false);
  }

  const AttentionPlan& plan_;
};

template <class Work>
double Milliseconds(Work work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

double Difference(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).abs().max() / b.abs().max()).item<double>();
}

void Measure(const Case& c, Report& report) {
  const AttentionPlanPtr plan = PlanOf(c);
  const AllScores all(*plan);
  const at::Tensor rows = at::randn({c.sequences * c.length, plan->row_width()});
  const at::Tensor gradient = at::randn({c.sequences * c.length, c.heads * c.head_dim});
  std::vector<double> in_blocks;
  std::vector<double> with_all;
  std::vector<double> ratios;
  Result blocks;
  Result scores;
  for (int round = 0; round <= kRounds; ++round) {  // the first warms up
    const double ours = Milliseconds([&] { blocks = InBlocks(rows, gradient, plan); });
    const double theirs = Milliseconds([&] { scores = all.Run(rows, gradient); });
    if (round == 0) continue;
    in_blocks.push_back(ours);
    with_all.push_back(theirs);
    ratios.push_back(theirs / ours);
  }
  const double worst = std::max(Difference(blocks.output, scores.output),
                                Difference(blocks.gradient, scores.gradient));
  if (!(worst < 1e-5)) report.AddFault(std::string(c.name) + ": results differ");
  const double scores_mib = static_cast<double>(c.sequences * c.heads * c.length * c.length) * 4 /
                            static_cast<double>(1 << 20);
  const Summary ratio = Summarize(ratios);
  report.AddRow({c.name, Fixed(Summarize(in_blocks).median, 1),
                 Fixed(Summarize(with_all).median, 1), Fixed(ratio.median, 2),
                 Fixed(ratio.min, 2) + " to " + Fixed(ratio.max, 2), Fixed(scores_mib, 0)},
                {{"case", c.name}, {"blocks_ms", in_blocks}, {"all_ms", with_all}});
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  troupe::RestartWithBestKernels(argv);
  troupe::SetupCompute();
  troupe::bench::Report report(argc, argv, "attention",
                               {"                      case", "blocks_ms", "all_ms", "ratio",
                                "          span", "scores_MiB"});
  for (const auto& each : troupe::bench::kCases) troupe::bench::Measure(each, report);
  return report.Finish();
}
