// Why a job or a transfer failed: a kind for code, a line of text for people.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

enum class FailureKind : std::uint8_t {
  kError,    ///< an error in the job: a pass, its data, a broken protocol
  kLost,     ///< a process, a machine or a connection is gone; the job may be restarted
  kCheck,    ///< received bytes failed their check
  kStall,    ///< no message has moved in the job for too long
  kDamaged,  ///< the checkpoint to resume from is damaged; an older one may be sound
  kGrows,    ///< no failure: processes have come with which the job is larger; it meets again
};

struct Failure {
  Failure() = default;
  // Implicit from a text, since most failures are errors.
  Failure(std::string line, FailureKind of = FailureKind::kError,
          std::vector<std::string> names = {})
      : kind(of), text(std::move(line)), actors(std::move(names)) {}
  Failure(const char* line) : text(line) {}

  bool empty() const { return text.empty(); }
  friend bool operator==(const Failure&, const Failure&) = default;

  FailureKind kind = FailureKind::kError;
  std::string text;                 ///< one line; empty: no failure
  std::vector<std::string> actors;  ///< names of the actors whose activity explains it, if known
};

/// An error whose kind callers depend on.
struct FailureError : std::runtime_error {
  FailureError(const std::string& line, FailureKind of) : std::runtime_error(line), kind(of) {}
  const FailureKind kind;
};

/// Called once with the reason when an operation fails.
using OnFailure = std::function<void(const Failure& failure)>;

}  // namespace troupe
