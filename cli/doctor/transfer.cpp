#include "cli/doctor/transfer.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace troupe {
namespace {

const char* const kStream = "doctor";

/// A word that differs by place and sender.
std::uint64_t Word(ProcessId sender, std::int64_t place) {
  return (static_cast<std::uint64_t>(place) + 1) * 0x9e3779b97f4a7c15u +
         static_cast<std::uint64_t>(sender);
}

Buffer WordBuffer(std::int64_t num_bytes) {
  return Buffer::Allocate({num_bytes / static_cast<std::int64_t>(sizeof(std::uint64_t))},
                          DType::kInt64);
}

}  // namespace

TransferEnd::TransferEnd(std::unique_ptr<Plane> plane)
    : plane_(std::move(plane)), self_(plane_->self()), outgoing_(WordBuffer(kMeasuredBytes)) {
  auto* words = outgoing_.as<std::uint64_t>();
  for (std::int64_t i = 0; i < outgoing_.num_elements(); ++i) words[i] = Word(self_, i);
}

void TransferEnd::Send(ProcessId to, std::int64_t num_bytes) {
  if (num_bytes > kMeasuredBytes) throw std::invalid_argument("more bytes than are there");
  plane_->Send(to, {StreamOf(kStream), ++num_sent_[to]},
               outgoing_.Rows(0, num_bytes / static_cast<std::int64_t>(sizeof(std::uint64_t))), {});
}

void TransferEnd::Post(ProcessId from, std::int64_t num_bytes) {
  if (num_bytes > kMeasuredBytes) throw std::invalid_argument("more bytes than there will be");
  incoming_ = WordBuffer(num_bytes);
  const auto promise = std::make_shared<std::promise<std::string>>();
  arrival_ = promise->get_future();
  plane_->Receive({from,
                   {StreamOf(kStream), ++num_posted_[from]},
                   incoming_,
                   "the doctor's measurement",
                   [promise] { promise->set_value(""); },
                   [promise](const Failure& failure) { promise->set_value(failure.text); }});
}

void TransferEnd::Await() {
  if (arrival_.wait_for(kTransferTime) != std::future_status::ready) {
    throw std::runtime_error(std::to_string(incoming_.num_bytes() >> 10) +
                             " KiB did not arrive within " + std::to_string(kTransferTime.count()) +
                             " s");
  }
  const std::string error = arrival_.get();
  if (!error.empty()) throw std::runtime_error(error);
}

bool TransferEnd::Intact(ProcessId from) const {
  const auto* const words = incoming_.as<std::uint64_t>();
  std::int64_t place = 0;
  return std::all_of(words, words + incoming_.num_elements(),
                     [&](std::uint64_t word) { return word == Word(from, place++); });
}

}  // namespace troupe
