// M tokens of a rank, k experts chosen for each; S rows that it sends, R that arrive; H hidden.
#include "modules/torch/experts.hpp"

#include <numeric>
#include <utility>
#include <vector>

#include "layout/route.hpp"
#include "modules/torch/activations.hpp"
#include "modules/torch/autograd.hpp"
#include "modules/torch/deferred_weights.hpp"
#include "modules/torch/placed_rows.hpp"
#include "modules/torch/planted.hpp"
#include "modules/torch/products.hpp"
#include "modules/torch/recompute.hpp"
#include "modules/torch/routed_rows.hpp"

namespace troupe {
namespace {

/// The way of the rows of one layer and pass to experts and back.
class Dispatch : public torch::CustomClassHolder {
 public:
  Dispatch(ExpertGroupPtr group, const at::Tensor& chosen, std::int64_t num_experts)
      : group_(std::move(group)), per_token_(chosen.size(1)) {
    const at::Tensor flat = chosen.flatten();
    const at::Tensor counts =
        at::zeros({num_experts}, flat.options()).index_add_(0, flat, at::ones_like(flat));
    const at::Tensor all = group_->GatherCounts(counts).to(at::kCPU);
    // Those for one expert lie together, in the order of tokens.
    const at::Tensor sorted =
        std::get<1>(at::sort(flat, /*stable=*/true, /*dim=*/0, /*descending=*/false));
    const auto* const numbers = all.data_ptr<std::int64_t>();
    const auto sum_of = [&](int from, const Interval& experts) {
      const auto* const row = numbers + from * num_experts;
      return std::accumulate(row + experts.begin, row + experts.end, std::int64_t{0});
    };
    std::vector<at::Tensor> pairs;
    std::vector<at::Tensor> slots;
    std::int64_t begin = 0;
    for (int ep = 0; ep < group_->ep(); ++ep) {
      const std::int64_t count = sum_of(group_->rank(), PartOf(num_experts, group_->ep(), ep));
      for (int etp = 0; etp < group_->etp(); ++etp) {
        pairs.push_back(sorted.narrow(0, begin, count));
        slots.push_back(pairs.back() * group_->etp() + etp);
        sent_.push_back(count);
      }
      begin += count;
    }
    pairs_ = at::cat(pairs);
    slots_ = at::cat(slots);
    rows_ = at::div(pairs_, per_token_, "floor");
    const Interval own = PartOf(num_experts, group_->ep(), group_->own_ep());
    experts_.assign(static_cast<std::size_t>(own.size()), 0);
    for (int from = 0; from < group_->size(); ++from) {
      received_.push_back(sum_of(from, own));
      std::vector<std::int64_t>& blocks = blocks_.emplace_back();
      for (std::int64_t expert = 0; expert < own.size(); ++expert) {
        blocks.push_back(numbers[from * num_experts + own.begin + expert]);
        experts_[static_cast<std::size_t>(expert)] += blocks.back();
      }
    }
  }

  const at::Tensor& pairs() const { return pairs_; }  ///< [S]: row * k + place among its choices
  const at::Tensor& rows() const { return rows_; }    ///< [S]
  std::int64_t per_token() const { return per_token_; }
  const RowCounts& experts() const { return experts_; }  ///< rows that arrive for each own expert

  /// [M, k, etp, ...] of x [S, ...]: what was sent for each choice, and for each part of its expert.
  at::Tensor ByChoice(const at::Tensor& x) const {
    std::vector<std::int64_t> shape = x.sizes().vec();
    const at::Tensor sorted = at::empty_like(x).index_copy_(0, slots_, x);
    shape.erase(shape.begin());
    shape.insert(shape.begin(),
                 {x.size(0) / (per_token_ * group_->etp()), per_token_, group_->etp()});
    return sorted.view(shape);
  }
  /// [R, H], expert by expert, of rows [S, H].
  at::Tensor ToExperts(const at::Tensor& rows) const {
    const at::Tensor arrived = group_->Exchange(rows.contiguous(), sent_, received_);
    if (group_->size() == 1) return arrived;
    std::vector<std::vector<at::Tensor>> by_expert(experts_.size());
    std::int64_t begin = 0;
    for (const std::vector<std::int64_t>& blocks : blocks_) {
      for (std::size_t expert = 0; expert < blocks.size(); ++expert) {
        by_expert[expert].push_back(arrived.narrow(0, begin, blocks[expert]));
        begin += blocks[expert];
      }
    }
    std::vector<at::Tensor> sorted;
    for (auto& parts : by_expert) sorted.insert(sorted.end(), parts.begin(), parts.end());
    return at::cat(sorted);
  }

  /// [S, H] of rows [R, H] that are expert by expert.
  at::Tensor FromExperts(const at::Tensor& rows) const {
    if (group_->size() == 1) return rows;
    std::vector<std::int64_t> begins(experts_.size(), 0);
    for (std::size_t expert = 1; expert < experts_.size(); ++expert) {
      begins[expert] = begins[expert - 1] + experts_[expert - 1];
    }
    std::vector<at::Tensor> by_rank;
    for (const std::vector<std::int64_t>& blocks : blocks_) {
      for (std::size_t expert = 0; expert < blocks.size(); ++expert) {
        by_rank.push_back(rows.narrow(0, begins[expert], blocks[expert]));
        begins[expert] += blocks[expert];
      }
    }
    return group_->Exchange(at::cat(by_rank), received_, sent_);
  }

 private:
  ExpertGroupPtr group_;
  std::int64_t per_token_;
  at::Tensor pairs_;
  at::Tensor slots_;  ///< [S]: pair * etp + part of the expert
  at::Tensor rows_;
  RowCounts sent_;
  RowCounts received_;
  std::vector<std::vector<std::int64_t>> blocks_;  ///< by rank and own expert: rows that arrive
  RowCounts experts_;
};

using DispatchPtr = c10::intrusive_ptr<Dispatch>;

/// Adds rows [S, H] up to those of M tokens, in float32 at least and always in the same order.
at::Tensor SumRows(const at::Tensor& rows, const Dispatch& dispatch) {
  const at::ScalarType wide = at::promote_types(rows.scalar_type(), at::kFloat);
  return dispatch.ByChoice(rows).sum({1, 2}, /*keepdim=*/false, wide);
}

/// x [M, H] -> [R, H]
struct DispatchFunction : torch::autograd::Function<DispatchFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const DispatchPtr& dispatch) {
    context->saved_data["dispatch"] = c10::IValue::make_capsule(dispatch);
    return dispatch->ToExperts(x.index_select(0, dispatch->rows()));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto dispatch = Held<Dispatch>(context, "dispatch");
    const at::Tensor back = dispatch->FromExperts(gradients[0].contiguous());
    return {SumRows(back, *dispatch).to(gradients[0].scalar_type()), {}};
  }
};

/// y [R, H], weights [M, k] -> [M, H]
struct CombineFunction : torch::autograd::Function<CombineFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& y,
                            const at::Tensor& weights, const DispatchPtr& dispatch) {
    const at::Tensor returned = dispatch->FromExperts(y);
    context->save_for_backward({returned, weights});
    NoteKept({returned});
    context->saved_data["dispatch"] = c10::IValue::make_capsule(dispatch);
    return SumRows(returned * ByPair(weights, *dispatch), *dispatch).to(y.scalar_type());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto dispatch = Held<Dispatch>(context, "dispatch");
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& returned = saved[0];
    const at::Tensor& weights = saved[1];
    const at::Tensor gradient = gradients[0].index_select(0, dispatch->rows());
    const at::Tensor products = (gradient.to(weights.scalar_type()) * returned).sum(1);
    const at::Tensor sent = (gradient * ByPair(weights, *dispatch)).to(gradients[0].scalar_type());
    return {dispatch->ToExperts(sent), dispatch->ByChoice(products).sum(2), {}};
  }

  /// [S, 1]
  static at::Tensor ByPair(const at::Tensor& weights, const Dispatch& dispatch) {
    return weights.flatten().index_select(0, dispatch.pairs()).unsqueeze(1);
  }
};

/// The product of the rows of each expert with its weight: x [R, in], weight [e * out, in] -> [R, out].
struct GroupedFunction : torch::autograd::Function<GroupedFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const DispatchPtr& dispatch) {
    context->save_for_backward({x, weight});
    NoteKept({x});
    context->saved_data["dispatch"] = c10::IValue::make_capsule(dispatch);
    at::Tensor y = at::empty({x.size(0), OutOf(weight, *dispatch)}, x.options());
    ForEach(*dispatch, weight, [&](std::int64_t begin, std::int64_t count, const at::Tensor& w) {
      ProductInto(y.narrow(0, begin, count), x.narrow(0, begin, count), w.t());
    });
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto dispatch = Held<Dispatch>(context, "dispatch");
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& gradient = gradients[0];
    at::Tensor x_gradient = at::empty_like(saved[0]);
    ForEach(*dispatch, saved[1], [&](std::int64_t begin, std::int64_t count, const at::Tensor& w) {
      ProductInto(x_gradient.narrow(0, begin, count), gradient.narrow(0, begin, count), w);
    });
    if (saved[1].requires_grad()) {
      RunOrDefer([gradient, saved, dispatch] {
        ForEach(*dispatch, saved[1].grad(),
                [&](std::int64_t begin, std::int64_t count, at::Tensor sum) {
                  AddProduct(sum, gradient.narrow(0, begin, count).t(),
                             saved[0].narrow(0, begin, count));
                });
      });
    }
    return {x_gradient, {}, {}};
  }

  static std::int64_t OutOf(const at::Tensor& weight, const Dispatch& dispatch) {
    return weight.size(0) / std::ssize(dispatch.experts());
  }

  /// Calls visit(first row, number of rows, part of `stacked`) for each expert that has rows.
  template <class Visit>
  static void ForEach(const Dispatch& dispatch, const at::Tensor& stacked, const Visit& visit) {
    const std::int64_t out = OutOf(stacked, dispatch);
    const auto num_experts = static_cast<std::int64_t>(dispatch.experts().size());
    const bool swaps = HasLibraryFault(LibraryFault::kSwappedExperts) && num_experts > 1;
    std::int64_t begin = 0;
    for (std::int64_t expert = 0; expert < num_experts; ++expert) {
      const std::int64_t count = dispatch.experts()[static_cast<std::size_t>(expert)];
      const std::int64_t used = swaps && expert < 2 ? 1 - expert : expert;
      if (count > 0) visit(begin, count, stacked.narrow(0, used * out, out));
      begin += count;
    }
  }
};

}  // namespace

ExpertWeights LoadExperts(const std::string& name, const ExpertsConfig& sizes,
                          const RoutedLayer& layer, const ExpertGroup& group,
                          const ParameterStore& store) {
  std::vector<std::string> first;
  std::vector<std::string> last;
  const Interval own = PartOf(sizes.count, group.ep(), group.own_ep());
  for (std::int64_t expert = own.begin; expert < own.end; ++expert) {
    const std::string prefix = name + ".experts." + std::to_string(expert);
    first.push_back(prefix + ".gate_proj.weight");
    first.push_back(prefix + ".up_proj.weight");
    last.push_back(prefix + ".down_proj.weight");
  }
  return {.router = store.Leaf(name + ".gate.weight"),
          .gate_up = store.Leaf(first),
          .down = store.Leaf(last),
          .sizes = sizes,
          .layer = layer};
}

at::Tensor RunExperts(const at::Tensor& x, const ExpertWeights& weights, const RoutedRowsPtr& rows,
                      const ExpertGroupPtr& group, bool recompute_up) {
  const at::Tensor& tokens = rows->tokens;
  const at::Tensor in = tokens.defined() ? SelectRows(x, tokens) : x;
  const Routing routing = ChooseExperts(in, weights.router, weights.sizes, *rows, weights.layer);
  const auto dispatch = c10::make_intrusive<Dispatch>(group, routing.chosen, weights.sizes.count);
  const at::Tensor arrived = DispatchFunction::apply(in, dispatch);
  const at::Tensor wide = RunPart(recompute_up, arrived, weights.gate_up,
                                  [gate_up = weights.gate_up, dispatch](const at::Tensor& own) {
                                    return SwiGlu(GroupedFunction::apply(own, gate_up, dispatch));
                                  });
  const at::Tensor given = GroupedFunction::apply(wide, weights.down, dispatch);
  const at::Tensor out = CombineFunction::apply(given, routing.weights, dispatch);
  if (!tokens.defined()) return out;
  return at::zeros(x.sizes(), x.options()).index_copy(0, tokens, out);
}

}  // namespace troupe
