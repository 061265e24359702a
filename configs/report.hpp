// Places and errors of a configuration. A report collects errors and records which keys have usable
// values.
#pragma once

#include <initializer_list>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// The place of a key or value. Lines and columns count from 1; 0 = the file as a whole.
struct Place {
  std::string file;  ///< for an argument its text, `--set run.steps=20`
  int line = 0;
  int column = 0;
  bool argument = false;  ///< on the command line: errors show no line and column
  friend auto operator<=>(const Place&, const Place&) = default;
};

/// "file:line:column", or "file" for an argument and when the line is 0.
std::string ToString(const Place& place);

/// One error. The text is one line: subject first, then the expected value, then the actual one.
struct ConfigError {
  Place place;
  std::string text;
  friend auto operator<=>(const ConfigError&, const ConfigError&) = default;
};

/// "file:line:column: text", or "file: text" when the line is 0.
std::string ToString(const ConfigError& error);

/// All errors of a configuration. what() has one line for each.
class ConfigErrors : public std::runtime_error {
 public:
  /// Sorts by place and drops repetitions.
  explicit ConfigErrors(std::vector<ConfigError> errors);
  const std::vector<ConfigError>& errors() const { return errors_; }

 private:
  std::vector<ConfigError> errors_;
};

class Report {
 public:
  explicit Report(std::string file) : file_(std::move(file)) {}

  /// Records that the key or table `key` (dotted) is at `place`.
  void Know(const std::string& key, const Place& place) { places_[key] = place; }

  /// Adds `key: text` at the key's place, or at the innermost enclosing table that was written.
  void Add(const std::string& key, const std::string& text) { AddAt(key, PlaceOf(key), text); }
  /// Like `Add`, at another place, such as one element of a list.
  void AddAt(const std::string& key, const Place& place, const std::string& text);

  /// Adds `text` at the first of `keys` unless `holds`, or an error was reported for one of them.
  void Expect(bool holds, std::initializer_list<std::string> keys, const std::string& text);

  struct KeyError {
    std::string key;
    std::string text;
  };
  /// Adds the error of the key that was written later (see Later), for two keys that do not fit.
  void AddAtLater(const KeyError& first, const KeyError& second);

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
