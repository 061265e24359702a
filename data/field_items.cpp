#include "data/field_items.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace troupe {

FieldItems ReadItems(const ItemFormat& format, const std::vector<ItemFile>& files,
                     const std::function<void(std::size_t file, const std::runtime_error& error,
                                              bool has_length)>& failed) {
  FieldItems items;
  for (std::size_t i = 0; i < files.size(); ++i) {
    try {
      items.lengths.push_back(format.preprocessor->LengthOf(files[i]));
    } catch (const std::runtime_error& error) {
      failed(i, error, /*has_length=*/false);
      throw;
    }
  }
  Shape shape = {std::accumulate(items.lengths.begin(), items.lengths.end(), std::int64_t{0})};
  shape.insert(shape.end(), format.row_shape.begin(), format.row_shape.end());
  items.values = Buffer::Allocate(std::move(shape), DType::kFloat32);
  auto* next = items.values.as<float>();
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto size = static_cast<std::size_t>(items.lengths[i] * NumElements(format.row_shape));
    try {
      format.preprocessor->Read(files[i], {next, size});
    } catch (const std::runtime_error& error) {
      failed(i, error, /*has_length=*/true);
      std::fill_n(next, size, 0.0F);
    }
    next += size;
  }
  return items;
}

}  // namespace troupe
