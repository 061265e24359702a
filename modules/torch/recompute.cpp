#include "modules/torch/recompute.hpp"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <utility>

#include "modules/torch/autograd.hpp"
#include "modules/torch/dropout.hpp"

namespace troupe {
namespace {

struct Part : torch::CustomClassHolder {
  std::function<at::Tensor(const at::Tensor&)> run;
  at::Tensor dropout_rows;  ///< of the scope of the forward
};

struct RecomputedFunction : torch::autograd::Function<RecomputedFunction> {
  /// The library runs this without grad mode.
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor&,
                            const c10::intrusive_ptr<Part>& part) {
    context->save_for_backward({x});
    NoteKept({x});
    context->saved_data["part"] = c10::IValue::make_capsule(part);
    return part->run(x);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto part = Held<Part>(context, "part");
    const bool wanted = context->needs_input_grad(0);
    const c10::AutoGradMode records(true);
    const DropoutScope dropout(part->dropout_rows);
    const at::Tensor x = context->get_saved_variables()[0].detach().requires_grad_(wanted);
    const at::Tensor y = part->run(x);
    torch::autograd::Engine::get_default_engine().execute(
        {torch::autograd::impl::gradient_edge(y)}, {gradients[0]}, /*keep_graph=*/false,
        /*create_graph=*/false, /*accumulate_grad=*/true, {});
    return {wanted ? x.grad() : at::Tensor(), {}, {}};
  }
};

}  // namespace

at::Tensor RunPart(bool recompute, const at::Tensor& x, const at::Tensor& weight,
                   std::function<at::Tensor(const at::Tensor&)> part) {
  if (!recompute || !c10::GradMode::is_enabled()) return part(x);
  auto kept = c10::make_intrusive<Part>();
  kept->run = std::move(part);
  kept->dropout_rows = DropoutScope::Rows();
  return RecomputedFunction::apply(x, weight, kept);
}

}  // namespace troupe
