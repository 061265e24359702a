#include "modules/torch/tensors.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <stdexcept>
#include <utility>

namespace troupe {

/// A type of buffers and the same type of tensors.
using TypePair = std::pair<DType, at::ScalarType>;
static constexpr std::array<TypePair, 6> kTypes = {{{DType::kFloat32, at::kFloat},
                                                    {DType::kFloat64, at::kDouble},
                                                    {DType::kInt64, at::kLong},
                                                    {DType::kInt32, at::kInt},
                                                    {DType::kUInt8, at::kByte},
                                                    {DType::kBFloat16, at::kBFloat16}}};

at::ScalarType ScalarTypeOf(Precision precision) {
  switch (precision) {
    case Precision::kFloat32:
      return at::kFloat;
    case Precision::kFloat64:
      return at::kDouble;
    case Precision::kBFloat16:
      return at::kBFloat16;
  }
  throw std::invalid_argument("precision: unknown");
}

at::ScalarType ScalarTypeOf(DType dtype) {
  const auto* const found = std::ranges::find(kTypes, dtype, &TypePair::first);
  if (found != kTypes.end()) return found->second;
  throw std::invalid_argument("dtype: unknown");
}

DType DTypeOf(at::ScalarType type) {
  const auto* const found = std::ranges::find(kTypes, type, &TypePair::second);
  if (found != kTypes.end()) return found->first;
  throw std::invalid_argument(std::string("tensor: no buffer holds ") + at::toString(type));
}

at::Device DeviceOf(int device) {
  if (device == Buffer::kHost) return at::kCPU;
  return {at::kCUDA, static_cast<c10::DeviceIndex>(device)};
}

int DeviceOf(const at::Device& device) {
  return device.is_cpu() ? Buffer::kHost : static_cast<int>(device.index());
}

at::Tensor AsTensor(const Buffer& buffer) {
  // The deleter runs with the last view, on whichever thread that is: it only drops a reference.
  const at::Device device = DeviceOf(buffer.device());
  return at::for_blob(buffer.data(), buffer.shape())
      .deleter([owner = buffer.owner()](void*) {})
      .options(at::TensorOptions(device).dtype(ScalarTypeOf(buffer.dtype())))
      .target_device(device)
      .make_tensor();
}

at::Tensor AsTensor(const Buffer& buffer, DType dtype, std::size_t num_dimensions,
                    const std::string& what) {
  const std::string expected = what + ": expected " + std::to_string(num_dimensions) +
                               " dimensions of " + ToString(dtype) + ", got ";
  if (!buffer.defined()) throw std::invalid_argument(expected + "no tensor");
  if (buffer.dtype() != dtype || buffer.shape().size() != num_dimensions) {
    throw std::invalid_argument(expected + ToString(buffer.shape()) + " of " +
                                ToString(buffer.dtype()));
  }
  return AsTensor(buffer);
}

Buffer AsBuffer(const at::Tensor& tensor) {
  const DType dtype = DTypeOf(tensor.scalar_type());
  Shape shape = tensor.sizes().vec();
  // An empty tensor may have no memory at all, and a buffer without memory counts as undefined.
  auto owner = std::make_shared<at::Tensor>(tensor.numel() == 0 ? at::empty({1}, tensor.options())
                                                                : tensor.detach().contiguous());
  void* const data = owner->data_ptr();
  return Buffer::Wrap(std::move(owner), data, std::move(shape), dtype, DeviceOf(tensor.device()));
}

}  // namespace troupe
