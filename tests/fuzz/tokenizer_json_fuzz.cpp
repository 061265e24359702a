// The tokenizer.json of a Hugging Face folder.
#include <algorithm>
#include <string_view>

#include "data/text/bpe/tokenizer_file.hpp"
#include "tests/fuzz/scratch.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe;
  const std::string path = fuzz::TheScratch().Write("tokenizer.json", {data, size});
  try {
    const bpe::TokenizerFile file(path);
    constexpr std::string_view kText = "A dog's <think> e\xcc\x81  \xe4\xb8\x80\xff 12345\r\n";
    for (const bool first : {true, false}) {
      std::vector<std::int64_t> ids;
      for (const TextToken& token : file.Encode(kText, first)) {
        fuzz::Require(token.id >= 0 && token.id < file.end());
        fuzz::Require(token.begin <= token.end && token.end <= kText.size());
        ids.push_back(token.id);
      }
      file.Decode(ids);
    }
  } catch (const std::runtime_error& error) {
    fuzz::Require(std::string_view(error.what()).find('\n') == std::string_view::npos);
  }
  return 0;
}
