#include "checkpoint/torch_file.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "checkpoint/pickle.hpp"
#include "checkpoint/stored_zip.hpp"
#include "files/strict_json.hpp"
#include "trace/mapped_memory.hpp"

namespace troupe {
namespace {

/// PyTorch has no tensors of more.
constexpr std::size_t kMaxDimensions = 64;

using ZipEntries = std::map<std::string, ZipEntry>;

/// Reads tensors from a pickle whose storages are entries of a zip file.
class PickledTensors {
 public:
  /// `storages` is what the names of their entries begin with: "NAME/data/".
  PickledTensors(const Pickle& pickle, const ZipEntries& zip, std::string storages)
      : pickle_(pickle), zip_(zip), storages_(std::move(storages)) {}

  std::vector<TensorEntry> Read() const {
    std::vector<TensorEntry> entries;
    std::set<std::string> names;
    for (const auto& [key, value] : As<PickleDict>(pickle_.root, "the pickle", "a dict").items) {
      TensorEntry entry;
      entry.name = As<std::string>(key, "a key of the pickle", "the name of a tensor");
      if (!names.insert(entry.name).second) {
        FailReading(TensorTitle(entry.name) + " is there twice");
      }
      Fill(value, entry);
      entries.push_back(std::move(entry));
    }
    SortByPlace(entries);
    return entries;
  }

 private:
  struct Storage {
    StoredType type = StoredType::kFloat32;
    std::int64_t num_elements = 0;
    std::uint64_t begin = 0;  ///< in the file
  };

  template <class Kind>
  const Kind& As(PickleId id, const std::string& subject, const char* expected) const {
    if (const Kind* const value = pickle_.Get<Kind>(id)) return *value;
    FailReading(subject + ": expected " + expected + ", got " + KindOf(pickle_.values[id]));
  }

  /// The arguments of a call of `function`; null if the value is another one.
  const PickleTuple* Arguments(PickleId id, PickleFunction function) const {
    const auto* const call = pickle_.Get<PickleCall>(id);
    if (call == nullptr || call->function != function) return nullptr;
    return pickle_.Get<PickleTuple>(call->arguments);
  }

  /// Numbers that are not negative.
  Shape Numbers(PickleId id, const std::string& subject) const {
    const auto& items = As<PickleTuple>(id, subject, "a tuple").items;
    if (items.size() > kMaxDimensions) {  // tensors may share this tuple, but not its copies
      FailReading(subject + ": expected at most " + std::to_string(kMaxDimensions) +
                  " numbers, got " + std::to_string(items.size()));
    }
    Shape numbers;
    for (const PickleId item : items) numbers.push_back(Number(item, subject));
    return numbers;
  }
  std::int64_t Number(PickleId id, const std::string& subject) const {
    const auto number = As<std::int64_t>(id, subject, "a whole number");
    if (number < 0) {
      FailReading(subject + ": expected at least 0, got " + std::to_string(number));
    }
    return number;
  }

  void Fill(PickleId value, TensorEntry& entry) const {
    const auto* const parameter = Arguments(value, PickleFunction::kRebuildParameter);
    if (parameter != nullptr && !parameter->items.empty()) value = parameter->items.front();
    const auto* const tensor = Arguments(value, PickleFunction::kRebuildTensor);
    if (tensor == nullptr) FailOther(value, entry);
    // Storage, offset, sizes, strides, requires_grad, hooks and, where it has any, other attributes.
    const auto& items = tensor->items;
    if (items.size() < 6) {
      FailReading(TensorTitle(entry.name) + ": expected 6 arguments in the pickle, got " +
                  std::to_string(items.size()));
    }
    if (items.size() > 6 && pickle_.Get<PickleNone>(items[6]) == nullptr) {
      FailReading(TensorTitle(entry.name) +
                  " is a view that conjugates or negates: save it resolved");
    }
    const Storage storage = ReadStorage(items[0], entry);
    entry.type = storage.type;
    entry.shape = Numbers(items[2], "the shape of " + TensorTitle(entry.name));
    RequireContiguous(Numbers(items[3], "the strides of " + TensorTitle(entry.name)), entry);
    Place(Number(items[1], "the offset of " + TensorTitle(entry.name)), storage, entry);
  }

  [[noreturn]] void FailOther(PickleId value, const TensorEntry& entry) const {
    const bool nested = pickle_.Get<PickleDict>(value) != nullptr;
    FailReading(QuoteText(entry.name) + ": expected a tensor, got " +
                KindOf(pickle_.values[value]) +
                (nested ? ": save this dict alone" : ": save tensors alone"));
  }

  Storage ReadStorage(PickleId id, const TensorEntry& entry) const {
    const std::string subject = "the storage of " + TensorTitle(entry.name);
    const PickleId tuple = As<PickleReference>(id, subject, "a reference").id;
    // "storage", type, key, device, elements
    const auto& items = As<PickleTuple>(tuple, subject, "a tuple").items;
    if (items.size() != 5) FailReading(subject + ": expected 5 values in the pickle");
    Storage storage;
    storage.type = As<StoredType>(items[1], subject, "a type");
    storage.num_elements = Number(items[4], subject);
    const std::string name = storages_ + As<std::string>(items[2], subject, "a key");
    const auto place = zip_.find(name);
    if (place == zip_.end()) {
      FailReading(subject + ": expected entry " + QuoteText(name) + ", found none");
    }
    storage.begin = place->second.begin;
    const TensorEntry whole = {
        .name = entry.name, .type = storage.type, .shape = {storage.num_elements}};
    const std::uint64_t there = place->second.end - place->second.begin;
    if (CheckedBytes(whole) > there) {
      FailReading(subject + ": expected " + std::to_string(CheckedBytes(whole)) +
                  " bytes in entry " + QuoteText(name) + ", found " + std::to_string(there));
    }
    return storage;
  }

  static void RequireContiguous(const Shape& strides, const TensorEntry& entry) {
    CheckedBytes(entry);  // no overflow below
    const bool empty = std::ranges::find(entry.shape, 0) != entry.shape.end();
    std::int64_t expected = 1;
    bool contiguous = strides.size() == entry.shape.size();
    for (std::size_t i = entry.shape.size(); contiguous && !empty && i-- > 0;) {
      contiguous = entry.shape[i] == 1 || strides[i] == expected;
      expected *= entry.shape[i];
    }
    if (contiguous) return;
    FailReading(TensorTitle(entry.name) + " of shape " + ToString(entry.shape) + " has strides " +
                ToString(strides) + ": save it with .contiguous()");
  }

  /// Sets the place of a tensor that begins at element `offset` of its storage.
  static void Place(std::int64_t offset, const Storage& storage, TensorEntry& entry) {
    const std::uint64_t num_bytes = CheckedBytes(entry);
    const std::size_t size = SizeOf(storage.type);
    const auto elements = static_cast<std::int64_t>(num_bytes / size);
    if (elements > storage.num_elements - offset) {
      FailReading(TensorTitle(entry.name) + " has " + std::to_string(elements) +
                  " elements from element " + std::to_string(offset) +
                  " of its storage on, which has " + std::to_string(storage.num_elements));
    }
    entry.begin = storage.begin + static_cast<std::uint64_t>(offset) * size;
    entry.end = entry.begin + num_bytes;
  }

  const Pickle& pickle_;
  const ZipEntries& zip_;
  const std::string storages_;
};

/// The number with which PyTorch before 1.6 began a file, as a pickle.
constexpr std::string_view kOldFormat =
    "\x80\x02\x8a\x0al\xfc\x9c"
    "F\xf9 j\xa8P\x19";

/// Returns "NAME/" of the entry "NAME/data.pkl".
std::string TorchFolder(const ZipEntries& zip) {
  constexpr std::string_view kPickle = "data.pkl";
  std::vector<std::string> folders;
  for (const auto& [name, place] : zip) {
    if (!name.ends_with("/" + std::string(kPickle))) continue;
    folders.push_back(name.substr(0, name.size() - kPickle.size()));
  }
  if (folders.size() == 1) return folders.front();
  FailReading("expected one entry NAME/data.pkl, as torch.save writes it, found " +
              std::to_string(folders.size()));
}

std::vector<TensorEntry> ReadTorchEntries(const MappedMemory& memory) {
  const std::string_view file(reinterpret_cast<const char*>(memory.data()), memory.size());
  if (file.starts_with(kOldFormat)) {
    FailReading("has the format before PyTorch 1.6: load it and save it again");
  }
  const ZipEntries zip = ReadStoredZip(file);
  const auto bytes = [&](const ZipEntry& place) {
    return file.substr(place.begin, place.end - place.begin);
  };
  const std::string folder = TorchFolder(zip);
  if (const auto order = zip.find(folder + "byteorder"); order != zip.end()) {
    const std::string word(bytes(order->second).substr(0, 64));
    if (word != "little") FailReading("expected the byte order \"little\", got " + QuoteText(word));
  }
  const Pickle pickle = ReadPickle(std::as_bytes(std::span(bytes(zip.at(folder + "data.pkl")))));
  if (memory.lost()) FailReading("cannot be read, or has shrunk while it was read");
  return PickledTensors(pickle, zip, folder + "data/").Read();
}

}  // namespace

TensorFile ReadTorchFile(const std::string& path) {
  const MappedMemory memory = MappedMemory::Open(path);
  try {
    return {path, ReadTorchEntries(memory)};
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(path + ": " + error.what());
  }
}

}  // namespace troupe
