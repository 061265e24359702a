#include "transport/gpu/side_communicator.hpp"

#include <utility>

#include "gpu/device.hpp"

namespace troupe {
namespace {

class SideCommunicator final : public Communicator {
 public:
  SideCommunicator(std::unique_ptr<gpu::Stream> own, std::unique_ptr<Communicator> inner,
                   CallerStream caller)
      : own_(std::move(own)), inner_(std::move(inner)), caller_(std::move(caller)) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  void Run(const Collective& mine) override { CallerFollows(RunAfter({CallerPoint()}, mine)); }

  Point CallerPoint() override { return PointOf(caller_()); }

  Point RunAfter(const std::vector<Point>& points, const Collective& mine) override {
    const gpu::DeviceGuard guard(own_->device());  // the thread may be another than the member's
    for (const Point& point : points) Follow(*own_, point);
    inner_->Run(mine);
    return PointOf(*own_);
  }

  void CallerFollows(const Point& point) override { Follow(caller_(), point); }

 private:
  static Point PointOf(const gpu::Stream& stream) {
    auto event = std::make_shared<gpu::Event>(stream.device());
    event->Record(stream);
    return event;
  }

  static void Follow(const gpu::Stream& stream, const Point& point) {
    if (point) stream.Wait(*std::static_pointer_cast<gpu::Event>(point));
  }

  const std::unique_ptr<gpu::Stream> own_;
  const std::unique_ptr<Communicator> inner_;
  const CallerStream caller_;
};

}  // namespace

std::unique_ptr<Communicator> MakeSideCommunicator(std::unique_ptr<gpu::Stream> own,
                                                   std::unique_ptr<Communicator> inner,
                                                   CallerStream caller) {
  return std::make_unique<SideCommunicator>(std::move(own), std::move(inner), std::move(caller));
}

}  // namespace troupe
