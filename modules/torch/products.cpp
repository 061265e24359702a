#include "modules/torch/products.hpp"

#include <ATen/Context.h>
#include <utility>

#include "modules/torch/planted.hpp"
#include "modules/torch/versions.hpp"

namespace troupe {
namespace {

/// As the library's loop: the innermost runs over the elements of a row of the result.
at::Tensor RoundedPerTerm(const at::Tensor& a, const at::Tensor& b) {
  at::Tensor sum = at::zeros({a.size(0), b.size(1)}, a.options());
  for (std::int64_t k = 0; k < a.size(1); ++k) {
    sum.add_(a.narrow(1, k, 1) * b.narrow(0, k, 1));
  }
  return sum;
}

}  // namespace

bool RoundsInBetween(const at::Tensor& x) { return x.is_cpu() && x.scalar_type() == at::kBFloat16; }

at::Tensor Widened(const at::Tensor& x) { return RoundsInBetween(x) ? x.to(at::kFloat) : x; }

at::Tensor WideProduct(const at::Tensor& a, const at::Tensor& b) {
  if (HasLibraryFault(LibraryFault::kShortSums)) return RoundedPerTerm(a, b);
  if (kAddsUpShort && RoundsInBetween(a)) return at::mm(Widened(a), Widened(b));
  return at::mm(a, b);
}

at::Tensor Product(const at::Tensor& a, const at::Tensor& b) {
  return WideProduct(a, b).to(a.scalar_type());
}

void ProductInto(at::Tensor out, const at::Tensor& a, const at::Tensor& b) {
  if (RoundsInBetween(a) || HasLibraryFault(LibraryFault::kShortSums)) {
    out.copy_(Product(a, b));
  } else {
    at::mm_out(out, a, b);
  }
}

at::Tensor ProductPlus(const at::Tensor& bias, const at::Tensor& a, const at::Tensor& b) {
  if (HasLibraryFault(LibraryFault::kShortSums)) return RoundedPerTerm(a, b).add_(bias);
  if (!kAddsUpShort || !RoundsInBetween(a)) return at::addmm(bias, a, b);
  return at::addmm(Widened(bias), Widened(a), Widened(b)).to(a.scalar_type());
}

void AddProduct(at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
  if (HasLibraryFault(LibraryFault::kShortSums)) {
    sum.add_(RoundedPerTerm(a, b));
  } else if (sum.scalar_type() == a.scalar_type()) {
    sum.addmm_(a, b);
  } else if (sum.is_cuda()) {
    AddWideProduct(sum, a, b);
  } else if (kAddsUpShort && sum.scalar_type() == at::kFloat) {
    sum.addmm_(Widened(a), Widened(b));
  } else {
    sum.add_(at::mm(a, b));
  }
}

WithoutOneDnn::WithoutOneDnn() : before_(at::globalContext().userEnabledMkldnn()) {
  at::globalContext().setUserEnabledMkldnn(false);
}
WithoutOneDnn::~WithoutOneDnn() { at::globalContext().setUserEnabledMkldnn(before_); }

}  // namespace troupe
