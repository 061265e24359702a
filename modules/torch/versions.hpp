// All that differs between libtorch 1.13 and 2.x, in one place.
#pragma once

#include <ATen/Context.h>
#include <cstdint>
#include <torch/types.h>
#include <torch/version.h>
#include <tuple>
#if TORCH_VERSION_MAJOR >= 2
#include <c10/core/AutogradState.h>
#endif

namespace troupe {

/// Of FlashForward.
struct FlashOutput {
  at::Tensor heads;     ///< [B, rows, h, D]
  at::Tensor log_sums;  ///< [B, h, rows] float32: log of the sum of exponentials of a row's scores
};

#if TORCH_VERSION_MAJOR >= 2

/// softmax(q k^T / sqrt(D)) v of q [S, h, L, D] and k, v [S, h / n, L, D], each of which serves n
/// neighbouring q heads. HasFusedAttention (fused_attention.hpp) says where this is one kernel.
inline constexpr bool kHasFusedAttention = true;
inline at::Tensor FusedKernel(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              bool causal) {
  const bool shared = q.size(1) != k.size(1);
  return at::scaled_dot_product_attention(q, k, v, {}, 0.0, causal, {}, /*enable_gqa=*/shared);
}

/// The kernel of GPUs for short types that keeps the logarithms of its sums. q [B, rows, h, D]; k and v
/// [B, keys, h / n, D], each of which serves n neighbouring heads. Scores are not scaled. With
/// `causal`, as many rows as keys.
inline FlashOutput FlashForward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                bool causal) {
  const auto [heads, log_sums, seed, unused, mask] =
      at::_flash_attention_forward(q, k, v, {}, {}, q.size(1), k.size(1), /*dropout_p=*/0.0, causal,
                                   /*return_debug_mask=*/false, /*scale=*/1.0);
  return {heads, log_sums};
}
/// Gradients of q, k and v, each as it. `output` may be of more keys than these.
inline std::tuple<at::Tensor, at::Tensor, at::Tensor> FlashBackward(
    const at::Tensor& gradient, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
    const FlashOutput& output, bool causal) {
  const at::Tensor no_seed = at::empty({2}, q.options().dtype(at::kLong));  // nothing is dropped
  return at::_flash_attention_backward(gradient, q, k, v, output.heads, output.log_sums, {}, {},
                                       q.size(1), k.size(1), /*dropout_p=*/0.0, causal, no_seed,
                                       no_seed, /*scale=*/1.0);
}
/// Causal attention of samples that share rows, as FusedKernel of each. q [rows, h, D]; k and v [rows,
/// h / n, D]; `ends` [samples + 1] int32: the first row of each, and the end; none is longer than
/// `longest`. Has a gradient.
inline at::Tensor PackedFlash(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const at::Tensor& ends, std::int64_t longest) {
  return std::get<0>(at::_flash_attention_forward(q, k, v, ends, ends, longest, longest,
                                                  /*dropout_p=*/0.0, /*is_causal=*/true,
                                                  /*return_debug_mask=*/false));
}

/// From now on backward passes that this thread asks for run on it, on a device, too. Otherwise
/// they run on the one thread that the library has for each device, where two ranks that share a
/// device and meet in a collective would wait for each other for ever.
inline void RunBackwardOnCallingThread() {
  c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
}

#else

inline constexpr bool kHasFusedAttention = false;
inline at::Tensor FusedKernel(const at::Tensor&, const at::Tensor&, const at::Tensor&, bool) {
  TORCH_INTERNAL_ASSERT(false, "this libtorch has no fused attention");
}
inline FlashOutput FlashForward(const at::Tensor&, const at::Tensor&, const at::Tensor&, bool) {
  TORCH_INTERNAL_ASSERT(false, "this libtorch has no flash attention");
}
inline std::tuple<at::Tensor, at::Tensor, at::Tensor> FlashBackward(const at::Tensor&,
                                                                    const at::Tensor&,
                                                                    const at::Tensor&,
                                                                    const at::Tensor&,
                                                                    const FlashOutput&, bool) {
  TORCH_INTERNAL_ASSERT(false, "this libtorch has no flash attention");
}
inline at::Tensor PackedFlash(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                              const at::Tensor&, std::int64_t) {
  TORCH_INTERNAL_ASSERT(false, "this libtorch has no flash attention");
}

/// On a CPU they always do.
inline void RunBackwardOnCallingThread() {}

#endif

/// Whether products of bfloat16 matrices may add up in bfloat16 on a CPU.
inline constexpr bool kAddsUpShort = TORCH_VERSION_MAJOR < 2;

#define TROUPE_TORCH_SINCE(minor) \
  (TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= (minor)))

/// sum += a b in the longer type of `sum`, nothing rounded to that of a and b in between. On a GPU,
/// where the library can.
inline void AddWideProduct(at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
#if TROUPE_TORCH_SINCE(15)  // in place, read in the sources; 2.10 still wants a short `sum`
  at::addmm_out(sum, sum, a, b, sum.scalar_type());
#elif TROUPE_TORCH_SINCE(8)
  sum.add_(at::mm(a, b, sum.scalar_type()));
#else
  sum.add_(at::mm(a, b));
#endif
}

#undef TROUPE_TORCH_SINCE

/// Whether a GPU may round the factors of float32 products to 10 bits; for the whole process.
inline void AllowTf32(bool allowed) {
  at::globalContext().setAllowTF32CuBLAS(allowed);
  at::globalContext().setAllowTF32CuDNN(allowed);
}

}  // namespace troupe
