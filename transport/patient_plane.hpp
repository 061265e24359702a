// A data plane that does not jump to conclusions: when a connection fails, its process is usually
// gone, and whoever watches processes says so in better words a moment later. So the failure is
// told only after that moment, unless the job has been aborted meanwhile: then with its cause.
// Slices that fail their check are told at once.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "transport/abort_signal.hpp"
#include "transport/data_plane.hpp"
#include "transport/tensor_store.hpp"

namespace troupe {

class PatientPlane : public DataPlane, public TensorCarrier {
 public:
  /// Both planes are one object behind two interfaces; it must outlive this one.
  PatientPlane(DataPlane& plane, TensorCarrier& carrier, std::shared_ptr<AbortSignal> abort,
               std::chrono::milliseconds patience);

  ProcessId self() const override { return plane_.self(); }
  int num_processes() const override { return plane_.num_processes(); }
  void Send(ProcessId to, Label label, Buffer buffer, std::function<void()> sent) override;
  void Receive(ProcessId from, Label label, Buffer destination, std::string what,
               std::function<void()> received,
               std::function<void(const std::string& error)> failed) override;
  void Pull(ProcessId home, std::uint64_t key, std::int64_t offset, Buffer destination,
            std::string what, std::function<void()> received,
            std::function<void(const std::string& error)> failed) override;
  void Return(ProcessId home, std::uint64_t key, std::uint64_t weight) override;

 private:
  std::function<void(const std::string&)> Patient(std::function<void(const std::string&)> failed);

  DataPlane& plane_;
  TensorCarrier& carrier_;
  std::shared_ptr<AbortSignal> abort_;
  std::chrono::milliseconds patience_;
};

}  // namespace troupe
