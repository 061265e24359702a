// When a plane that waits for a better cause passes a failure on.
#include "transport/patient_plane.hpp"

#include <chrono>
#include <future>

#include <catch2/catch.hpp>

namespace troupe {
namespace {

constexpr std::chrono::milliseconds kPatience{50};

/// Fails every receive at once with `failure`.
class FailingPlane final : public DataPlane, public TensorCarrier {
 public:
  explicit FailingPlane(Failure failure) : failure_(std::move(failure)) {}

  ProcessId self() const override { return 1; }
  int num_processes() const override { return 2; }
  void Send(ProcessId, Label, Buffer, std::function<void()>) override {}
  void Receive(Reception reception) override { reception.failed(failure_); }
  void Pull(std::uint64_t, std::int64_t, Reception reception) override {
    reception.failed(failure_);
  }
  void Return(ProcessId, std::uint64_t, std::uint64_t) override {}

 private:
  const Failure failure_;
};

struct Outcome {
  Failure failure;
  bool at_once = false;
};

/// What a receive through a PatientPlane fails with; `meanwhile` runs while it may wait.
Outcome Receive(
    const Failure& failure, const std::shared_ptr<AbortSignal>& abort,
    const std::function<void()>& meanwhile = [] {}) {
  FailingPlane failing(failure);
  PatientPlane plane(failing, failing, abort, kPatience);
  std::promise<Failure> promise;
  std::future<Failure> result = promise.get_future();
  plane.Receive(
      {0, {}, Buffer(), "a slice", [] {}, [&](const Failure& it) { promise.set_value(it); }});
  const bool at_once = result.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  meanwhile();
  return {result.get(), at_once};
}

}  // namespace

TEST_CASE("the kind of a failure decides whether it waits for a better cause, not its text") {
  const auto abort = std::make_shared<AbortSignal>();
  const Failure check("the slice from n0 is not what was expected", FailureKind::kCheck);
  const Outcome checked = Receive(check, abort);
  CHECK(checked.at_once);
  CHECK(checked.failure == check);

  const Failure lost("the slice from n0 failed its check, says a text", FailureKind::kLost);
  const Outcome waited = Receive(lost, abort);
  CHECK_FALSE(waited.at_once);
  CHECK(waited.failure == lost);
}

TEST_CASE("a failed connection takes the cause of an abort that follows, with its kind") {
  const auto abort = std::make_shared<AbortSignal>();
  const Failure cause("lost n0: killed", FailureKind::kLost);
  const Outcome outcome =
      Receive("its data connection failed", abort, [&] { abort->Raise(cause); });
  CHECK_FALSE(outcome.at_once);
  CHECK(outcome.failure == cause);
}

}  // namespace troupe
