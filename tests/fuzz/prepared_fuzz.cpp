// What a feed machine sends: messages, and prepared samples for a model with encoders of images and of sound.
#include <algorithm>
#include <cstring>

#include "data/prepared_sample.hpp"
#include "feed/message.hpp"
#include "tests/data/two_encoders.hpp"
#include "tests/fuzz/scratch.hpp"

namespace troupe::fuzz {
namespace {

/// What decodes is what Encode makes.
void Messages(Bytes bytes) {
  const auto all = std::as_bytes(bytes);
  try {
    Require(std::ranges::equal(FeedProtocol::Encode(FeedProtocol::Decode(all)), all));
  } catch (const WireError&) {
  }
}

void Samples(Bytes bytes, std::uint64_t fields) {
  static const SampleFormat format = FormatOfTwoEncoders();
  Buffer sample = Buffer::AllocateBytes(bytes.size());
  if (!bytes.empty()) std::memcpy(sample.data(), bytes.data(), bytes.size());
  try {
    const PreparedSample prepared = Decode(sample, format, fields);
    const Buffer again = Encode(prepared);
    Require(again.num_bytes() == bytes.size());
    for (std::size_t i = 0; i < prepared.items.size(); ++i) {
      std::int64_t length = 0;
      for (const PreparedItem& item : prepared.items[i]) length += item.length;
      if (length > 1 << 16) continue;  // zeros of any length are legal
      Require(Finished(prepared.items[i], format.items[i]).values.shape()[0] == length);
    }
  } catch (const std::runtime_error&) {
  }
}

}  // namespace
}  // namespace troupe::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe::fuzz;
  if (size == 0) return 0;
  const Bytes bytes = Bytes(data, size).subspan(1);
  if ((data[0] & 4) == 0) Messages(bytes);
  if ((data[0] & 4) != 0) Samples(bytes, data[0] & 3);
  return 0;
}
