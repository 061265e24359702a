// The file of a SentencePiece model.
#include "data/text/tokenizer.hpp"
#include "tests/fuzz/scratch.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe;
  const std::string path = fuzz::TheScratch().Write("tokenizer.model", {data, size});
  try {
    const auto tokenizer = MakeTokenizer("sentencepiece:" + path, {"<image>", "<audio>"});
    std::vector<std::int64_t> ids;
    for (const TextToken& token : tokenizer->Encode("A dog on a  \xE2\x96\x81red chair.")) {
      fuzz::Require(token.id >= 0 && token.id < tokenizer->size());
      ids.push_back(token.id);
    }
    tokenizer->Decode(ids);
  } catch (const std::runtime_error&) {
  }
  return 0;
}
