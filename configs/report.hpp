// Collects what is wrong, finds its place, and knows which keys can be reasoned about.
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

  /// The key or table `key` (dotted) stands at `place`.
  void Know(const std::string& key, const Place& place) { places_[key] = place; }

  /// `key: text` at the key's place, or at the innermost enclosing table that was written.
  void Add(const std::string& key, const std::string& text);
  /// The same at a place of its own, such as one element of a list.
  void AddAt(const std::string& key, const Place& place, const std::string& text);

  /// What is reported of this key from here on leaves its value usable: it is a good guess.
  void TakeAsRead(const std::string& key) { guessed_.insert(key); }

  /// Whether nothing has been said against any of these keys, so that checks may use their values.
  bool Good(std::initializer_list<std::string> keys) const;

  /// The value of `key` is of no use, for a reason that is reported elsewhere.
  void Doubt(const std::string& key) { bad_.insert(key); }

  /// Whether somebody wrote this key or table.
  bool Knows(const std::string& key) const { return places_.contains(key); }

  /// Which of two keys was written later: on the command line, in the file itself, in what it
  /// extends; `first` of equals. It is the likelier mistake when the two do not fit.
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
