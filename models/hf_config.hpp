// A JSON file of a Hugging Face folder, such as config.json.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "kinds/foreign.hpp"

namespace troupe {

/// A key that the file leaves out, and the value of the family that replaces it.
struct DefaultedKey {
  std::string key;  ///< dotted: "text_config.hidden_size"
  std::string value;
};

/// The file, or one of its objects. The objects note their defaults in the file's list.
class HfConfig : public ForeignConfig {
 public:
  /// Throws ModelFolderError: DIR/NAME is missing, larger than 1 MiB, or not such a file.
  static HfConfig Read(const std::string& folder, const std::string& name = "config.json");
  HfConfig(HfConfig&&) noexcept;
  ~HfConfig() override;

  bool Has(const std::string& key) const override;
  bool IsNull(const std::string& key) const override;
  bool IsEmptyList(const std::string& key) const override;
  bool IsObject(const std::string& key) const override;
  std::int64_t Integer(const std::string& key, std::int64_t otherwise) const override;
  double Number(const std::string& key, double otherwise) const override;
  bool Flag(const std::string& key, bool otherwise) const override;
  std::string Word(const std::string& key, const std::string& otherwise) const override;
  std::array<double, 3> Channels(const std::string& key,
                                 const std::array<double, 3>& otherwise) const override;
  std::vector<IntegerPair> Pairs(const std::string& key,
                                 const std::vector<IntegerPair>& otherwise) const override;
  std::unique_ptr<const ForeignConfig> Part(const std::string& key) const override;
  std::string NameOf(const std::string& key) const override;

  const std::string& path() const;
  /// In the order in which they were asked for.
  std::vector<DefaultedKey> defaulted() const;

 private:
  struct File;
  struct Object;
  HfConfig(std::shared_ptr<File> file, std::unique_ptr<const Object> object);
  void NoteDefault(const std::string& key, std::string value) const;
  [[noreturn]] void RefuseType(const std::string& key, const char* expected) const;

  std::shared_ptr<File> file_;
  std::unique_ptr<const Object> object_;
};

}  // namespace troupe
