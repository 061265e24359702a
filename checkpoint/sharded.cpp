#include "checkpoint/sharded.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "checkpoint/saved_state.hpp"
#include "checkpoint/tensor_digest.hpp"
#include "files/file_error.hpp"
#include "files/output_file.hpp"
#include "files/strict_json.hpp"
#include "layout/text.hpp"
#include "modules/tensor_pieces.hpp"
#include "transport/failure.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

/// Separates a tensor's name from the number of its piece, from the second piece in a file on.
constexpr char kPieceMark = '#';

/// The names under which the pieces of a program are stored.
class StoredNames {
 public:
  std::string Next(TensorKind kind, const std::string& name) {
    const std::string stored = StoredName(kind, name);
    const int number = numbers_[stored]++;
    return number == 0 ? stored : stored + kPieceMark + std::to_string(number);
  }

 private:
  std::map<std::string, int> numbers_;
};

/// The place of a piece as text.
std::string PlaceOf(const TensorPiece& piece) {
  return nlohmann::json({{"global_shape", piece.global_shape}, {"offsets", piece.offsets}}).dump();
}

/// A readable file whose contents have changed since it was written.
struct DamagedShard : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Calls `read`; a damaged file becomes a failure that says how to go on. Whatever is wrong with a state
/// in memory, the job can go on without it.
template <class Read>
auto WithAdvice(const LoadOrder& order, Read read) {
  try {
    return read();
  } catch (const FailureError&) {
    throw;
  } catch (const DamagedShard& error) {
    const std::string advice =
        "; remove " + order.folder + " to resume from the checkpoint before it";
    throw FailureError(error.what() + (order.in_memory ? "" : advice), FailureKind::kDamaged);
  } catch (const std::runtime_error& error) {
    if (!order.in_memory) throw;
    throw FailureError(error.what(), FailureKind::kDamaged);
  }
}

void CheckMetadata(const SafetensorsReader& reader, const char* key, const std::string& expected) {
  const auto found = reader.metadata().find(key);
  const bool has = found != reader.metadata().end();
  if (has && found->second == expected) return;
  throw DamagedShard(
      reader.path() + ": its header has " +
      (has ? std::string(key) + " " + QuoteText(found->second) : std::string("no ") + key) +
      ", expected " + QuoteText(expected));
}

/// A piece of the program that a checkpoint has.
struct Wanted {
  TensorPiece piece;
  std::string stored_name;
};

/// Returns the pieces of one kind that the checkpoint has. Throws for one that it must have.
std::vector<Wanted> WantedOf(const StageProgram& program, TensorKind kind, SavedState& saved,
                             const LoadOrder& order) {
  std::vector<Wanted> all;
  for (TensorPiece& piece : program.Tensors(kind)) {
    if (piece.in_folder) continue;
    std::string name = StoredName(kind, piece.name);
    const SavedTensor* const found = saved.Find(name);
    if (found == nullptr) {
      if (std::ranges::find(order.fresh, PartNameOf(piece.name)) != order.fresh.end()) continue;
      throw std::runtime_error("tensor " + name + ": expected " + Describe(piece) + " in " +
                               saved.folder() + ", which has none");
    }
    if (found->shape != piece.global_shape) {
      throw std::runtime_error("tensor " + name + ": expected " + ToString(piece.global_shape) +
                               ", but " + saved.folder() + " has " + ToString(found->shape));
    }
    if (IsFloating(found->type) != IsFloating(StoredTypeOf(piece.value.dtype()))) {
      throw std::runtime_error("tensor " + name + ": expected " + ToString(piece.value.dtype()) +
                               ", but " + saved.folder() + " has " + ToString(found->type));
    }
    saved.Open(name);
    all.push_back({std::move(piece), std::move(name)});
  }
  return all;
}

/// Returns values in the type of the program.
Buffer InType(DType type, Buffer value) {
  if (value.dtype() == type) return value;
  Buffer converted = Buffer::Allocate(value.shape(), type);
  ConvertFloats(StoredTypeOf(value.dtype()), value.data(),
                static_cast<std::size_t>(value.num_elements()), StoredTypeOf(type),
                converted.data());
  return converted;
}

/// Adds the digest of a piece to that of its tensor.
void AddDigest(TensorKind kind, const TensorPiece& piece, std::vector<StoredTensor>& tensors) {
  const auto same = [&](const StoredTensor& tensor) {
    return tensor.kind == kind && tensor.name == piece.name;
  };
  auto found = std::ranges::find_if(tensors, same);
  if (found == tensors.end()) {
    tensors.push_back({kind, piece.name, piece.global_shape, piece.value.dtype(), 0});
    found = std::prev(tensors.end());
  }
  found->digest += DigestOf(piece);
}

/// The file of a shard before it is stored.
struct ShardToStore {
  ShardToStore(const std::vector<StoredPiece>& pieces, const ShardAddress& shard,
               const SaveOrder& order)
      : name(ShardFileName(shard)),
        metadata{{"shard", ShardName(shard)}, {"step", std::to_string(order.step)}} {
    StoredNames names;
    for (const auto& [kind, piece] : pieces) {
      const std::string stored_name = names.Next(kind, piece.name);
      metadata[stored_name] = PlaceOf(piece);
      tensors.push_back({.name = stored_name, .value = piece.value});
      AddDigest(kind, piece, digests);
    }
  }

  StoredShard Stored(WrittenFile written) && {
    StoredShard stored;
    stored.file = std::move(name);
    stored.bytes = written.bytes;
    stored.sha256 = std::move(written.sha256);
    stored.header_sha256 = std::move(written.header_sha256);
    stored.tensors = std::move(digests);
    return stored;
  }

  std::string name;
  std::vector<NamedTensor> tensors;
  Metadata metadata;
  std::vector<StoredTensor> digests;
};

/// Reads the pieces of a kind and sets them in the program.
void GiveKind(StageProgram& program, TensorKind kind, SavedState& saved, std::vector<Wanted> wanted,
              LoadedShard& loaded) {
  std::vector<TensorPiece> all = program.Tensors(kind);
  for (Wanted& each : wanted) {
    TensorPiece piece = std::move(each.piece);
    const DType type = piece.value.dtype();
    piece.value = saved.Read(each.stored_name, piece.offsets, piece.value.shape());
    loaded.bytes_held += piece.value.num_bytes();
    if (piece.owner) AddDigest(kind, piece, loaded.tensors);
    piece.value = InType(type, std::move(piece.value));
    const auto held = std::ranges::find_if(all, [&](const TensorPiece& one) {
      return one.name == piece.name && one.offsets == piece.offsets;
    });
    *held = std::move(piece);
  }
  program.SetTensors(kind, all);
}

}  // namespace

std::optional<StoredPlace> ParseStoredPlace(const SafetensorsReader& file,
                                            const TensorEntry& entry) {
  const std::string& stored_name = entry.name;
  StoredPlace place;
  const std::size_t slash = stored_name.find('/');
  const auto* const kind = std::ranges::find_if(kStoredKinds, [&](TensorKind one) {
    return slash != std::string::npos && ToString(one) == stored_name.substr(0, slash);
  });
  if (kind == kStoredKinds.end()) return std::nullopt;
  place.kind = *kind;
  place.name = stored_name.substr(slash + 1, stored_name.rfind(kPieceMark) - slash - 1);
  const auto found = file.metadata().find(stored_name);
  const auto json = ParseOwnJson(found == file.metadata().end() ? "" : found->second);
  const Shape& shape = entry.shape;
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
                                                       const CheckpointFile& file,
                                                       const OpenElsewhere& elsewhere) {
  const std::string path = folder + "/" + file.name;
  std::shared_ptr<const ByteSource> bytes;
  if (elsewhere && !file.disk.empty() && !IsThere(path)) bytes = elsewhere(path);
  if (bytes == nullptr) {
    if (const auto fault = FaultOf(folder, file)) throw std::runtime_error(*fault);
    bytes = OpenFile(path);
  } else if (bytes->size() != file.bytes) {
    throw std::runtime_error(path + ", on another node: " + std::to_string(bytes->size()) +
                             " bytes, expected " + std::to_string(file.bytes) + " bytes");
  }
  auto reader = std::make_shared<const SafetensorsReader>(path, bytes);
  CheckMetadata(*reader, "step", std::to_string(step));
  CheckMetadata(*reader, "shard", file.name.substr(0, file.name.rfind('.')));
  if (reader->header_sha256() != file.header_sha256) {
    throw DamagedShard(reader->path() + ": its header was damaged since it was written");
  }
  return reader;
}

StoredShard WriteShard(const std::vector<StoredPiece>& pieces, const ShardAddress& shard,
                       const SaveOrder& order) {
  MakeFolders(order.folder);
  if (pieces.empty()) return {};
  ShardToStore file(pieces, shard, order);
  WrittenFile written;
  WriteSafetensors((fs::path(order.folder) / file.name).string(), file.tensors, file.metadata,
                   &written);
  return std::move(file).Stored(written);
}

MadeShard MakeShard(const std::vector<StoredPiece>& pieces, const ShardAddress& shard,
                    const SaveOrder& order,
                    const std::function<Buffer(std::size_t num_bytes)>& allocate) {
  ShardToStore file(pieces, shard, order);
  WrittenFile written;
  Buffer bytes = MakeSafetensors(file.tensors, file.metadata, written, allocate);
  HeldFile held{file.name, std::move(bytes)};
  return {std::move(file).Stored(written), std::move(held)};
}

StoredShard WriteShard(const StageProgram& program, const ShardAddress& shard,
                       const SaveOrder& order) {
  return WriteShard(StoredPieces([&](TensorKind kind) { return program.Tensors(kind); }), shard,
                    order);
}

LoadedShard ReadShard(StageProgram& program, const ShardAddress& shard, const LoadOrder& order,
                      const OpenElsewhere& elsewhere) {
  return WithAdvice(order, [&] {
    SavedState saved(order.folder, order.manifest_sum, elsewhere);
    std::map<TensorKind, std::vector<Wanted>> wanted;
    for (const TensorKind kind : kStoredKinds) {
      try {
        wanted[kind] = WantedOf(program, kind, saved, order);
      } catch (const DamagedShard&) {
        throw;
      } catch (const FailureError&) {
        throw;
      } catch (const std::runtime_error& error) {
        throw std::runtime_error(ToString(shard) + ": " + error.what());
      }
    }
    LoadedShard loaded;
    for (auto& [kind, pieces] : wanted) GiveKind(program, kind, saved, std::move(pieces), loaded);
    loaded.bytes_read = saved.bytes_read();
    return loaded;
  });
}

void CheckDigests(const LoadOrder& order, const std::vector<StoredTensor>& read,
                  const OpenElsewhere& elsewhere) {
  std::map<std::string, std::uint64_t> sums;
  for (const StoredTensor& tensor : read) {
    sums[StoredName(tensor.kind, tensor.name)] += tensor.digest;
  }
  const CheckpointManifest manifest =
      SavedState(order.folder, order.manifest_sum, elsewhere).manifest();
  WithAdvice(order, [&] {
    for (const auto& [name, sum] : sums) {
      const SavedTensor& tensor = manifest.tensors.at(name);
      if (sum == tensor.digest) continue;
      std::vector<std::string> files;
      for (const std::size_t place : tensor.files) files.push_back(manifest.files[place].name);
      throw DamagedShard(order.folder + ": tensor " + name +
                         " was damaged since it was written, in " + Listed(files, " or "));
    }
  });
}

}  // namespace troupe
