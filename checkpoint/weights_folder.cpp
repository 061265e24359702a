#include "checkpoint/weights_folder.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "checkpoint/safetensors.hpp"
#include "checkpoint/torch_file.hpp"
#include "checkpoint/weights_run.hpp"
#include "files/sha256.hpp"
#include "files/strict_json.hpp"
#include "files/text_file.hpp"
#include "models/model_folder.hpp"
#include "modules/tensor_pieces.hpp"
#include "plan/stage_parts.hpp"
#include "trace/mapped_memory.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIndexEnding = ".index.json";
constexpr std::size_t kMaxIndexBytes = std::size_t{64} << 20U;

[[noreturn]] void FailAt(const std::string& path, const std::string& what) {
  throw std::runtime_error(path + ": " + what);
}

/// Whether `name` names a file of the folder itself.
bool IsPlain(const std::string& name) {
  return !name.empty() && name.front() != '.' && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

/// Our spelling of a tensor's name.
std::string OwnSpelling(std::string name) {
  for (const ModuleKind* kind : Kinds()) {
    if (kind->own_spelling != nullptr) name = kind->own_spelling(name);
  }
  return name;
}

}  // namespace

WeightsFolder::WeightsFolder(const std::string& folder) : folder_(folder) {
  std::error_code unknown;
  if (!fs::is_directory(folder, unknown)) FailAt(folder, "expected a folder, found none");
  const auto is_there = [](const std::string& path) { return WhyNotOpened(path).empty(); };
  const auto open = [&](const std::string& name, ReadFile read) {
    const std::string path = (fs::path(folder) / name).string();
    if (is_there(path)) {
      Open(name, read);
    } else if (is_there(path + kIndexEnding)) {
      OpenIndexed(path + kIndexEnding, read);
    } else {
      return false;
    }
    return true;
  };
  if (open("model.safetensors", ReadSafetensorsFile)) return;
  if (open("pytorch_model.bin", ReadTorchFile)) return;
  FailAt(folder,
         "expected model.safetensors, pytorch_model.bin or one of them with .index.json, "
         "found none");
}

void WeightsFolder::Open(const std::string& name, ReadFile read) {
  const std::string path = (fs::path(folder_) / name).string();
  if (const std::string reason = WhyNotOpened(path); !reason.empty()) FailAt(path, reason);
  TensorFile opened = read(path);
  for (TensorEntry& entry : opened.entries) entry.name = OwnSpelling(entry.name);
  const auto& file = files_.emplace_back(std::make_unique<const TensorFile>(std::move(opened)));
  for (const TensorEntry& entry : file->entries) {
    const auto [place, added] = places_.try_emplace(entry.name, Place{file.get(), &entry});
    if (added) continue;
    FailAt(path, TensorTitle(entry.name) + " is also in " + place->second.file->path);
  }
}

void WeightsFolder::OpenIndexed(const std::string& index, ReadFile read) {
  const TextFile text = ReadTextFile(index, kMaxIndexBytes, "expected at most 64 MiB");
  if (!text.failure.empty()) FailAt(index, text.failure);
  std::map<std::string, std::string> files;  // by tensor
  try {
    const nlohmann::json json = ParseStrictJson(text.text, "the index", 4);
    const auto map = json.find("weight_map");
    if (map == json.end() || !map->is_object()) FailReading("weight_map: expected an object");
    for (const auto& [tensor, file] : map->items()) {
      if (!file.is_string() || !IsPlain(file.get<std::string>())) {
        FailReading(TensorTitle(tensor) + ": expected the name of a file in the folder");
      }
      files[OwnSpelling(tensor)] = file.get<std::string>();
    }
  } catch (const std::runtime_error& error) {
    FailAt(index, error.what());
  }
  std::map<std::string, bool> opened;
  for (const auto& [tensor, file] : files) {
    if (std::exchange(opened[file], true)) continue;
    Open(file, read);
  }
  for (const auto& [tensor, file] : files) {
    const auto place = places_.find(tensor);
    const bool there =
        place != places_.end() && fs::path(place->second.file->path).filename().string() == file;
    if (!there) FailAt(index, TensorTitle(tensor) + " is not in " + QuoteText(file));
  }
}

/// Whether a tensor of `shape` can begin with the rows of one of `stored`.
static bool Grows(const Shape& stored, const Shape& shape) {
  return stored.size() == 2 && shape.size() == 2 && stored[0] > 0 && stored[0] < shape[0] &&
         stored[1] == shape[1];
}

void WeightsFolder::Require(const std::string& name, const Shape& shape, const std::string& whose,
                            bool may_grow) const {
  const auto place = places_.find(name);
  if (place == places_.end()) {
    FailAt(folder_, "expected tensor " + QuoteText(name) + " for " + whose + ", found none");
  }
  const auto& [file, entry] = place->second;
  const std::string tensor = TensorTitle(name);
  if (entry->shape != shape && !(may_grow && Grows(entry->shape, shape))) {
    FailAt(file->path, tensor + ": expected " + ToString(shape) + " for " + whose + ", got " +
                           ToString(entry->shape));
  }
  if (!IsFloating(entry->type)) {
    FailAt(file->path, tensor + ": expected F64, F32, F16 or BF16, got " + ToString(entry->type));
  }
}

/// The means of `count` columns, from `first` on, of a stored matrix.
static std::vector<double> ColumnMeans(const TensorEntry& entry, const std::byte* stored,
                                       std::int64_t first, std::int64_t count) {
  const auto columns = static_cast<std::size_t>(count);
  std::vector<double> row(columns);
  std::vector<double> means(columns, 0.0);
  for (std::int64_t r = 0; r < entry.shape[0]; ++r) {
    const auto at = static_cast<std::size_t>(r * entry.shape[1] + first);
    ConvertFloats(entry.type, stored + at * SizeOf(entry.type), columns, StoredType::kFloat64,
                  reinterpret_cast<std::byte*>(row.data()));
    for (std::size_t c = 0; c < columns; ++c) means[c] += row[c];
  }
  for (double& mean : means) mean /= static_cast<double>(entry.shape[0]);
  return means;
}

void WeightsFolder::Read(const std::string& name, const TensorPiece& piece, bool may_grow) const {
  Require(name, piece.global_shape, piece.name, may_grow);
  const TensorFile* const file = places_.at(name).file;
  const TensorEntry* const entry = places_.at(name).entry;
  const MappedMemory memory = MappedMemory::Open(file->path);
  if (memory.size() < entry->end) FailAt(file->path, "it has shrunk while it was read");
  const std::size_t stored = SizeOf(entry->type);
  const std::size_t held = SizeOf(piece.value.dtype());
  std::byte* const target = piece.value.data();
  const std::int64_t num_stored = NumElements(entry->shape);
  std::vector<double> means;  // of the columns of the piece
  ForEachRun(piece, [&](std::int64_t first, std::int64_t at, std::int64_t count) {
    const StoredType to = StoredTypeOf(piece.value.dtype());
    std::byte* const run = target + static_cast<std::size_t>(first) * held;
    if (at < num_stored) {
      ConvertFloats(entry->type,
                    memory.data() + entry->begin + static_cast<std::size_t>(at) * stored,
                    static_cast<std::size_t>(count), to, run);
      return;
    }
    if (means.empty()) {
      means = ColumnMeans(*entry, memory.data() + entry->begin, piece.offsets[1], count);
    }
    ConvertFloats(StoredType::kFloat64, reinterpret_cast<const std::byte*>(means.data()),
                  means.size(), to, run);
  });
  num_bytes_read_ += static_cast<std::uint64_t>(piece.value.num_elements()) * stored;
  if (memory.lost()) FailAt(file->path, "cannot be read, or has shrunk while it was read");
}

namespace {

bool StartsFromFolder(const std::optional<std::string>& weights) {
  return weights && !HuggingFaceFolder(*weights).empty();
}

/// The place of a parameter in a folder.
struct ForeignTensor {
  const WeightsFolder& folder;
  std::string name;
  bool may_grow = false;  ///< the folder may know fewer tokens
};

/// The folders that modules and projectors start from, each opened once.
class Folders {
 public:
  explicit Folders(const Config& config) : config_(config) {
    for (const auto& [name, spec] : AllParameters(config)) {
      if (spec.from_folder) in_folders_.insert(name);
    }
    for (const EdgeConfig& edge : config.edges) {
      if (!HasNewline(config, edge) || !StartsFromFolder(edge.through->weights)) continue;
      const WeightsFolder& folder = Open(*edge.through->weights);
      if (NewlineIn(folder) || IsLlavaNext(folder.folder())) {
        in_folders_.insert(NewlineName(edge));
      }
    }
  }

  /// Returns where the parameter `own` ("language.norm.weight") comes from; nothing if its module or
  /// projector starts from random values.
  std::optional<ForeignTensor> Find(const std::string& own) {
    if (!in_folders_.contains(own)) return std::nullopt;
    const std::string part = own.substr(0, own.find('.'));
    const std::string_view name = std::string_view(own).substr(part.size() + 1);
    if (const ModuleConfig* const module = config_.Find(part)) {
      const WeightsFolder& folder = Open(*module->weights);
      const ModuleKind& kind = module->model.kind();
      const bool may_grow =
          std::ranges::find(kind.foreign_vocabulary, name) != kind.foreign_vocabulary.end();
      return ForeignTensor{folder, NameOfModule(kind, folder, name), may_grow};
    }
    const auto edge = std::ranges::find(config_.edges, part, ProjectorName);
    const WeightsFolder& folder = Open(*edge->through->weights);
    return ForeignTensor{folder, NameOfProjector(edge->through->kind, folder, name)};
  }

 private:
  const WeightsFolder& Open(const std::string& weights) {
    auto& folder = folders_[weights];
    if (folder == nullptr) folder = std::make_unique<WeightsFolder>(HuggingFaceFolder(weights));
    return *folder;
  }

  static std::string NameOfModule(const ModuleKind& kind, const WeightsFolder& folder,
                                  std::string_view own) {
    const ForeignNames* const names =
        FindNames(kind, [&](const std::string& tensor) { return folder.Has(tensor); });
    if (names != nullptr) return NameIn(*names, own);
    FailAt(folder.folder(), "expected the tensors of a \"" + std::string(kind.word) +
                                "\", found none such as " +
                                NameIn(kind.foreign_names.back(), kind.foreign_probe));
  }

  static std::optional<std::string> NewlineIn(const WeightsFolder& folder) {
    return ForeignNewlineName([&](const std::string& tensor) { return folder.Has(tensor); });
  }

  static std::string NewlineOf(const WeightsFolder& folder) {
    if (const auto name = NewlineIn(folder)) return *name;
    FailAt(folder.folder(), "expected tensor " + QuoteText(std::string(kNewline)) +
                                ", the row after each line of an image in tiles, found none" +
                                (IsLlavaNext(folder.folder())
                                     ? ""
                                     : "; a projector that trains starts it from random values"));
  }

  static std::string NameOfProjector(ProjectorKind kind, const WeightsFolder& folder,
                                     std::string_view own) {
    if (own == kNewline) return NewlineOf(folder);
    const auto name = ForeignProjectorName(
        kind, own, [&](const std::string& tensor) { return folder.Has(tensor); });
    if (name) return *name;
    FailAt(folder.folder(),
           "expected the tensors of a projector, found none such as multi_modal_projector." +
               std::string(own));
  }

  const Config& config_;
  std::set<std::string> in_folders_;                               ///< parameters
  std::map<std::string, std::unique_ptr<WeightsFolder>> folders_;  ///< by `weights`
};

std::string DigestOf(const WeightsFolder& folder) {
  constexpr std::uint64_t kSample = 4096;
  Sha256 sum;
  for (const auto& file : folder.files()) {
    std::string places;
    for (const TensorEntry& entry : file->entries) {
      places += entry.name + " " + ToString(entry.type) + ToString(entry.shape) +
                std::to_string(entry.begin) + " ";
    }
    sum.Update(std::as_bytes(std::span(places)));
    const MappedMemory memory = MappedMemory::Open(file->path);
    const std::span<const std::byte> all(memory.data(), memory.size());
    const std::uint64_t first = file->entries.empty() ? 0 : file->entries.front().begin;
    const auto data = all.subspan(std::min<std::uint64_t>(first, all.size()));
    sum.Update(data.first(std::min<std::uint64_t>(kSample, data.size())));
    sum.Update(all.last(std::min<std::uint64_t>(kSample, all.size())));
  }
  return sum.Hex().substr(0, 16);
}

}  // namespace

void CheckWeights(const Config& config) {
  try {
    Folders folders(config);
    for (const auto& [name, spec] : AllParameters(config)) {
      if (const auto found = folders.Find(name)) {
        found->folder.Require(found->name, spec.shape, name, found->may_grow);
      }
    }
    WeightsRuns runs(config);
    for (const auto& [name, spec] : AllParameters(config)) runs.Require(name, spec.shape);
  } catch (const ModelFolderError&) {
    throw;
  } catch (const std::runtime_error& error) {
    throw ModelFolderError(error.what());
  }
}

std::vector<std::string> RandomNewlines(const Config& config) {
  Folders folders(config);
  std::vector<std::string> names;
  for (const EdgeConfig& edge : config.edges) {
    const bool starts = HasNewline(config, edge) && StartsFromFolder(edge.through->weights);
    if (starts && !folders.Find(NewlineName(edge))) names.push_back(NewlineName(edge));
  }
  return names;
}

/// Returns the keys that name folders, with their values.
static std::vector<std::pair<std::string, std::string>> WeightsKeys(const Config& config) {
  std::vector<std::pair<std::string, std::string>> keys;
  for (const ModuleConfig& module : config.modules) {
    if (module.weights) keys.emplace_back("modules." + module.name + ".weights", *module.weights);
  }
  for (const EdgeConfig& edge : config.edges) {
    if (!edge.through || !edge.through->weights) continue;
    keys.emplace_back("edges." + edge.from + "." + edge.to + ".through.weights",
                      *edge.through->weights);
  }
  return keys;
}

bool ReadsWeights(const Config& config) { return !WeightsKeys(config).empty(); }

std::string WeightsDigests(const Config& config) {
  std::string lines;
  for (const auto& [key, weights] : WeightsKeys(config)) {
    try {
      const WeightsFolder folder(HuggingFaceFolder(weights));
      lines += key + " (headers and samples) = sha256 " + DigestOf(folder) + "\n";
    } catch (const std::runtime_error&) {
      continue;
    }
  }
  return lines;
}

void ReadWeights(const Config& config, const std::vector<TensorPiece>& pieces) {
  Folders folders(config);
  for (const TensorPiece& piece : pieces) {
    if (const auto found = folders.Find(piece.name)) {
      found->folder.Read(found->name, piece, found->may_grow);
    }
  }
  WeightsRuns runs(config);
  for (const TensorPiece& piece : pieces) runs.Read(piece);
}

}  // namespace troupe
