#include "checkpoint/export_files.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "files/text_file.hpp"
#include "layout/text.hpp"

namespace troupe {

namespace fs = std::filesystem;

namespace {

/// Divides tensors into the files in which they are in `places`, file by tensor.
std::vector<ExportedFile> ByPlace(std::vector<ExportedTensor> tensors,
                                  const std::map<std::string, std::string>& places) {
  std::map<std::string, ExportedFile> files;
  for (ExportedTensor& tensor : tensors) {
    ExportedFile& file = files[places.at(tensor.name)];
    file.name = places.at(tensor.name);
    file.tensors.push_back(std::move(tensor));
  }
  std::vector<ExportedFile> result;
  for (auto& [name, file] : files) result.push_back(std::move(file));
  return result;
}

/// Returns the name for the tensors of a file of a folder: "model-00001-of-00002.safetensors" for
/// ".../pytorch_model-00001-of-00002.bin".
std::string SafetensorsName(const fs::path& path) {
  constexpr std::string_view kTorch = "pytorch_";
  const std::string stem = path.stem().string();
  return (stem.starts_with(kTorch) ? stem.substr(kTorch.size()) : stem) + ".safetensors";
}

/// Divides tensors into files of limited size, in their order.
std::vector<ExportedFile> BySize(std::vector<ExportedTensor> tensors) {
  std::vector<ExportedFile> files(1);
  std::uint64_t bytes = 0;
  for (ExportedTensor& tensor : tensors) {
    const std::uint64_t size =
        static_cast<std::uint64_t>(NumElements(tensor.shape)) * SizeOf(tensor.type);
    if (bytes > 0 && bytes + size > kMaxExportedFile) {
      files.emplace_back();
      bytes = 0;
    }
    bytes += size;
    files.back().tensors.push_back(std::move(tensor));
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    files[i].name = Formatted("model-%05d-of-%05d.safetensors", static_cast<int>(i + 1),
                              static_cast<int>(files.size()));
  }
  return files;
}

}  // namespace

std::vector<ExportedFile> Divide(std::vector<ExportedTensor> tensors, const WeightsFolder* source) {
  std::map<std::string, std::string> places;
  if (source != nullptr) {
    for (const auto& file : source->files()) {
      const std::string name = SafetensorsName(fs::path(file->path));
      for (const TensorEntry& entry : file->entries) places[entry.name] = name;
    }
  }
  const bool as_source = std::ranges::all_of(
      tensors, [&](const ExportedTensor& tensor) { return places.contains(tensor.name); });
  std::vector<ExportedFile> files =
      as_source ? ByPlace(std::move(tensors), places) : BySize(std::move(tensors));
  if (files.size() == 1) files.front().name = "model.safetensors";  // found without an index
  return files;
}

void AddSideFiles(const std::string& source, bool tokenizer, ExportedFolder& folder) {
  if (source.empty()) return;
  std::vector<const char*> names = {"preprocessor_config.json", "processor_config.json"};
  if (tokenizer) {
    names.insert(names.end(),
                 {"generation_config.json", "tokenizer.json", "tokenizer.model",
                  "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
                  "chat_template.json", "chat_template.jinja", "vocab.json", "merges.txt"});
  }
  for (const char* name : names) {
    const std::string path = (fs::path(source) / name).string();
    if (!WhyNotOpened(path).empty()) continue;
    const bool there = std::ranges::any_of(folder.copies, [&](const std::string& copied) {
      return fs::path(copied).filename() == name;
    });
    if (!there && !folder.texts.contains(name)) folder.copies.push_back(path);
  }
}

void AddTokenizer(const std::string& source, const std::vector<AddedToken>& added,
                  ExportedFolder& folder) {
  const auto write = [&](const std::string& name, auto text_of) {
    const std::string path = (fs::path(source) / name).string();
    if (source.empty() || added.empty() || !WhyNotOpened(path).empty()) return;
    folder.texts[name] = text_of(ReadWholeFile(path));
  };
  write("tokenizer.json", [&](const std::string& text) { return WithAddedTokens(text, added); });
  write("tokenizer_config.json",
        [&](const std::string& text) { return WithPadToken(text, added.back().text); });
  AddSideFiles(source, /*tokenizer=*/true, folder);
}

}  // namespace troupe
