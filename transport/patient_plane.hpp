// A data plane that does not jump to conclusions: when a connection fails, its process is usually
// gone, and whoever watches processes says so in better words a moment later. So the failure is
// told only after that moment, unless the job has been aborted meanwhile: then with its cause.
// Slices that fail their check are told at once.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "transport/abort_signal.hpp"
#include "transport/plane_in_front.hpp"

namespace troupe {

class PatientPlane final : public PlaneInFront {
 public:
  /// `plane` and `carrier` as of PlaneInFront; failures are told `patience` later.
  PatientPlane(DataPlane& plane, TensorCarrier& carrier, std::shared_ptr<AbortSignal> abort,
               std::chrono::milliseconds patience);

  void Receive(ProcessId from, Label label, Buffer destination, std::string what,
               std::function<void()> received,
               std::function<void(const std::string& error)> failed) override;
  void Pull(ProcessId home, std::uint64_t key, std::int64_t offset, Buffer destination,
            std::string what, std::function<void()> received,
            std::function<void(const std::string& error)> failed) override;

 private:
  std::function<void(const std::string&)> Patient(std::function<void(const std::string&)> failed);

  std::shared_ptr<AbortSignal> abort_;
  std::chrono::milliseconds patience_;
};

}  // namespace troupe
