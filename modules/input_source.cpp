#include "modules/input_source.hpp"

#include <stdexcept>

namespace troupe {

const char* ToString(DataPhase phase) {
  switch (phase) {
    case DataPhase::kRead:
      return "read";
    case DataPhase::kTokenize:
      return "tokenize";
    case DataPhase::kDecode:
      return "decode";
    case DataPhase::kTransfer:
      return "transfer";
  }
  return "?";
}

std::unique_ptr<SampleWork> InputSource::Begin(const SampleTicket& /*ticket*/) const {
  throw std::logic_error("this source has no samples to prepare");
}

bool InputSource::MayUse(const SampleTicket& /*ticket*/, const Buffer& /*sample*/) const {
  throw std::logic_error("this source has no samples to prepare");
}

Buffer InputSource::Prepare(const SampleTicket& ticket) const {
  const std::unique_ptr<SampleWork> work = Begin(ticket);
  work->Read();
  work->Tokenize();
  return work->Decode();
}

std::shared_ptr<const Inputs> InputSource::Load(const std::string& module, int dp,
                                                const Round& round, std::int64_t unit) {
  const FeedUnit whole{module, dp, round, unit};
  std::vector<Buffer> samples;
  for (const SampleTicket& ticket : TicketsOf(whole)) samples.push_back(Prepare(ticket));
  return Assemble(whole, samples);
}

}  // namespace troupe
