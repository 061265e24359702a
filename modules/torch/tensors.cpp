#include "modules/torch/tensors.hpp"

#include <memory>
#include <stdexcept>

namespace troupe {

at::ScalarType ScalarTypeOf(Precision precision) {
  return precision == Precision::kFloat64 ? at::kDouble : at::kFloat;
}

at::ScalarType ScalarTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return at::kFloat;
    case DType::kFloat64:
      return at::kDouble;
    case DType::kInt64:
      return at::kLong;
    case DType::kInt32:
      return at::kInt;
    case DType::kUInt8:
      return at::kByte;
    case DType::kBFloat16:
      return at::kBFloat16;
  }
  throw std::invalid_argument("dtype: unknown");
}

DType DTypeOf(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return DType::kFloat32;
    case at::kDouble:
      return DType::kFloat64;
    case at::kLong:
      return DType::kInt64;
    case at::kInt:
      return DType::kInt32;
    case at::kByte:
      return DType::kUInt8;
    case at::kBFloat16:
      return DType::kBFloat16;
    default:
      throw std::invalid_argument(std::string("tensor: no buffer holds ") + at::toString(type));
  }
}

at::Tensor AsTensor(const Buffer& buffer) {
  // The deleter runs with the last view, on whichever thread that is: it only drops a reference.
  return at::from_blob(
      buffer.data(), buffer.shape(), [owner = buffer.owner()](void*) {},
      at::TensorOptions().dtype(ScalarTypeOf(buffer.dtype())));
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
  // An empty tensor may have no memory at all, and a buffer without memory counts as undefined.
  if (tensor.numel() == 0) return Buffer::Allocate(tensor.sizes().vec(), dtype);
  auto owner = std::make_shared<at::Tensor>(tensor.detach().contiguous());
  void* const data = owner->data_ptr();
  Shape shape = owner->sizes().vec();
  return Buffer::Wrap(std::move(owner), data, std::move(shape), dtype);
}

}  // namespace troupe
