#include "modules/torch/sequence_rows.hpp"

#include <algorithm>

#include "layout/route.hpp"
#include "modules/torch/autograd.hpp"
#include "modules/torch/numerics.hpp"

namespace troupe {
namespace {

std::int64_t RowsOfEach(const TensorGroup& group, std::int64_t num_rows) {
  return EqualPartOf(num_rows, group.size(), 0).size();
}

/// x with zero rows after it, so that every rank has as many.
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

struct SharedRowsFunction : torch::autograd::Function<SharedRowsFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const TensorGroupPtr& group) {
    context->saved_data["group"] = c10::IValue::make_capsule(group);
    return x.view_as(x);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    at::Tensor gradient = gradients[0].clone(at::MemoryFormat::Contiguous);
    Held<TensorGroup>(context, "group")->AllReduce(gradient);
    return {gradient, {}};
  }
};

/// `counts` rows of each rank among `most` rows of each.
at::Tensor PlacesOf(const std::vector<std::int64_t>& counts, std::int64_t most) {
  std::vector<std::int64_t> places;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    for (std::int64_t row = 0; row < counts[rank]; ++row) {
      places.push_back(static_cast<std::int64_t>(rank) * most + row);
    }
  }
  return at::tensor(places, at::kLong);
}

struct GatherPartsFunction : torch::autograd::Function<GatherPartsFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& own,
                            const std::vector<std::int64_t>& counts, const TensorGroupPtr& group) {
    const std::int64_t most = *std::ranges::max_element(counts);
    std::vector<std::int64_t> shape = own.sizes().vec();
    shape[0] = most;
    const at::Tensor padded = at::zeros(shape, own.options());
    padded.narrow(0, 0, own.size(0)).copy_(own);
    const at::Tensor places = Upload(PlacesOf(counts, most), own.device());
    context->save_for_backward({places});
    context->saved_data["group"] = c10::IValue::make_capsule(group);
    context->saved_data["most"] = most;
    context->saved_data["own"] = own.size(0);
    return group->AllGather(padded).index_select(0, places);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto group = Held<TensorGroup>(context, "group");
    std::vector<std::int64_t> shape = gradients[0].sizes().vec();
    shape[0] = context->saved_data["most"].toInt() * group->size();
    const at::Tensor padded = at::zeros(shape, gradients[0].options());
    padded.index_copy_(0, context->get_saved_variables()[0], gradients[0]);
    return {group->ReduceScatter(padded).narrow(0, 0, context->saved_data["own"].toInt()), {}, {}};
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

at::Tensor SharedRows(const at::Tensor& x, const TensorGroupPtr& group) {
  return SharedRowsFunction::apply(x, group);
}

at::Tensor GatherParts(const at::Tensor& own, const std::vector<std::int64_t>& counts,
                       const TensorGroupPtr& group) {
  return GatherPartsFunction::apply(own, counts, group);
}

}  // namespace troupe
