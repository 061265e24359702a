#include "transport/patient_plane.hpp"

#include <thread>
#include <utility>

namespace troupe {

PatientPlane::PatientPlane(DataPlane& plane, TensorCarrier& carrier,
                           std::shared_ptr<AbortSignal> abort, std::chrono::milliseconds patience)
    : PlaneInFront(plane, carrier), abort_(std::move(abort)), patience_(patience) {}

std::function<void(const std::string&)> PatientPlane::Patient(
    std::function<void(const std::string&)> failed) {
  return
      [failed = std::move(failed), abort = abort_, patience = patience_](const std::string& error) {
        if (abort->raised() || error.find("failed its check") != std::string::npos) {
          return failed(error);
        }
        std::thread([failed, abort, patience, error] {
          std::this_thread::sleep_for(patience);
          failed(abort->raised() ? abort->cause() : error);
        }).detach();
      };
}

void PatientPlane::Receive(ProcessId from, Label label, Buffer destination, std::string what,
                           std::function<void()> received,
                           std::function<void(const std::string& error)> failed) {
  PlaneInFront::Receive(from, label, std::move(destination), std::move(what), std::move(received),
                        Patient(std::move(failed)));
}

void PatientPlane::Pull(ProcessId home, std::uint64_t key, std::int64_t offset, Buffer destination,
                        std::string what, std::function<void()> received,
                        std::function<void(const std::string& error)> failed) {
  PlaneInFront::Pull(home, key, offset, std::move(destination), std::move(what),
                     std::move(received), Patient(std::move(failed)));
}

}  // namespace troupe
