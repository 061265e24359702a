// The library's names for nodes that are written by hand.
#pragma once

#include <torch/csrc/autograd/custom_function.h>

namespace troupe {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The object that the forward of a node kept as a capsule in saved_data[key].
template <class T>
c10::intrusive_ptr<T> Held(AutogradContext* context, const char* key) {
  return c10::static_intrusive_pointer_cast<T>(context->saved_data[key].toCapsule());
}

/// The node keeps these activations for its backward: they may leave the device until then
/// (modules/torch/activation_offload.hpp). Parameters and what other code reads are not for it.
void NoteKept(at::TensorList activations);

}  // namespace troupe
