#include "data/text/tokenizer.hpp"

#include <dlfcn.h>
#include <stdexcept>

#include "configs/config.hpp"
#include "data/text/hf_tokenizer.hpp"
#include "data/text/sentencepiece_model.hpp"
#include "files/file_error.hpp"
#include "files/text_file.hpp"

namespace troupe {
namespace {

class ByteTokenizer : public Tokenizer {
 public:
  explicit ByteTokenizer(int num_encoders) : num_encoders_(num_encoders) {}

  std::vector<TextToken> Encode(std::string_view text) const override {
    std::vector<TextToken> tokens;
    tokens.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
      tokens.push_back({static_cast<unsigned char>(text[i]), i, i + 1});
    }
    return tokens;
  }

  std::string Decode(std::span<const std::int64_t> ids) const override {
    std::string text;
    for (const std::int64_t id : ids) {
      if (id >= 0 && id < kNumBytes) text.push_back(static_cast<char>(id));
    }
    return text;
  }

  std::optional<std::int64_t> bos() const override { return kNumBytes; }
  std::int64_t eos() const override { return kNumBytes + 1; }
  std::int64_t pad() const override { return kNumBytes + 2; }
  std::int64_t placeholder(int encoder) const override { return kNumBytes + 3 + encoder; }
  std::int64_t size() const override { return kNumBytes + 3 + num_encoders_; }

 private:
  static constexpr std::int64_t kNumBytes = 256;
  int num_encoders_;
};

/// Returns the bytes of a model that the library can read safely.
std::string ReadModel(const std::string& file) {
  std::string model = ReadWholeFile(file);
  const std::string problem = ProblemOf(std::as_bytes(std::span(model)));
  if (problem.empty()) return model;
  throw std::runtime_error(file + ": expected a sentencepiece model, " + problem);
}

/// libsentencepiece contains protocol buffers with the symbol names of the newer ones in libtorch.
/// Linked into one program, each would run the other's code. So the library is opened on demand,
/// and its symbols are bound among themselves (data/text/sentencepiece/).
std::shared_ptr<const Tokenizer> OpenSentencePiece(const std::string& file, int num_encoders,
                                                   bool pad_last = false) {
#ifdef TROUPE_SANITIZED
  constexpr int kFlags = RTLD_NOW | RTLD_LOCAL;  // sanitizers refuse deep binding
#else
  constexpr int kFlags = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
#endif
  void* library = dlopen("libtroupe_sentencepiece.so", kFlags);
  // Sanitizers open libraries themselves and do not use the program's search path.
  if (library == nullptr)
    library = dlopen(TROUPE_BUILD_FOLDER "/libtroupe_sentencepiece.so", kFlags);
  if (library == nullptr) throw std::runtime_error(std::string("sentencepiece: ") + dlerror());
  using Make = const Tokenizer* (*)(const char*, const char*, std::size_t, int, bool);
  const auto make = reinterpret_cast<Make>(dlsym(library, "TroupeMakeSentencePiece"));
  if (make == nullptr) throw std::runtime_error(std::string("sentencepiece: ") + dlerror());
  const std::string model = ReadModel(file);
  return std::shared_ptr<const Tokenizer>(
      make(file.c_str(), model.data(), model.size(), num_encoders, pad_last));
}

std::shared_ptr<const Tokenizer> OpenFolder(const std::string& folder,
                                            const std::vector<std::string>& placeholders) {
  if (IsThere(folder + "/tokenizer.json")) return OpenHfTokenizer(folder, placeholders);
  const std::string model = folder + "/tokenizer.model";
  if (IsThere(model)) {
    return OpenSentencePiece(model, static_cast<int>(placeholders.size()), /*pad_last=*/true);
  }
  throw std::runtime_error(folder + ": expected tokenizer.json or tokenizer.model, found neither");
}

}  // namespace

std::shared_ptr<const Tokenizer> MakeTokenizer(const std::string& name,
                                               const std::vector<std::string>& placeholders) {
  const int num_encoders = static_cast<int>(placeholders.size());
  if (name == "bytes") return std::make_shared<ByteTokenizer>(num_encoders);
  if (const std::string file = SentencePieceFile(name); !file.empty()) {
    return OpenSentencePiece(file, num_encoders);
  }
  if (const std::string folder = HuggingFaceFolder(name); !folder.empty()) {
    return OpenFolder(folder, placeholders);
  }
  throw std::runtime_error(
      "tokenizer: expected \"bytes\", \"sentencepiece:FILE\" or \"hf:DIR\", got \"" + name + "\"");
}

}  // namespace troupe
