#include "checkpoint/weights_folder.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <sys/stat.h>
#include <utility>

#include "files/strict_json.hpp"
#include "files/text_file.hpp"
#include "models/model_folder.hpp"
#include "modules/tensor_pieces.hpp"
#include "plan/stage_parts.hpp"
#include "trace/mapped_memory.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOneFile = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr std::size_t kMaxIndexBytes = std::size_t{64} << 20U;

[[noreturn]] void FailAt(const std::string& path, const std::string& what) {
  throw std::runtime_error(path + ": " + what);
}

/// Whether `name` names a file of the folder itself.
bool IsPlain(const std::string& name) {
  return !name.empty() && name.front() != '.' && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

}  // namespace

WeightsFolder::WeightsFolder(const std::string& folder) : folder_(folder) {
  const std::string index = (fs::path(folder) / kIndex).string();
  if (WhyNotOpened(index).empty()) {
    OpenIndexed(index);
  } else if (WhyNotOpened((fs::path(folder) / kOneFile).string()).empty()) {
    Open(kOneFile);
  } else {
    FailAt(folder, std::string("expected ") + kOneFile + " or " + kIndex + ", found neither");
  }
}

void WeightsFolder::Open(const std::string& name) {
  const std::string path = (fs::path(folder_) / name).string();
  if (const std::string reason = WhyNotOpened(path); !reason.empty()) FailAt(path, reason);
  const auto& file = files_.emplace_back(std::make_unique<SafetensorsReader>(path));
  for (const TensorEntry& entry : file->entries()) {
    const auto [place, added] = places_.try_emplace(entry.name, Place{file.get(), &entry});
    if (added) continue;
    FailAt(path, "tensor " + QuoteText(entry.name) + " is also in " + place->second.file->path());
  }
}

void WeightsFolder::OpenIndexed(const std::string& index) {
  const TextFile text = ReadTextFile(index, kMaxIndexBytes, "expected at most 64 MiB");
  if (!text.failure.empty()) FailAt(index, text.failure);
  std::map<std::string, std::string> files;  // by tensor
  try {
    const nlohmann::json json = ParseStrictJson(text.text, "the index", 4);
    const auto map = json.find("weight_map");
    if (map == json.end() || !map->is_object()) FailReading("weight_map: expected an object");
    for (const auto& [tensor, file] : map->items()) {
      if (!file.is_string() || !IsPlain(file.get<std::string>())) {
        FailReading("tensor " + QuoteText(tensor) + ": expected the name of a file in the folder");
      }
      files[tensor] = file.get<std::string>();
    }
  } catch (const std::runtime_error& error) {
    FailAt(index, error.what());
  }
  std::map<std::string, bool> opened;
  for (const auto& [tensor, file] : files) {
    if (std::exchange(opened[file], true)) continue;
    Open(file);
  }
  for (const auto& [tensor, file] : files) {
    const auto place = places_.find(tensor);
    const bool there =
        place != places_.end() && fs::path(place->second.file->path()).filename().string() == file;
    if (!there) FailAt(index, "tensor " + QuoteText(tensor) + " is not in " + QuoteText(file));
  }
}

const TensorEntry* WeightsFolder::Find(const std::string& name) const {
  const auto place = places_.find(name);
  return place == places_.end() ? nullptr : place->second.entry;
}

void WeightsFolder::Require(const std::string& name, const Shape& shape,
                            const std::string& whose) const {
  const auto place = places_.find(name);
  if (place == places_.end()) {
    FailAt(folder_, "expected tensor " + QuoteText(name) + " for " + whose + ", found none");
  }
  const auto& [file, entry] = place->second;
  const std::string tensor = "tensor " + QuoteText(name);
  if (entry->shape != shape) {
    FailAt(file->path(), tensor + ": expected " + ToString(shape) + " for " + whose + ", got " +
                             ToString(entry->shape));
  }
  if (!IsFloating(entry->type)) {
    FailAt(file->path(), tensor + ": expected F64, F32, F16 or BF16, got " + ToString(entry->type));
  }
}

void WeightsFolder::Read(const std::string& name, const TensorPiece& piece) const {
  Require(name, piece.global_shape, piece.name);
  const SafetensorsReader* const file = places_.at(name).file;
  const TensorEntry* const entry = places_.at(name).entry;
  const MappedMemory memory = MappedMemory::Open(file->path());
  const std::uint64_t begin = file->data_begin() + entry->begin;
  if (memory.size() < file->data_begin() + entry->end) {
    FailAt(file->path(), "it has shrunk while it was read");
  }
  const std::size_t stored = SizeOf(entry->type);
  const std::size_t held = SizeOf(piece.value.dtype());
  std::byte* const target = piece.value.data();
  ForEachRun(piece, [&](std::int64_t first, std::int64_t at, std::int64_t count) {
    ConvertFloats(entry->type, memory.data() + begin + static_cast<std::size_t>(at) * stored,
                  static_cast<std::size_t>(count), piece.value.dtype(),
                  target + static_cast<std::size_t>(first) * held);
  });
  num_bytes_read_ += static_cast<std::uint64_t>(piece.value.num_elements()) * stored;
  // A page that another program cut off reads as zeros.
  struct stat now {};
  if (stat(file->path().c_str(), &now) != 0 ||
      static_cast<std::uint64_t>(now.st_size) < file->data_begin() + entry->end) {
    FailAt(file->path(), "it has shrunk while it was read");
  }
}

bool ReadsWeights(const Config& config) {
  return std::ranges::any_of(config.modules, [](const auto& m) { return m.weights.has_value(); });
}

namespace {

/// The folders that modules start from, each opened once.
class Folders {
 public:
  explicit Folders(const Config& config) : config_(config) {}

  /// Calls `visit(folder, name there)` if the parameter `own` ("language.norm.weight") comes from a
  /// folder.
  template <class Visit>
  void Find(const std::string& own, Visit visit) {
    const std::string name = own.substr(0, own.find('.'));
    const ModuleConfig* const module = config_.Find(name);
    if (module == nullptr || !module->weights) return;  // or a projector
    auto& folder = folders_[*module->weights];
    if (folder == nullptr) {
      folder = std::make_unique<WeightsFolder>(HuggingFaceFolder(*module->weights));
    }
    const ModuleKind& kind = module->model.kind();
    const ForeignNames* const names =
        FindNames(kind, [&](const std::string& tensor) { return folder->Has(tensor); });
    if (names == nullptr) {
      FailAt(folder->folder(), "expected the tensors of a \"" + std::string(kind.word) +
                                   "\", found none that ends in " +
                                   std::string(kind.foreign_probe));
    }
    visit(*folder, NameIn(*names, std::string_view(own).substr(name.size() + 1)));
  }

 private:
  const Config& config_;
  std::map<std::string, std::unique_ptr<WeightsFolder>> folders_;  ///< by `weights`
};

}  // namespace

void CheckWeights(const Config& config) {
  Folders folders(config);
  try {
    for (const ModuleConfig& module : config.modules) {
      if (module.inline_in) continue;  // among the parameters of its host
      for (int pp = 0; pp < module.num_stages(); ++pp) {
        for (const ParameterSpec& spec : StageParameters(config, module.name, pp)) {
          folders.Find(spec.name, [&](const WeightsFolder& folder, const std::string& name) {
            folder.Require(name, spec.shape, spec.name);
          });
        }
      }
    }
  } catch (const ModelFolderError&) {
    throw;
  } catch (const std::runtime_error& error) {
    throw ModelFolderError(error.what());
  }
}

void ReadWeights(const Config& config, const std::vector<TensorPiece>& pieces) {
  Folders folders(config);
  for (const TensorPiece& piece : pieces) {
    folders.Find(piece.name, [&](const WeightsFolder& folder, const std::string& name) {
      folder.Read(name, piece);
    });
  }
}

}  // namespace troupe
