#include "data/text/bpe/json_node.hpp"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "files/strict_json.hpp"

namespace troupe::bpe {
namespace {

std::string Shown(const nlohmann::json& value) {
  if (value.is_string()) return QuoteText(value.get_ref<const std::string&>());
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  return value.dump();
}

}  // namespace

bool JsonNode::Has(const std::string& key) const { return Find(key).has_value(); }

std::optional<JsonNode> JsonNode::Find(const std::string& key) const {
  if (!value_->is_object()) Refuse("an object");
  const auto found = value_->find(key);
  if (found == value_->end() || found->is_null()) return std::nullopt;
  return JsonNode(*found, file_, place_.empty() ? key : place_ + "." + key);
}

JsonNode JsonNode::At(const std::string& key) const {
  const std::optional<JsonNode> found = Find(key);
  if (!found) Fail("expected the key \"" + key + "\", it is missing");
  return *found;
}

const std::string& JsonNode::Text() const {
  if (!value_->is_string()) Refuse("a text");
  return value_->get_ref<const std::string&>();
}

bool JsonNode::Flag() const {
  if (!value_->is_boolean()) Refuse("true or false");
  return value_->get<bool>();
}

std::uint32_t JsonNode::Number(std::uint32_t high) const {
  if (!value_->is_number_unsigned() || value_->get<std::uint64_t>() > high) {
    Refuse("a whole number from 0 to " + std::to_string(high));
  }
  return value_->get<std::uint32_t>();
}

std::size_t JsonNode::size() const {
  if (!value_->is_array()) Refuse("a list");
  return value_->size();
}

JsonNode JsonNode::Item(std::size_t index) const {
  return {value_->at(index), file_, place_ + "[" + std::to_string(index) + "]"};
}

std::string JsonNode::TextOr(const std::string& key, const std::string& otherwise) const {
  const std::optional<JsonNode> found = Find(key);
  return found ? found->Text() : otherwise;
}

bool JsonNode::FlagOr(const std::string& key, bool otherwise) const {
  const std::optional<JsonNode> found = Find(key);
  return found ? found->Flag() : otherwise;
}

bool JsonNode::IsText() const { return value_->is_string(); }
bool JsonNode::IsObject() const { return value_->is_object(); }

void JsonNode::Refuse(const std::string& expected) const {
  Fail("expected " + expected + ", got " + Shown(*value_));
}

void JsonNode::Fail(const std::string& fault) const {
  throw std::runtime_error(file_ + ": " + (place_.empty() ? "" : place_ + ": ") + fault);
}

}  // namespace troupe::bpe
