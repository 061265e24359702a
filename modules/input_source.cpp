#include "modules/input_source.hpp"

#include <stdexcept>

namespace troupe {

Buffer InputSource::Prepare(const SampleTicket& /*ticket*/) {
  throw std::logic_error("this source has no samples to prepare");
}

std::shared_ptr<const Inputs> InputSource::Load(const std::string& module, int dp,
                                                const Round& round, std::int64_t unit) {
  const FeedUnit whole{module, dp, round, unit};
  std::vector<Buffer> samples;
  for (const SampleTicket& ticket : TicketsOf(whole)) samples.push_back(Prepare(ticket));
  return Assemble(whole, samples);
}

}  // namespace troupe
