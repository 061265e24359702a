// A data plane that delays reports of failed connections. The peer process is usually gone, and the
// watch of processes soon reports that cause more precisely. If the job is aborted meanwhile, the
// transfer fails with the abort's cause. A slice that fails its check is reported at once.
#pragma once

#include <chrono>
#include <memory>
#include <utility>

#include "transport/abort_signal.hpp"
#include "transport/plane_in_front.hpp"

namespace troupe {

class PatientPlane final : public PlaneInFront {
 public:
  /// `plane` and `carrier` as for PlaneInFront. Failures are reported `patience` later.
  PatientPlane(DataPlane& plane, TensorCarrier& carrier, std::shared_ptr<AbortSignal> abort,
               std::chrono::milliseconds patience);

  void Receive(Reception reception) override {
    PlaneInFront::Receive(Delayed(std::move(reception)));
  }
  void Pull(std::uint64_t key, std::int64_t offset, Reception reception) override {
    PlaneInFront::Pull(key, offset, Delayed(std::move(reception)));
  }

 private:
  Reception Delayed(Reception reception) const;

  std::shared_ptr<AbortSignal> abort_;
  std::chrono::milliseconds patience_;
};

}  // namespace troupe
