// A value of a JSON file with its place, for errors: "DIR/tokenizer.json: model.type: expected ...".
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace troupe::bpe {

/// Views a value; the document outlives it. All functions throw std::runtime_error, one line with
/// file and place, for a value of another type.
class JsonNode {
 public:
  JsonNode(const nlohmann::json& value, std::string file)
      : value_(&value), file_(std::move(file)) {}

  /// Whether the object has `key` with a value other than null.
  bool Has(const std::string& key) const;
  /// The value of `key`, which must be there.
  JsonNode At(const std::string& key) const;
  std::optional<JsonNode> Find(const std::string& key) const;

  const std::string& Text() const;
  bool Flag() const;
  /// A whole number from 0 to `high`.
  std::uint32_t Number(std::uint32_t high) const;
  std::size_t size() const;  ///< of a list
  JsonNode Item(std::size_t index) const;

  std::string TextOr(const std::string& key, const std::string& otherwise) const;
  bool FlagOr(const std::string& key, bool otherwise) const;

  bool IsText() const;
  bool IsObject() const;
  const nlohmann::json& value() const { return *value_; }

  /// Throws "FILE: PLACE: expected `expected`, got ...".
  [[noreturn]] void Refuse(const std::string& expected) const;
  /// Throws "FILE: PLACE: `fault`".
  [[noreturn]] void Fail(const std::string& fault) const;

 private:
  JsonNode(const nlohmann::json& value, std::string file, std::string place)
      : value_(&value), file_(std::move(file)), place_(std::move(place)) {}

  const nlohmann::json* value_;
  std::string file_;
  std::string place_;
};

}  // namespace troupe::bpe
