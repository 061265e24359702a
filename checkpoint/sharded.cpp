#include "checkpoint/sharded.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <utility>

#include "files/file_error.hpp"
#include "files/strict_json.hpp"
#include "modules/tensor_pieces.hpp"
#include "transport/failure.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

/// Enough digits to distinguish two sums in a line.
constexpr std::size_t kShownDigits = 12;

constexpr std::array<TensorKind, 3> kStored = {TensorKind::kParameter, TensorKind::kFirstMoment,
                                               TensorKind::kSecondMoment};

/// Separates a tensor's name from the number of its piece, from the second piece in a file on.
constexpr char kPieceMark = '#';

/// The names under which the pieces of a program are stored.
class StoredNames {
 public:
  std::string Next(TensorKind kind, const std::string& name) {
    const std::string stored = ToString(kind) + "/" + name;
    const int number = numbers_[stored]++;
    return number == 0 ? stored : stored + kPieceMark + std::to_string(number);
  }

 private:
  std::map<std::string, int> numbers_;
};

/// The place of a piece as text. Reading compares this text with the stored one.
std::string PlaceOf(const TensorPiece& piece) {
  return nlohmann::json({{"global_shape", piece.global_shape}, {"offsets", piece.offsets}}).dump();
}

/// A piece of the program and the file that holds its value.
struct Wanted {
  TensorKind kind;
  TensorPiece piece;  ///< as in the program
  std::string stored_name;
  DType type;                                                 ///< of its value
  std::shared_ptr<const SafetensorsReader> source = nullptr;  ///< null until it is found
};

std::vector<Wanted> AllWanted(const StageProgram& program) {
  std::vector<Wanted> all;
  StoredNames names;
  for (const TensorKind kind : kStored) {
    for (TensorPiece& piece : program.Tensors(kind)) {
      if (piece.in_folder) continue;
      std::string stored_name = names.Next(kind, piece.name);
      const DType type = piece.value.dtype();
      all.push_back({.kind = kind,
                     .piece = std::move(piece),
                     .stored_name = std::move(stored_name),
                     .type = type});
    }
  }
  return all;
}

/// The reason why `entry` is not the piece; empty if it is.
std::string Mismatch(const SafetensorsReader& file, const TensorEntry& entry,
                     const Wanted& wanted) {
  const auto found = file.metadata().find(wanted.stored_name);
  const std::string place = found == file.metadata().end() ? "" : found->second;
  const std::string expected = PlaceOf(wanted.piece);
  const StoredType type = StoredTypeOf(wanted.piece.value.dtype());
  if (entry.type == type && entry.shape == wanted.piece.value.shape() && place == expected) {
    return "";
  }
  std::string shape = ToString(entry.shape);
  if (entry.shape.size() > 8) shape = std::to_string(entry.shape.size()) + " dimensions";
  return "tensor " + wanted.stored_name + ": expected " + ToString(wanted.piece.value.shape()) +
         " of " + ToString(type) + " at " + expected + ", but " + file.path() + " has " + shape +
         " of " + ToString(entry.type) + " at " + (place.empty() ? "no place" : QuoteText(place));
}

/// A sound checkpoint of another layout, or possibly a damaged one.
struct OtherLayout : std::runtime_error {
  explicit OtherLayout(const std::string& what)
      : std::runtime_error(what + ": the checkpoint was written in another layout") {}
};

/// A readable file whose contents have changed since it was written.
struct DamagedShard : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void CheckMetadata(const SafetensorsReader& reader, const char* key, const std::string& expected) {
  const auto found = reader.metadata().find(key);
  const bool has = found != reader.metadata().end();
  if (has && found->second == expected) return;
  throw DamagedShard(
      reader.path() + ": its header has " +
      (has ? std::string(key) + " " + QuoteText(found->second) : std::string("no ") + key) +
      ", expected " + QuoteText(expected));
}

/// Throws DamagedShard unless `sha256`, of the bytes that `reader` has read, is the manifest's.
void CheckSha256(const SafetensorsReader& reader, const CheckpointFile& file,
                 const std::string& sha256) {
  if (sha256 == file.sha256) return;
  throw DamagedShard(reader.path() + ": damaged since it was written: its SHA-256 is " +
                     sha256.substr(0, kShownDigits) + "..., expected " +
                     file.sha256.substr(0, kShownDigits) + "...");
}

/// The checkpoint's files, by its manifest.
class Folder {
 public:
  explicit Folder(std::string path) : path_(std::move(path)) {
    auto manifest = ReadManifest(path_);
    if (!manifest)
      throw std::runtime_error(path_ + ": no manifest.json: not a complete checkpoint");
    step_ = manifest->step;
    for (CheckpointFile& file : manifest->files) {
      std::string name = file.name;
      files_.emplace(std::move(name), std::move(file));
    }
  }

  const std::string& path() const { return path_; }
  const std::map<std::string, CheckpointFile>& files() const { return files_; }  ///< by name

  std::shared_ptr<const SafetensorsReader> Open(const std::string& name) {
    opened_.insert(name);
    return OpenShardFile(path_, step_, files_.at(name));
  }

  /// Verifies all opened files, since a damaged name or place of a tensor looks like another
  /// layout.
  void CheckOpened() const {
    for (const std::string& name : opened_) {
      const auto reader = OpenShardFile(path_, step_, files_.at(name));
      Sha256 sum;
      reader->ReadAll(sum, [](const TensorEntry&, const Buffer&) {});
      CheckSha256(*reader, files_.at(name), sum.Hex());
    }
  }

 private:
  std::string path_;
  std::int64_t step_ = 0;
  std::map<std::string, CheckpointFile> files_;
  std::set<std::string> opened_;
};

/// Opens the shard's own file, which must hold exactly the shard's pieces.
std::shared_ptr<const SafetensorsReader> FindOwned(Folder& folder, const ShardAddress& shard,
                                                   std::vector<Wanted>& all) {
  const std::string name = ShardFileName(shard);
  if (!folder.files().contains(name)) {
    throw OtherLayout(folder.path() + ": expected a file " + name + ", the manifest lists none");
  }
  const auto file = folder.Open(name);
  std::map<std::string, const TensorEntry*> entries;
  for (const TensorEntry& entry : file->entries()) entries.emplace(entry.name, &entry);
  for (Wanted& wanted : all) {
    if (!wanted.piece.owner) continue;
    const auto found = entries.find(wanted.stored_name);
    if (found == entries.end()) {
      throw OtherLayout("tensor " + wanted.stored_name + ": expected " + Describe(wanted.piece) +
                        " in " + file->path() + ", which has none");
    }
    const std::string mismatch = Mismatch(*file, *found->second, wanted);
    if (!mismatch.empty()) throw OtherLayout(mismatch);
    wanted.source = file;
    entries.erase(found);
  }
  if (!entries.empty()) {
    throw OtherLayout(file->path() + ": has tensor " + QuoteText(entries.begin()->first) +
                      ", which " + ToString(shard) + " does not own");
  }
  return file;
}

/// File names, the most likely owners first: replica 0 of the same stage and tp rank,
/// the rest of the stage, the rest of the module, others.
std::vector<std::string> OtherFiles(const Folder& folder, const ShardAddress& shard) {
  ShardAddress first = shard;
  first.dp = 0;
  first.cp = 0;
  const std::string module = shard.module + ".s";
  const std::string stage = module + std::to_string(shard.pp) + "-";
  const auto distance = [&](const std::string& name) {
    if (name == ShardFileName(first)) return 0;
    if (name.starts_with(stage)) return 1;
    return name.starts_with(module) ? 2 : 3;
  };
  std::vector<std::string> names;
  for (const auto& [name, file] : folder.files()) {
    if (name != ShardFileName(shard)) names.push_back(name);
  }
  std::ranges::stable_sort(names, {}, distance);
  return names;
}

/// Finds the pieces that other shards own, and opens no more files than necessary.
void FindCopied(Folder& folder, const ShardAddress& shard, std::vector<Wanted>& all) {
  std::map<std::string, Wanted*> missing;
  for (Wanted& wanted : all) {
    if (!wanted.source) missing.emplace(wanted.stored_name, &wanted);
  }
  std::map<std::string, std::string> mismatches;  // by stored name: the closest candidate
  for (const std::string& name : OtherFiles(folder, shard)) {
    if (missing.empty()) return;
    const auto file = folder.Open(name);
    for (const TensorEntry& entry : file->entries()) {
      const auto found = missing.find(entry.name);
      if (found == missing.end()) continue;
      std::string mismatch = Mismatch(*file, entry, *found->second);
      if (!mismatch.empty()) {
        mismatches.emplace(entry.name, std::move(mismatch));
        continue;
      }
      found->second->source = file;
      missing.erase(found);
    }
  }
  if (missing.empty()) return;
  const Wanted& wanted = *missing.begin()->second;
  const auto mismatch = mismatches.find(wanted.stored_name);
  if (mismatch != mismatches.end()) throw OtherLayout(mismatch->second);
  throw OtherLayout("tensor " + wanted.stored_name + ": expected " + Describe(wanted.piece) +
                    " in a file of " + folder.path() + ", none has it");
}

/// Returns values as a program keeps them: bfloat16 is loaded as float32.
Buffer InType(DType type, Buffer value) {
  if (value.dtype() == type) return value;
  Buffer converted = Buffer::Allocate(value.shape(), type);
  ConvertFloats(StoredTypeOf(value.dtype()), value.data(),
                static_cast<std::size_t>(value.num_elements()), StoredTypeOf(type),
                converted.data());
  return converted;
}

/// Sets the program's pieces of `kind`: from `all` if present there, else from other files.
void GiveKind(StageProgram& program, TensorKind kind, std::vector<Wanted>& all) {
  std::vector<TensorPiece> pieces;
  for (Wanted& wanted : all) {
    if (wanted.kind != kind) continue;
    pieces.push_back(std::move(wanted.piece));
    TensorPiece& piece = pieces.back();
    if (!piece.owner) piece.value = InType(wanted.type, wanted.source->Read(wanted.stored_name));
  }
  program.SetTensors(kind, pieces);
}

/// Reads the shard's own file once, in the order of its bytes, and sets every kind of tensors in
/// the program as soon as it is complete. Returns the SHA-256 of the bytes.
std::string GiveAll(StageProgram& program, const SafetensorsReader& own, std::vector<Wanted>& all) {
  std::map<std::string, Wanted*> owned;
  std::map<TensorKind, std::size_t> missing;
  for (const TensorKind kind : kStored) missing[kind] = 0;
  for (Wanted& wanted : all) {
    if (!wanted.piece.owner) continue;
    owned.emplace(wanted.stored_name, &wanted);
    ++missing[wanted.kind];
  }
  for (const auto& [kind, count] : missing) {
    if (count == 0) GiveKind(program, kind, all);
  }
  Sha256 sum;
  own.ReadAll(sum, [&](const TensorEntry& entry, Buffer value) {
    Wanted& wanted = *owned.at(entry.name);
    wanted.piece.value = InType(wanted.type, std::move(value));
    if (--missing[wanted.kind] == 0) GiveKind(program, wanted.kind, all);
  });
  return sum.Hex();
}

}  // namespace

std::optional<StoredPlace> ParseStoredPlace(const SafetensorsReader& file,
                                            const std::string& stored_name) {
  StoredPlace place;
  const std::size_t slash = stored_name.find('/');
  const auto* const kind = std::ranges::find_if(kStored, [&](TensorKind one) {
    return slash != std::string::npos && ToString(one) == stored_name.substr(0, slash);
  });
  if (kind == kStored.end()) return std::nullopt;
  place.kind = *kind;
  place.name = stored_name.substr(slash + 1, stored_name.rfind(kPieceMark) - slash - 1);
  const auto found = file.metadata().find(stored_name);
  const auto json = ParseOwnJson(found == file.metadata().end() ? "" : found->second);
  const Shape& shape = file.Find(stored_name)->shape;
  const auto read = [&](const char* key, std::vector<std::int64_t>& numbers) {
    if (!json.is_object() || !json.contains(key) || !json[key].is_array()) return false;
    for (const auto& item : json[key]) {
      if (!item.is_number_unsigned()) return false;
      numbers.push_back(item.get<std::int64_t>());
    }
    return numbers.size() == shape.size();
  };
  bool fits = read("global_shape", place.global_shape) && read("offsets", place.offsets);
  for (std::size_t d = 0; fits && d < shape.size(); ++d) {
    const std::int64_t whole = place.global_shape[d];
    fits = whole >= 0 && place.offsets[d] >= 0 && place.offsets[d] <= whole &&
           shape[d] <= whole - place.offsets[d];
  }
  if (fits) return place;
  throw std::runtime_error(file.path() + ": tensor " + QuoteText(stored_name) +
                           ": its metadata has no place in a larger tensor for " + ToString(shape));
}

std::shared_ptr<const SafetensorsReader> OpenShardFile(const std::string& folder, std::int64_t step,
                                                       const CheckpointFile& file) {
  CheckpointManifest one;
  one.files = {file};
  if (const auto fault = FirstFault(folder, one)) throw std::runtime_error(*fault);
  auto reader = std::make_shared<const SafetensorsReader>(folder + "/" + file.name);
  CheckMetadata(*reader, "step", std::to_string(step));
  CheckMetadata(*reader, "shard", file.name.substr(0, file.name.rfind('.')));
  return reader;
}

std::string WriteShard(const StageProgram& program, const ShardAddress& shard,
                       const std::string& folder, std::int64_t step) {
  std::vector<NamedTensor> tensors;
  StoredNames names;
  Metadata metadata = {{"shard", ShardName(shard)}, {"step", std::to_string(step)}};
  for (const TensorKind kind : kStored) {
    for (const TensorPiece& piece : program.Tensors(kind)) {
      if (!piece.owner || piece.in_folder) continue;
      const std::string name = names.Next(kind, piece.name);
      metadata[name] = PlaceOf(piece);
      tensors.push_back({.name = name, .value = piece.value});
    }
  }
  MakeFolders(folder);
  Sha256 sum;
  WriteSafetensors((fs::path(folder) / ShardFileName(shard)).string(), tensors, metadata, &sum);
  return sum.Hex();
}

void ReadShard(StageProgram& program, const ShardAddress& shard, const std::string& folder) {
  std::vector<Wanted> all = AllWanted(program);
  Folder files(folder);
  try {
    try {
      const auto own = FindOwned(files, shard, all);
      FindCopied(files, shard, all);
      CheckSha256(*own, files.files().at(ShardFileName(shard)), GiveAll(program, *own, all));
    } catch (const OtherLayout&) {
      files.CheckOpened();
      throw;
    }
  } catch (const DamagedShard& error) {
    throw FailureError(
        error.what() + ("; remove " + folder) + " to resume from the checkpoint before it",
        FailureKind::kDamaged);
  }
}

}  // namespace troupe
