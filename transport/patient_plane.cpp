#include "transport/patient_plane.hpp"

#include <thread>
#include <utility>

namespace troupe {

PatientPlane::PatientPlane(DataPlane& plane, TensorCarrier& carrier,
                           std::shared_ptr<AbortSignal> abort, std::chrono::milliseconds patience)
    : PlaneInFront(plane, carrier), abort_(std::move(abort)), patience_(patience) {}

Reception PatientPlane::Delayed(Reception reception) const {
  reception.failed = [failed = std::move(reception.failed), abort = abort_,
                      patience = patience_](const Failure& failure) {
    if (abort->raised() || failure.kind == FailureKind::kCheck) return failed(failure);
    std::thread([failed, abort, patience, failure] {
      std::this_thread::sleep_for(patience);
      failed(abort->raised() ? abort->failure() : failure);
    }).detach();
  };
  return reception;
}

}  // namespace troupe
