// A base class for planes that wrap another plane. Both are a DataPlane and the TensorCarrier of
// the same processes.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "transport/data_plane.hpp"
#include "transport/tensor_store.hpp"

namespace troupe {

/// Forwards every call unchanged; subclasses override some.
class PlaneInFront : public DataPlane, public TensorCarrier {
 public:
  /// `plane` and `carrier` are two interfaces of one object, which must outlive this one.
  PlaneInFront(DataPlane& plane, TensorCarrier& carrier) : plane_(plane), carrier_(carrier) {}

  ProcessId self() const override { return plane_.self(); }
  int num_processes() const override { return plane_.num_processes(); }
  void Send(ProcessId to, Label label, Buffer buffer, std::function<void()> sent) override {
    plane_.Send(to, label, std::move(buffer), std::move(sent));
  }
  void Receive(Reception reception) override { plane_.Receive(std::move(reception)); }
  void Pull(std::uint64_t key, std::int64_t offset, Reception reception) override {
    carrier_.Pull(key, offset, std::move(reception));
  }
  void Return(ProcessId home, std::uint64_t key, std::uint64_t weight) override {
    carrier_.Return(home, key, weight);
  }

 private:
  DataPlane& plane_;
  TensorCarrier& carrier_;
};

}  // namespace troupe
