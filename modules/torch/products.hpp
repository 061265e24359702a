// Products of matrices in any type, and the one place that knows where the library adds up in
// bfloat16.
#pragma once

#include <torch/types.h>

namespace troupe {

/// Whether the library rounds partial results of operations on tensors like `x` to x's type:
/// bfloat16 on a CPU. There libtorch 1.13 adds up `a b` and `a^T b` in bfloat16, unless oneDNN
/// takes the product, which depends on its size and on the CPU: 3072 positive terms come out at a
/// third of their sum. The weight gradients of layer_norm, too, at a fifth over 4096 rows.
bool RoundsInBetween(const at::Tensor& x);

/// x as the type that operations on it are to be computed in: float32 where RoundsInBetween, else x
/// itself.
at::Tensor Widened(const at::Tensor& x);

/// a [n, k] b [k, m] in the type of a; added up in float32 at least and rounded once.
at::Tensor Product(const at::Tensor& a, const at::Tensor& b);
/// The same into `out` [n, m].
void ProductInto(at::Tensor out, const at::Tensor& a, const at::Tensor& b);
/// The same plus `bias` [m].
at::Tensor ProductPlus(const at::Tensor& bias, const at::Tensor& a, const at::Tensor& b);
/// The same as Product, in float32 where that costs nothing: where the operands are widened.
at::Tensor WideProduct(const at::Tensor& a, const at::Tensor& b);
/// sum [n, m] += a [n, k] b [k, m]; `sum` may be of a longer type than a and b.
void AddProduct(at::Tensor& sum, const at::Tensor& a, const at::Tensor& b);

}  // namespace troupe
