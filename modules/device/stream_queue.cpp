#include "modules/device/stream_queue.hpp"

#include <utility>

#include "gpu/copies.hpp"
#include "gpu/kernels/device.hpp"
#include "gpu/memory.hpp"

namespace troupe {

Buffer StreamQueue::Allocate(Shape shape, DType dtype) {
  const std::size_t num_bytes = static_cast<std::size_t>(NumElements(shape)) * SizeOf(dtype);
  gpu::Stream& stream = On(lane_).stream();
  std::shared_ptr<void> owner = memory_(num_bytes, stream);
  void* const data = owner.get();
  return Buffer::Wrap(std::move(owner), data, std::move(shape), dtype, stream.device());
}

Buffer StreamQueue::Here(const Buffer& rows) {
  if (!rows.defined()) return rows;
  const bool is_here = rows.device() == On(lane_).stream().device() && rows.parts().empty();
  return is_here ? On(lane_).Kept(rows) : LaidTogether(rows);
}

Buffer StreamQueue::OnHost(const Buffer& rows) {
  if (!rows.defined() || rows.on_host()) return rows;
  const Buffer here = Here(rows);
  std::shared_ptr<void> memory = gpu::AllocatePinned(here.num_bytes());
  void* const to = memory.get();
  if (here.num_bytes() > 0) {
    gpu::Copy(On(lane_).stream(), to, here.data(), here.num_bytes(), gpu::Way::kToHost);
  }
  On(lane_).Keep(here.owner());
  return Buffer::Wrap(std::move(memory), to, here.shape(), here.dtype());
}

/// Parts on this device go together by kernels, the others by a copy each.
Buffer StreamQueue::LaidTogether(const Buffer& rows) {
  StreamLane& lane = On(lane_);
  const gpu::Stream& stream = lane.stream();
  Buffer whole = Allocate(rows.shape(), rows.dtype());
  gpu::Slices slices;
  const auto gather = [&] {
    gpu::GatherSlices(stream, slices);
    slices.count = 0;
  };
  std::byte* to = whole.data();
  const auto append = [&](const Buffer& part) {
    if (part.num_bytes() == 0) return;
    if (part.on_host()) {
      gpu::Copy(stream, to, part.data(), part.num_bytes(), gpu::Way::kToDevice);
    } else if (part.device() != stream.device()) {
      gpu::CopyFromDevice(stream, to, part.data(), part.device(), part.num_bytes());
    } else {
      if (slices.count == gpu::Slices::kMost) gather();
      slices.Add(part.data(), part.num_bytes(), to);
    }
    to += part.num_bytes();
    lane.Keep(part.owner());
  };
  if (rows.parts().empty()) append(rows);
  for (const Buffer& part : rows.parts()) append(part);
  gather();
  return whole;
}

void StreamQueue::Begin(const std::string& name, Lane lane) {
  if (lane != lane_) Bind(lane);
  range_.emplace(name);
  On(lane).Begin();
}

void StreamQueue::End(std::function<void(const std::string& error)> done) {
  range_.reset();
  StreamLane& lane = On(lane_);
  if (lane_ != Lane::kCompute) Bind(Lane::kCompute);
  lane.End(std::move(done));
}

}  // namespace troupe
