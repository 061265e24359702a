#include "modules/torch/sequence_rows.hpp"

#include "modules/torch/autograd.hpp"

namespace troupe {
namespace {

std::int64_t RowsOfEach(const TensorGroup& group, std::int64_t num_rows) {
  return (num_rows + group.size() - 1) / group.size();
}

/// x with zero rows behind it, so that every rank has as many.
at::Tensor Padded(const TensorGroup& group, const at::Tensor& x) {
  const std::int64_t missing = RowsOfEach(group, x.size(0)) * group.size() - x.size(0);
  if (missing == 0) return x.contiguous();
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape[0] = missing;
  return at::cat({x, at::zeros(shape, x.options())});
}

struct CutRowsFunction : torch::autograd::Function<CutRowsFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const TensorGroupPtr& group) {
    context->saved_data["group"] = c10::IValue::make_capsule(group);
    context->saved_data["rows"] = x.size(0);
    return OwnRows(*group, x);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto group = Held<TensorGroup>(context, "group");
    return {GatherRows(*group, gradients[0], context->saved_data["rows"].toInt()), {}};
  }
};

struct JoinRowsFunction : torch::autograd::Function<JoinRowsFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& own, std::int64_t num_rows,
                            const TensorGroupPtr& group) {
    context->saved_data["group"] = c10::IValue::make_capsule(group);
    return GatherRows(*group, own, num_rows);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {OwnRows(*Held<TensorGroup>(context, "group"), gradients[0]), {}, {}};
  }
};

}  // namespace

at::Tensor GatherRows(const TensorGroup& group, const at::Tensor& own, std::int64_t num_rows) {
  return group.AllGather(own.contiguous()).narrow(0, 0, num_rows);
}

at::Tensor SumToOwnRows(const TensorGroup& group, const at::Tensor& x) {
  return group.ReduceScatter(Padded(group, x));
}

at::Tensor OwnRows(const TensorGroup& group, const at::Tensor& x) {
  const std::int64_t each = RowsOfEach(group, x.size(0));
  return Padded(group, x).narrow(0, group.rank() * each, each).clone();
}

at::Tensor CutRows(const at::Tensor& x, const TensorGroupPtr& group) {
  return CutRowsFunction::apply(x, group);
}

at::Tensor JoinRows(const at::Tensor& own, std::int64_t num_rows, const TensorGroupPtr& group) {
  return JoinRowsFunction::apply(own, num_rows, group);
}

}  // namespace troupe
