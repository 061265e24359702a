#include "data/text/bpe/vocabulary.hpp"

#include <nlohmann/json.hpp>

namespace troupe::bpe {

Vocabulary::Vocabulary(const JsonNode& node) {
  if (!node.IsObject() || node.value().empty()) node.Refuse("an object of tokens and ids");
  ids_.reserve(node.value().size());
  for (const auto& [text, value] : node.value().items()) {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kMaxId) {
      node.At(text).Refuse("an id from 0 to " + std::to_string(kMaxId));
    }
    if (text.size() > kMaxTokenBytes) {
      node.Fail("expected tokens of at most " + std::to_string(kMaxTokenBytes) + " bytes, got " +
                std::to_string(text.size()));
    }
    const auto id = value.get<std::uint32_t>();
    const auto place = ids_.emplace(text, id).first;
    if (id >= texts_.size()) texts_.resize(id + 1, nullptr);
    if (texts_[id] != nullptr) node.Fail("two tokens have the id " + std::to_string(id));
    texts_[id] = &place->first;
  }
}

std::optional<std::uint32_t> Vocabulary::Find(std::string_view text) const {
  const auto found = ids_.find(text);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

std::optional<std::string_view> Vocabulary::TextOf(std::int64_t id) const {
  if (id < 0 || id >= std::ssize(texts_) || texts_[static_cast<std::size_t>(id)] == nullptr) {
    return std::nullopt;
  }
  return *texts_[static_cast<std::size_t>(id)];
}

}  // namespace troupe::bpe
