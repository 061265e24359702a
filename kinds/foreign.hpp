// A model as another program's folder describes it: its configuration, as typed values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "layout/shape.hpp"

namespace troupe {

/// A folder that cannot be used; the text is one line: file, key, reason.
struct ModelFolderError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

using IntegerPair = std::array<std::int64_t, 2>;

/// An object of a configuration in JSON, such as `config.json` of a Hugging Face folder or its
/// `text_config`. Values that are missing or null are replaced by `otherwise`, the family's default,
/// which the implementation notes. A value of another type is refused.
class ForeignConfig {
 public:
  virtual ~ForeignConfig() = default;
  /// Returns whether the key has a value other than null.
  virtual bool Has(const std::string& key) const = 0;
  /// Returns whether the key is there and its value is null.
  virtual bool IsNull(const std::string& key) const = 0;
  /// Returns whether the key is missing, null or an empty list.
  virtual bool IsEmptyList(const std::string& key) const = 0;
  virtual bool IsObject(const std::string& key) const = 0;
  virtual std::int64_t Integer(const std::string& key, std::int64_t otherwise) const = 0;
  virtual double Number(const std::string& key, double otherwise) const = 0;
  virtual bool Flag(const std::string& key, bool otherwise) const = 0;
  virtual std::string Word(const std::string& key, const std::string& otherwise) const = 0;
  /// Returns three numbers; one number stands for three equal ones.
  virtual std::array<double, 3> Channels(const std::string& key,
                                         const std::array<double, 3>& otherwise) const = 0;
  /// Returns a list of pairs of whole numbers.
  virtual std::vector<IntegerPair> Pairs(const std::string& key,
                                         const std::vector<IntegerPair>& otherwise) const = 0;
  /// Returns the object at `key`, null if it has no value.
  virtual std::unique_ptr<const ForeignConfig> Part(const std::string& key) const = 0;
  /// Returns the file and the key as errors show them: "DIR/config.json: text_config.hidden_size".
  virtual std::string NameOf(const std::string& key) const = 0;

  [[noreturn]] void Refuse(const std::string& key, const std::string& reason) const {
    throw ModelFolderError(NameOf(key) + ": " + reason);
  }
};

/// A value of a configuration to write.
using ForeignValue =
    std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, std::vector<std::string>>;
/// By key, in the order in which they are written; keys of objects inside are dotted:
/// "rope_scaling.factor".
using ForeignValues = std::vector<std::pair<std::string, ForeignValue>>;

/// A tensor that a folder must have and that the module does not: every element is `value`.
struct ForeignConstant {
  std::string name;  ///< without a prefix, as our names of parameters are
  Shape shape;
  double value = 0.0;
};

/// A prefix of tensor names in folders: it stands before our name of a parameter, without its
/// module. `head` is the prefix of names that begin with "lm_head.".
struct ForeignNames {
  std::string_view body;
  std::string_view head = {};
};

}  // namespace troupe
