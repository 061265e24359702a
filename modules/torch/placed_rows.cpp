#include "modules/torch/placed_rows.hpp"

#include <ATen/core/grad_mode.h>
#include <stdexcept>
#include <utility>

#include "gpu/kernels/rows.hpp"
#include "modules/torch/autograd.hpp"
#include "modules/torch/cuda/kernels.hpp"

namespace troupe {
namespace {

const std::int64_t* IndexOf(const at::Tensor& positions) {
  return positions.data_ptr<std::int64_t>();
}

/// [n, H] copies of rows `positions` of x [M, H], which `take` leaves as zeros.
at::Tensor Gather(const at::Tensor& x, const at::Tensor& positions, bool take = false) {
  at::Tensor rows = at::empty({positions.size(0), x.size(1)}, x.options());
  if (x.is_cuda()) {
    (take ? TakeRowsOnDevice : GatherRowsOnDevice)(x, positions, rows);
  } else if (take) {
    TakeRows(BytesOf(x), IndexOf(positions), rows.size(0), RowBytes(x), BytesOf(rows));
  } else {
    GatherRows(BytesOf(x), IndexOf(positions), rows.size(0), RowBytes(x), BytesOf(rows));
  }
  return rows;
}

void Scatter(const at::Tensor& rows, const at::Tensor& positions, const at::Tensor& x) {
  TORCH_INTERNAL_ASSERT(x.is_contiguous() && x.scalar_type() == rows.scalar_type());
  if (x.is_cuda()) return ScatterRowsOnDevice(rows, positions, x);
  ScatterRows(BytesOf(rows), IndexOf(positions), rows.size(0), RowBytes(x), BytesOf(x));
}

struct PlaceFunction : torch::autograd::Function<PlaceFunction> {
  static at::Tensor forward(AutogradContext* context, at::Tensor text, const at::Tensor& rows,
                            const at::Tensor& positions) {
    Scatter(rows.contiguous(), positions, text);
    context->mark_dirty({text});
    context->save_for_backward({positions});
    return text;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::Tensor positions = context->get_saved_variables()[0];
    const at::Tensor gradient = gradients[0].contiguous();
    if (!context->needs_input_grad(0)) return {{}, Gather(gradient, positions), {}};
    // Others may hold the gradient, so rows are taken from a copy.
    const at::Tensor text_gradient = gradient.clone();
    const at::Tensor rows_gradient = Gather(text_gradient, positions, /*take=*/true);
    return {text_gradient, rows_gradient, {}};
  }
};

struct SelectFunction : torch::autograd::Function<SelectFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& positions) {
    context->save_for_backward({positions});
    context->saved_data["num_rows"] = x.size(0);
    return Gather(x.contiguous(), positions);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::Tensor gradient = gradients[0].contiguous();
    const at::Tensor x_gradient =
        at::zeros({context->saved_data["num_rows"].toInt(), gradient.size(1)}, gradient.options());
    Scatter(gradient, context->get_saved_variables()[0], x_gradient);
    return {x_gradient, {}};
  }
};

}  // namespace

at::Tensor PlaceRows(at::Tensor text, const at::Tensor& rows, const at::Tensor& positions) {
  // Without any gradient libtorch would return a view, in which the rows of another encoder that
  // has a gradient may not be placed.
  if (!at::GradMode::is_enabled() || !(text.requires_grad() || rows.requires_grad())) {
    Scatter(rows.contiguous(), positions, text);
    return text;
  }
  return PlaceFunction::apply(std::move(text), rows, positions);
}

at::Tensor SelectRows(const at::Tensor& x, const at::Tensor& positions) {
  return SelectFunction::apply(x, positions);
}

/// Throws unless every place is in [0, num_rows), or is -1 and may be. `expected` begins the text.
static void CheckPlaces(const at::Tensor& places, bool may_be_out, std::int64_t num_rows,
                        const std::string& expected) {
  const auto* const place = places.data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < places.numel(); ++i) {
    if (place[i] >= (may_be_out ? -1 : 0) && place[i] < num_rows) continue;
    throw std::invalid_argument(expected + " in [0, " + std::to_string(num_rows) + "), got " +
                                std::to_string(place[i]));
  }
}

at::Tensor PlaceEncoderRows(at::Tensor text, const at::Tensor& rows, const at::Tensor& newline,
                            const RowPlaces& places, const std::string& who,
                            const std::string& encoder) {
  if (rows.size(0) != places.rows.size(0) || rows.size(1) != text.size(1)) {
    throw std::invalid_argument(who + ": expected " + std::to_string(places.rows.size(0)) +
                                " rows of " + std::to_string(text.size(1)) + " from " + encoder +
                                ", one for each position, got " + std::to_string(rows.size(0)) +
                                " rows of " + std::to_string(rows.size(1)));
  }
  CheckPlaces(places.rows, newline.defined(), text.size(0),
              who + ": expected positions of " + encoder);
  const at::Device device = text.device();
  const at::Tensor kept = places.rows.ge(0).nonzero().view({-1});
  if (kept.numel() == places.rows.numel()) {
    text = PlaceRows(std::move(text), rows, Upload(places.rows, device));
  } else {
    text = PlaceRows(std::move(text), SelectRows(rows, Upload(kept, device)),
                     Upload(places.rows.index_select(0, kept), device));
  }
  const std::int64_t num_newlines = places.newlines.defined() ? places.newlines.numel() : 0;
  if (num_newlines == 0) return text;
  if (!newline.defined()) {
    throw std::invalid_argument(who + ": expected no newlines of " + encoder + ", got " +
                                std::to_string(num_newlines));
  }
  CheckPlaces(places.newlines, /*may_be_out=*/false, text.size(0),
              who + ": expected newlines of " + encoder);
  const at::Tensor copies = newline.expand({num_newlines, text.size(1)});
  return PlaceRows(std::move(text), copies, Upload(places.newlines, device));
}

}  // namespace troupe
