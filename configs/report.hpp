// Collects errors, finds their places, and records which keys have usable values.
#pragma once

#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "configs/config_error.hpp"
#include "configs/toml_value.hpp"

namespace troupe {

class Report {
 public:
  explicit Report(std::string file) : file_(std::move(file)) {}

  /// Records that the key or table `key` (dotted) is at `place`.
  void Know(const std::string& key, const Place& place) { places_[key] = place; }

  /// Adds `key: text` at the key's place, or at the innermost enclosing table that was written.
  void Add(const std::string& key, const std::string& text);
  /// Like `Add`, at another place, such as one element of a list.
  void AddAt(const std::string& key, const Place& place, const std::string& text);

  /// Errors reported for this key from here on leave its value usable: it is a good guess.
  void TakeAsRead(const std::string& key) { guessed_.insert(key); }

  /// Returns whether no error was reported for any of these keys, so that checks may use their
  /// values.
  bool Good(std::initializer_list<std::string> keys) const;

  /// Marks the value of `key` as unusable. The reason is reported elsewhere.
  void Doubt(const std::string& key) { bad_.insert(key); }

  /// Returns whether this key or table was written.
  bool Knows(const std::string& key) const { return places_.contains(key); }

  /// Returns the key that was written later, `first` if equal: the command line comes after the
  /// file, and the file after those it extends. The later key is the likelier mistake if the two do
  /// not fit.
  const std::string& Later(const std::string& first, const std::string& second) const;

  const std::vector<ConfigError>& errors() const { return errors_; }

 private:
  Place PlaceOf(const std::string& key) const;
  int LayerOf(const std::string& key) const;

  std::string file_;
  std::map<std::string, Place> places_;
  std::set<std::string> bad_;
  std::set<std::string> guessed_;
  std::vector<ConfigError> errors_;
};

}  // namespace troupe
