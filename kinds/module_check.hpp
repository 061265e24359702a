// The interface through which a kind checks a module and reports errors.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

class ModelConfig;

/// A key with its value, as it appears in messages.
struct Named {
  std::string key;
  std::int64_t value = 0;
};

/// The module to check. Keys are dotted: "modules.vision.hidden".
class ModuleCheck {
 public:
  /// A module that feeds this one.
  struct Source {
    std::string name;
    const ModelConfig* model = nullptr;
    bool good = false;  ///< no error was reported for the keys of its kind
  };

  virtual ~ModuleCheck() = default;
  /// Returns the dotted name of a key of the module.
  virtual std::string KeyOf(const std::string& name) const = 0;
  /// Returns whether no error was reported for any of these keys, so that checks may use them.
  virtual bool Good(std::initializer_list<std::string> keys) const = 0;
  virtual void Add(const std::string& key, const std::string& text) = 0;
  /// Reports at the key written later if `number` is not a multiple of `divisor`.
  virtual void ExpectMultiple(const Named& number, const Named& divisor) = 0;

  /// Returns the module's tensor parallelism; that of its host if it is inline.
  virtual Named tp() const = 0;
  virtual std::vector<Source> sources() const = 0;
  /// Returns the number of modules that read a field, each with a placeholder token; none if a kind
  /// is unknown.
  virtual std::optional<std::int64_t> num_placeholders() const = 0;
  virtual bool reads_bytes() const = 0;  ///< the tokenizer is "bytes"

  Named Own(const std::string& name, std::int64_t value) const { return {KeyOf(name), value}; }
};

}  // namespace troupe
