#include "modules/torch/linear.hpp"

#include <algorithm>

#include "modules/torch/autograd.hpp"
#include "modules/torch/deferred_weights.hpp"
#include "modules/torch/dropout.hpp"
#include "modules/torch/products.hpp"
#include "modules/torch/sequence_rows.hpp"
#include "plan/stage_parts.hpp"

namespace troupe {
namespace {

/// The arguments of a linear layer that are no autograd variables of it.
struct LinearRest {
  at::Tensor bias;
  LinearCut cut;
  TensorGroupPtr group;
  std::int64_t cut_rows = 0;
};

/// How the rows of a linear layer meet those of the other ranks.
struct LinearRows {
  TensorGroupPtr group;
  LinearCut cut;
  std::int64_t cut_rows = 0;

  bool Meets(LinearCut at) const { return cut == at && group->size() > 1; }
  /// The rows of x, or of y's gradient, that are multiplied.
  at::Tensor Multiplied(LinearCut at, const at::Tensor& rows) const {
    return Meets(at) && cut_rows > 0 ? GatherRows(*group, rows, cut_rows) : rows;
  }
  /// What all ranks give to y, or to x's gradient.
  at::Tensor Summed(LinearCut at, at::Tensor rows) const {
    if (!Meets(at)) return rows;
    if (cut_rows > 0) return SumToOwnRows(*group, rows);
    group->AllReduce(rows);
    return rows;
  }

  void Keep(AutogradContext* context) const {
    context->saved_data["group"] = c10::IValue::make_capsule(group);
    context->saved_data["cut"] = static_cast<std::int64_t>(cut);
    context->saved_data["cut_rows"] = cut_rows;
  }
  static LinearRows Of(AutogradContext* context) {
    return {Held<TensorGroup>(context, "group"),
            static_cast<LinearCut>(context->saved_data["cut"].toInt()),
            context->saved_data["cut_rows"].toInt()};
  }
};

// The weight is an argument although its gradient is accumulated by hand: it makes the node exist
// when the input itself needs no gradient.
struct LinearFunction : torch::autograd::Function<LinearFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const LinearRest& rest) {
    const LinearRows rows{rest.group, rest.cut, rest.cut_rows};
    const bool adds_bias_first = rest.bias.defined() && !rows.Meets(LinearCut::kInputs);
    const at::Tensor in = rows.Multiplied(LinearCut::kOutputs, x);
    at::Tensor y =
        adds_bias_first ? ProductPlus(rest.bias, in, weight.t()) : Product(in, weight.t());
    y = rows.Summed(LinearCut::kInputs, y);
    if (rest.bias.defined() && !adds_bias_first) y.add_(rest.bias);
    context->save_for_backward({x, weight, rest.bias});
    NoteKept({x});
    rows.Keep(context);
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const LinearRows rows = LinearRows::Of(context);
    const at::Tensor gradient = rows.Multiplied(LinearCut::kInputs, gradients[0]);
    at::Tensor x_gradient;
    if (context->needs_input_grad(0)) {
      x_gradient = rows.Summed(LinearCut::kOutputs, Product(gradient, saved[1]));
    }
    RunOrDefer(
        [gradient, own = gradients[0], saved, rows] { Accumulate(gradient, own, saved, rows); });
    return {x_gradient, {}, {}};
  }

  /// `own` is the part of `gradient` that this rank's outputs have.
  static void Accumulate(const at::Tensor& gradient, const at::Tensor& own,
                         const variable_list& saved, const LinearRows& rows) {
    const at::Tensor& weight = saved[1];
    const at::Tensor& bias = saved[2];
    if (weight.requires_grad()) {
      AddProduct(weight.mutable_grad(), gradient.t(),
                 rows.Multiplied(LinearCut::kOutputs, saved[0]));
    }
    if (!bias.defined() || !bias.requires_grad()) return;
    at::Tensor& sum = bias.mutable_grad();
    sum.add_(own.sum(0, /*keepdim=*/false, sum.scalar_type()));
  }
};

}  // namespace

LinearWeights LoadLinear(const std::string& name, const ParameterStore& store) {
  return {store.Leaf(name + ".weight"), store.Leaf(name + ".bias"), {}};
}

const at::Tensor& AnyTrained(std::initializer_list<const LinearWeights*> linears) {
  const auto trains = [](const LinearWeights* linear) { return linear->trained().requires_grad(); };
  const auto found = std::ranges::find_if(linears, trains);
  return (found == linears.end() ? *linears.begin() : *found)->trained();
}

LinearWeights LoadLinears(const std::vector<std::string>& names, const ModuleConfig& module,
                          const ParameterStore& store) {
  const auto with = [&](const char* part) {
    std::vector<std::string> full;
    for (const std::string& name : names) full.push_back(name + part);
    return full;
  };
  LinearWeights linear{store.Leaf(with(".weight")), {}};
  if (store.Has(names.front() + ".bias")) linear.bias = store.Leaf(with(".bias"));
  std::int64_t first_output = 0;
  for (const std::string& weight : with(".weight")) {
    const std::string a = AdapterName(weight, AdapterEnd::kIn);
    if (module.lora && store.Has(a)) {
      AdapterWeights& adapter = linear.adapters.emplace_back(
          AdapterWeights{.a = store.Leaf(a),
                         .b = store.Leaf(AdapterName(weight, AdapterEnd::kOut)),
                         .first_output = first_output,
                         .scale = module.lora->scale(),
                         .dropout = module.lora->dropout});
      if (adapter.dropout > 0.0) {
        adapter.features =
            DropoutFeatures(a, store.FirstColumn(a), adapter.a.size(1), adapter.a.device());
      }
    }
    first_output += store.Leaf(weight).size(0);
  }
  return linear;
}

/// The product of an adapter's first weight with those of its inputs that are not dropped. Which
/// these are is computed again in the backward: kept are x, which neighbours share, and nothing else.
struct DroppedFunction : torch::autograd::Function<DroppedFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& a,
                            const LinearRest& rest, const at::Tensor& dropout_rows,
                            const at::Tensor& features, double share) {
    const LinearRows rows{rest.group, rest.cut, rest.cut_rows};
    const at::Tensor kept = x.masked_fill(Dropped(dropout_rows, features, share), 0.0);
    const at::Tensor y = rows.Summed(LinearCut::kInputs, Product(kept, a.t()));
    context->save_for_backward({x, a, dropout_rows, features});
    NoteKept({x});
    context->saved_data["share"] = share;
    rows.Keep(context);
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const double share = context->saved_data["share"].toDouble();
    const at::Tensor gradient =
        LinearRows::Of(context).Multiplied(LinearCut::kInputs, gradients[0]);
    at::Tensor x_gradient;
    if (context->needs_input_grad(0)) {
      x_gradient = Product(gradient, saved[1]);
      x_gradient.masked_fill_(Dropped(saved[2], saved[3], share), 0.0);
    }
    RunOrDefer([gradient, saved, share] {
      const at::Tensor kept = saved[0].masked_fill(Dropped(saved[2], saved[3], share), 0.0);
      AddProduct(saved[1].mutable_grad(), gradient.t(), kept);
    });
    return {x_gradient, {}, {}, {}, {}, {}};
  }
};

/// Adds what an adapter gives to y. Of a layer whose outputs are cut, A is whole and takes the whole
/// input, so that only the gradient of its few outputs is summed; of one whose inputs are cut, its
/// few outputs are.
static void AddAdapter(const at::Tensor& x, const AdapterWeights& adapter, LinearCut cut,
                       const TensorGroupPtr& group, std::int64_t cut_rows, at::Tensor& y) {
  const LinearCut in = cut == LinearCut::kInputs ? LinearCut::kInputs : LinearCut::kNone;
  const LinearCut out = cut == LinearCut::kOutputs ? LinearCut::kOutputs : LinearCut::kNone;
  const LinearRest first{{}, in, group, cut_rows};
  at::Tensor rows = DropoutScope::Rows();
  const bool drops = adapter.dropout > 0.0 && rows.defined();
  if (drops && cut_rows > 0 && out == LinearCut::kOutputs) rows = OwnRows(*group, rows);
  const at::Tensor few =
      drops ? DroppedFunction::apply(x, adapter.a, first, rows, adapter.features, adapter.dropout)
            : LinearFunction::apply(x, adapter.a, first);
  const at::Tensor more =
      LinearFunction::apply(few, adapter.b, LinearRest{{}, out, group, cut_rows});
  // The inputs that are left make up for those that are not, here instead of one by one.
  const double scale = drops ? adapter.scale / (1.0 - adapter.dropout) : adapter.scale;
  y.narrow(1, adapter.first_output, more.size(1)).add_(more, scale);
}

at::Tensor Linear(const at::Tensor& x, const LinearWeights& weights, LinearCut cut,
                  const TensorGroupPtr& group, std::int64_t cut_rows) {
  at::Tensor y =
      LinearFunction::apply(x, weights.weight, LinearRest{weights.bias, cut, group, cut_rows});
  for (const AdapterWeights& adapter : weights.adapters) {
    AddAdapter(x, adapter, cut, group, cut_rows, y);
  }
  return y;
}

}  // namespace troupe
