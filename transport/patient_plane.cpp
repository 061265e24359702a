#include "transport/patient_plane.hpp"

#include <thread>
#include <utility>

namespace troupe {

PatientPlane::PatientPlane(DataPlane& plane, TensorCarrier& carrier,
                           std::shared_ptr<AbortSignal> abort, std::chrono::milliseconds patience)
    : PlaneInFront(plane, carrier), abort_(std::move(abort)), patience_(patience) {}

OnFailure PatientPlane::Delayed(OnFailure failed) {
  return
      [failed = std::move(failed), abort = abort_, patience = patience_](const Failure& failure) {
        if (abort->raised() || failure.kind == FailureKind::kCheck) return failed(failure);
        std::thread([failed, abort, patience, failure] {
          std::this_thread::sleep_for(patience);
          failed(abort->raised() ? abort->failure() : failure);
        }).detach();
      };
}

void PatientPlane::Receive(ProcessId from, Label label, Buffer destination, std::string what,
                           std::function<void()> received, OnFailure failed) {
  PlaneInFront::Receive(from, label, std::move(destination), std::move(what), std::move(received),
                        Delayed(std::move(failed)));
}

void PatientPlane::Pull(ProcessId home, std::uint64_t key, std::int64_t offset, Buffer destination,
                        std::string what, std::function<void()> received, OnFailure failed) {
  PlaneInFront::Pull(home, key, offset, std::move(destination), std::move(what),
                     std::move(received), Delayed(std::move(failed)));
}

}  // namespace troupe
