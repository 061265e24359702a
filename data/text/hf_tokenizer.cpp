#include "data/text/hf_tokenizer.hpp"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "data/text/bpe/json_node.hpp"
#include "data/text/bpe/tokenizer_file.hpp"
#include "data/text/tokenizer_config.hpp"

namespace troupe {
namespace {

class HfTokenizer : public Tokenizer {
 public:
  HfTokenizer(const std::string& folder, const std::vector<std::string>& placeholders)
      : file_(folder + "/tokenizer.json"), end_(file_.end()) {
    const TokenizerConfig config = TokenizerConfig::Read(folder);
    eos_ = IdOf(config.path, "eos_token", config.eos);
    for (const std::string& placeholder : placeholders) {
      const auto known = file_.FindAdded(placeholder);
      placeholders_.push_back(known ? *known : end_++);
    }
    const auto known_pad = file_.FindAdded("<pad>");
    pad_ = config.pad  ? IdOf(config.path, "pad_token", *config.pad)
           : known_pad ? *known_pad
                       : end_++;
    const bool begins = config.adds_bos.value_or(file_.leading_token().has_value());
    const std::optional<std::string> bos = config.bos ? config.bos : file_.leading_token();
    if (begins && bos) bos_ = IdOf(config.path, "bos_token", *bos);
  }

  std::vector<TextToken> Encode(std::string_view text) const override {
    return file_.Encode(text, /*first=*/true);
  }
  std::vector<TextToken> EncodeAfterSpecial(std::string_view text) const override {
    return file_.Encode(text, /*first=*/false);
  }
  std::string Decode(std::span<const std::int64_t> ids) const override { return file_.Decode(ids); }

  std::optional<std::int64_t> bos() const override { return bos_; }
  std::int64_t eos() const override { return eos_; }
  std::int64_t pad() const override { return pad_; }
  std::int64_t placeholder(int encoder) const override {
    return placeholders_.at(static_cast<std::size_t>(encoder));
  }
  std::optional<std::int64_t> special(std::string_view text) const override {
    return file_.FindAdded(text);
  }
  std::int64_t size() const override { return end_; }

 private:
  std::int64_t IdOf(const std::string& path, const char* role, const std::string& text) const {
    const auto id = file_.Find(text);
    if (!id) {
      throw std::runtime_error(path + ": " + role + ": expected a token of tokenizer.json, got \"" +
                               text + "\"");
    }
    return *id;
  }

  bpe::TokenizerFile file_;
  std::int64_t end_;
  std::int64_t eos_ = 0;
  std::int64_t pad_ = 0;
  std::optional<std::int64_t> bos_;
  std::vector<std::int64_t> placeholders_;
};

}  // namespace

std::shared_ptr<const Tokenizer> OpenHfTokenizer(const std::string& folder,
                                                 const std::vector<std::string>& placeholders) {
  return std::make_shared<HfTokenizer>(folder, placeholders);
}

}  // namespace troupe
