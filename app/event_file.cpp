#include "app/event_file.hpp"

#include <chrono>
#include <cmath>
#include <filesystem>
#include <span>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "cluster/host_identity.hpp"
#include "files/file_error.hpp"
#include "files/proto.hpp"
#include "files/tf_record.hpp"
#include "layout/text.hpp"

namespace troupe {
namespace {

// Numbers of fields.
namespace event {
constexpr int kWallTime = 1;
constexpr int kStep = 2;
constexpr int kFileVersion = 3;
constexpr int kSummary = 5;
constexpr int kSessionLog = 7;
}  // namespace event
namespace summary {
constexpr int kValue = 1;
constexpr int kTag = 1;
constexpr int kSimpleValue = 2;
}  // namespace summary
namespace session {
constexpr int kStatus = 1;
constexpr std::uint64_t kStart = 1;
}  // namespace session

ProtoWriter EventAt(double wall_s, std::int64_t step) {
  ProtoWriter written;
  written.Double(event::kWallTime, wall_s);
  written.Varint(event::kStep, static_cast<std::uint64_t>(step));
  return written;
}

double WallSeconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

}  // namespace

std::string VersionRecord(double wall_s) {
  ProtoWriter written;
  written.Double(event::kWallTime, wall_s);
  written.Text(event::kFileVersion, "brain.Event:2");
  return TfRecord(written.bytes());
}

std::string RestartRecord(double wall_s, std::int64_t step) {
  ProtoWriter start;
  start.Varint(session::kStatus, session::kStart);
  ProtoWriter written = EventAt(wall_s, step);
  written.Message(event::kSessionLog, start);
  return TfRecord(written.bytes());
}

std::string ScalarsRecord(double wall_s, std::int64_t step, const std::vector<Scalar>& scalars) {
  ProtoWriter all;
  for (const Scalar& scalar : scalars) {
    ProtoWriter value;
    value.Text(summary::kTag, scalar.tag);
    value.Float(summary::kSimpleValue, static_cast<float>(scalar.value));
    all.Message(summary::kValue, value);
  }
  ProtoWriter written = EventAt(wall_s, step);
  written.Message(event::kSummary, all);
  return TfRecord(written.bytes());
}

EventFile::EventFile(std::string folder, std::int64_t resumed_after)
    : folder_(std::move(folder)), resumed_after_(resumed_after) {}

void EventFile::Write(std::int64_t step, const std::vector<Scalar>& scalars) {
  const double wall_s = WallSeconds();
  if (!file_) Open(wall_s);
  Append(ScalarsRecord(wall_s, step, scalars));
}

void EventFile::Open(double wall_s) {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) throw FileError(folder_, "create", error);
  // TensorBoard reads the files of a folder in the order of their names.
  file_.emplace(folder_ + "/events.out.tfevents." +
                Formatted("%010lld.", static_cast<long long>(std::floor(wall_s))) + HostName() +
                "." + std::to_string(getpid()));
  Append(VersionRecord(wall_s));
  if (resumed_after_ > 0) Append(RestartRecord(wall_s, resumed_after_ + 1));
}

void EventFile::Append(const std::string& record) {
  file_->Write(std::as_bytes(std::span(record)));
}

}  // namespace troupe
