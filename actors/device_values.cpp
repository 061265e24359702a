#include "actors/device_values.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "modules/finite.hpp"

namespace troupe {

void RequireFinite(const std::vector<Buffer>& buffers, const char* what) {
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const auto bad = NonFinite(buffers[i]);
    if (bad) throw std::runtime_error(what + (" " + std::to_string(i)) + " is not finite: " + *bad);
  }
}

void Bring(DeviceState& s, std::vector<Buffer>& buffers, const char* what) {
  for (Buffer& buffer : buffers) {
    buffer = s.rows().Here(s.config.tensors->FetchNow(buffer, what, s.config.gpu));
  }
}

std::shared_ptr<const Inputs> Brought(const DeviceState& s,
                                      const std::shared_ptr<const Inputs>& in) {
  const auto here = [](const auto& map) {
    return std::all_of(map.begin(), map.end(), [](const auto& e) { return e.second.local(); });
  };
  if (!in || (in->tokens.local() && in->labels.local() && in->content.local() && here(in->images) &&
              here(in->positions))) {
    return in;
  }
  auto data = std::make_shared<Inputs>(*in);
  for (Buffer* buffer : {&data->tokens, &data->labels, &data->content}) {
    *buffer = s.config.tensors->FetchNow(*buffer, "tokens");
  }
  for (auto* map : {&data->images, &data->positions}) {
    for (auto& [name, buffer] : *map) buffer = s.config.tensors->FetchNow(buffer, "images");
  }
  return data;
}

Buffer EmptyExchange(const DeviceState& s, const RunExchange& run) {
  const auto self = static_cast<std::size_t>(s.config.groups.at(run.group)->rank());
  Shape shape{run.plan->rows_out.at(self)};
  shape.insert(shape.end(), run.plan->row_shape.begin(), run.plan->row_shape.end());
  return Buffer::Zeros(shape, run.plan->dtype);
}

}  // namespace troupe
