#include "checkpoint/safetensors.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <utility>

#include "files/output_file.hpp"
#include "files/strict_json.hpp"

namespace troupe {
namespace {

static_assert(std::endian::native == std::endian::little,
              "tensors are stored as they are in memory");

using Json = nlohmann::json;

constexpr const char* kMetadataKey = "__metadata__";
constexpr std::size_t kAlignment = 8;

Metadata ParseMetadata(const Json& json) {
  if (!json.is_object()) FailReading("__metadata__ is not an object");
  Metadata metadata;
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string()) FailReading("__metadata__ " + QuoteText(key) + " is not a string");
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

/// A list of non-negative integers below 2^63. The parser gives other numbers another type.
std::vector<std::int64_t> ParseIntegers(const Json& json, const std::string& where) {
  if (!json.is_array()) FailReading(where + " is not a list");
  std::vector<std::int64_t> numbers;
  for (const Json& item : json) {
    const bool fits = item.is_number_unsigned() && item.get<std::uint64_t>() <= INT64_MAX;
    if (!fits) FailReading(where + " holds something other than integers from 0 to 2^63 - 1");
    numbers.push_back(item.get<std::int64_t>());
  }
  return numbers;
}

StoredType ParseType(const Json& json, const std::string& tensor) {
  if (!json.is_string()) FailReading(tensor + " dtype is not a string");
  const auto& word = json.get_ref<const std::string&>();
  const auto type = ParseStoredType(word);
  if (!type) FailReading(tensor + " has unknown dtype " + QuoteText(word));
  return *type;
}

TensorEntry ParseEntry(const std::string& name, const Json& json) {
  const std::string tensor = TensorTitle(name);
  if (!json.is_object()) FailReading(tensor + " is not an object");
  for (const char* key : {"dtype", "shape", "data_offsets"}) {
    if (!json.contains(key)) FailReading(tensor + " has no " + key);
  }
  if (json.size() != 3) FailReading(tensor + " has keys other than dtype, shape and data_offsets");
  const auto offsets = ParseIntegers(json["data_offsets"], tensor + " data_offsets");
  if (offsets.size() != 2) {
    FailReading(tensor + " has " + std::to_string(offsets.size()) + " data_offsets, expected 2");
  }
  TensorEntry entry{.name = name,
                    .type = ParseType(json["dtype"], tensor),
                    .shape = ParseIntegers(json["shape"], tensor + " shape"),
                    .begin = static_cast<std::uint64_t>(offsets[0]),
                    .end = static_cast<std::uint64_t>(offsets[1])};
  const std::uint64_t num_bytes = CheckedBytes(entry);
  if (entry.begin > entry.end || entry.end - entry.begin != num_bytes) {
    FailReading(tensor + " lies at bytes " + std::to_string(entry.begin) + " to " +
                std::to_string(entry.end) + ", expected " + std::to_string(num_bytes) + " bytes");
  }
  return entry;
}

/// `entries` are in the order of their bytes.
void CheckCover(const std::vector<TensorEntry>& entries, std::uint64_t num_bytes) {
  std::uint64_t end = 0;
  for (const TensorEntry& entry : entries) {
    if (entry.begin != end) {
      FailReading(TensorTitle(entry.name) + " begins at byte " + std::to_string(entry.begin) +
                  " of the data, expected " + std::to_string(end) + ": there is " +
                  (entry.begin < end ? "an overlap" : "a gap"));
    }
    end = entry.end;
  }
  if (end != num_bytes) {
    FailReading("tensors end at byte " + std::to_string(end) + " of the data, but it has " +
                std::to_string(num_bytes) + " bytes");
  }
}

[[noreturn]] void Fail(const std::string& path, const std::string& what) {
  throw std::runtime_error(path + ": " + what);
}

void SortAsStored(std::vector<TensorToWrite>& tensors) {
  std::ranges::sort(tensors, {}, [](const TensorToWrite& tensor) {
    return std::pair(-static_cast<int>(SizeOf(tensor.type)), tensor.name);
  });
}

/// Fails unless it is written as many bytes as the tensor has.
void WriteTensor(const TensorToWrite& tensor, const ByteSink& sink, const std::string& path) {
  const std::size_t expected =
      static_cast<std::size_t>(NumElements(tensor.shape)) * SizeOf(tensor.type);
  std::size_t written = 0;
  tensor.write([&](std::span<const std::byte> bytes) {
    written += bytes.size();
    sink(bytes);
  });
  if (written == expected) return;
  Fail(path, TensorTitle(tensor.name) + " has " + std::to_string(written) + " bytes, expected " +
                 std::to_string(expected));
}

/// The JSON of the header of `tensors`, which lie in this order. It is padded so that the data
/// after it is aligned to 8 bytes.
std::string FormatHeader(const std::vector<TensorToWrite>& tensors, Metadata metadata) {
  metadata.emplace("format", "pt");
  Json json = {{kMetadataKey, metadata}};
  std::uint64_t end = 0;
  for (const TensorToWrite& tensor : tensors) {
    if (tensor.name == kMetadataKey) FailReading("tensor name __metadata__ is reserved");
    const std::uint64_t begin = end;
    end += static_cast<std::uint64_t>(NumElements(tensor.shape)) * SizeOf(tensor.type);
    const Json place = {
        {"dtype", ToString(tensor.type)}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
    if (!json.emplace(tensor.name, place).second) {
      FailReading("tensor name " + QuoteText(tensor.name) + " is used twice");
    }
  }
  std::string text;
  try {
    text = json.dump();
  } catch (const Json::type_error&) {
    FailReading("a tensor name or metadata text is not valid UTF-8");
  }
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  if (text.size() > kMaxHeaderBytes) {
    FailReading("header has " + std::to_string(text.size()) + " bytes, expected at most " +
                std::to_string(kMaxHeaderBytes));
  }
  return text;
}

/// Writes what comes before the tensors. Returns its SHA-256.
std::string WriteHeader(const std::string& header, const ByteSink& sink) {
  Sha256 sum;
  const std::uint64_t length = header.size();
  for (const auto bytes :
       {std::as_bytes(std::span(&length, 1)), std::as_bytes(std::span(header))}) {
    sink(bytes);
    sum.Update(bytes);
  }
  return sum.Hex();
}

/// The tensors, which must live until they are written.
std::vector<TensorToWrite> ToWrite(const std::vector<NamedTensor>& tensors,
                                   const std::string& path) {
  std::vector<TensorToWrite> all;
  for (const NamedTensor& tensor : tensors) {
    const Buffer& value = tensor.value;
    if (!value.defined()) Fail(path, "tensor \"" + tensor.name + "\" has no value");
    all.push_back(
        {tensor.name, StoredTypeOf(value.dtype()), value.shape(), [&value](const ByteSink& sink) {
           sink(std::span<const std::byte>(value.data(), value.num_bytes()));
         }});
  }
  return all;
}

}  // namespace

SafetensorsHeader ParseHeader(const std::string& json, std::uint64_t num_bytes) {
  SafetensorsHeader header;
  const Json parsed = ParseStrictJson(json, "header");
  for (const auto& [key, value] : parsed.items()) {
    if (key == kMetadataKey) {
      header.metadata = ParseMetadata(value);
    } else {
      header.entries.push_back(ParseEntry(key, value));
    }
  }
  SortByPlace(header.entries);
  CheckCover(header.entries, num_bytes);
  return header;
}

void WriteTensors(const std::string& path, std::vector<TensorToWrite> tensors,
                  const Metadata& metadata, WrittenFile* written) {
  SortAsStored(tensors);
  std::string header;
  try {
    header = FormatHeader(tensors, metadata);
  } catch (const std::runtime_error& error) {
    Fail(path, error.what());
  }
  ReplaceFile(path, [&](OutputFile& file) {
    Sha256 sum;
    std::uint64_t count = 0;
    const ByteSink sink = [&](std::span<const std::byte> bytes) {
      file.Write(bytes);
      count += bytes.size();
      if (written) sum.Update(bytes);
    };
    const std::string header_sum = WriteHeader(header, sink);
    for (const TensorToWrite& tensor : tensors) WriteTensor(tensor, sink, path);
    if (written) *written = {count, sum.Hex(), header_sum};
  });
}

Buffer MakeSafetensors(const std::vector<NamedTensor>& tensors, const Metadata& metadata,
                       WrittenFile& written,
                       const std::function<Buffer(std::size_t num_bytes)>& allocate) {
  const std::string path = "a file in memory";
  std::vector<TensorToWrite> all = ToWrite(tensors, path);
  SortAsStored(all);
  const std::string header = FormatHeader(all, metadata);
  std::size_t size = sizeof(std::uint64_t) + header.size();
  for (const NamedTensor& tensor : tensors) size += tensor.value.num_bytes();
  Buffer file = allocate(size);
  std::byte* end = file.data();
  const ByteSink sink = [&](std::span<const std::byte> bytes) {
    if (!bytes.empty()) std::memcpy(end, bytes.data(), bytes.size());
    end += bytes.size();
  };
  const std::string header_sum = WriteHeader(header, sink);
  for (const TensorToWrite& tensor : all) WriteTensor(tensor, sink, path);
  written = {size, header_sum, header_sum};
  return file;
}

void WriteSafetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                      const Metadata& metadata, WrittenFile* written) {
  WriteTensors(path, ToWrite(tensors, path), metadata, written);
}

SafetensorsReader::SafetensorsReader(std::string path, std::shared_ptr<const ByteSource> bytes)
    : path_(std::move(path)), bytes_(std::move(bytes)) {
  ReadHeader();
}

void SafetensorsReader::ReadHeader() {
  const std::uint64_t file_bytes = bytes_->size();
  std::uint64_t length = 0;
  if (file_bytes < sizeof(length)) {
    Fail(path_, "file has " + std::to_string(file_bytes) + " bytes, expected at least 8");
  }
  ReadAt(0, &length, sizeof(length));
  const std::uint64_t most = std::min(kMaxHeaderBytes, file_bytes - sizeof(length));
  if (length > most) {
    Fail(path_, "header length is " + std::to_string(length) + ", expected at most " +
                    std::to_string(most));
  }
  std::string json(length, '\0');
  ReadAt(sizeof(length), json.data(), json.size());
  data_begin_ = sizeof(length) + length;
  Sha256 sum;
  sum.Update(std::as_bytes(std::span(&length, 1)));
  sum.Update(std::as_bytes(std::span(json)));
  header_sha256_ = sum.Hex();
  try {
    header_ = ParseHeader(json, file_bytes - data_begin_);
  } catch (const std::runtime_error& error) {
    Fail(path_, error.what());
  }
}

void SafetensorsReader::ReadAt(std::uint64_t offset, void* data, std::size_t count) const {
  bytes_->Read(offset, data, count);
  bytes_read_ += count;
}

const TensorEntry* SafetensorsReader::Find(const std::string& name) const {
  return FindEntry(entries(), name);
}

const TensorEntry& SafetensorsReader::Entry(const std::string& name) const {
  const TensorEntry* entry = Find(name);
  if (entry == nullptr) Fail(path_, "no tensor \"" + name + "\"");
  return *entry;
}

Buffer SafetensorsReader::Read(const std::string& name) const {
  const Shape& shape = Entry(name).shape;
  return ReadPart(name, std::vector<std::int64_t>(shape.size(), 0), shape);
}

Buffer SafetensorsReader::ReadPart(const std::string& name,
                                   const std::vector<std::int64_t>& offsets,
                                   const Shape& shape) const {
  const TensorEntry& entry = Entry(name);
  Buffer loaded = Buffer::Allocate(shape, LoadedTypeOf(entry.type));
  const bool as_stored = SizeOf(entry.type) == SizeOf(loaded.dtype());
  const auto count = static_cast<std::size_t>(loaded.num_elements());
  std::vector<std::byte> stored(as_stored ? 0 : count * SizeOf(entry.type));
  std::byte* const bytes = as_stored ? loaded.data() : stored.data();
  ReadPart(entry, {offsets, shape, std::vector<std::int64_t>(shape.size(), 0), shape, bytes});
  if (!as_stored) Widen(entry.type, bytes, count, loaded.data());
  return loaded;
}

void SafetensorsReader::ReadPart(const TensorEntry& entry, const PartToRead& part) const {
  if (NumElements(part.shape) == 0) return;
  // The longest run of elements that are neighbours in the file and in memory.
  std::size_t outer = part.shape.size();
  std::int64_t run = 1;
  while (outer > 0) {
    --outer;
    run *= part.shape[outer];
    if (part.shape[outer] != entry.shape[outer] || part.shape[outer] != part.whole[outer]) break;
  }
  const std::size_t size = SizeOf(entry.type);
  const auto place = [&](const std::vector<std::int64_t>& first, const Shape& shape,
                         std::int64_t number) {
    std::int64_t at = 0;
    std::int64_t stride = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
      const std::int64_t index = d >= outer ? 0 : number % part.shape[d];
      if (d < outer) number /= part.shape[d];
      at += (first[d] + index) * stride;
      stride *= shape[d];
    }
    return static_cast<std::uint64_t>(at) * size;
  };
  for (std::int64_t number = 0; number < NumElements(part.shape) / run; ++number) {
    ReadAt(data_begin_ + entry.begin + place(part.offsets, entry.shape, number),
           part.data + place(part.to, part.whole, number), static_cast<std::size_t>(run) * size);
  }
}

TensorFile ReadSafetensorsFile(const std::string& path) {
  const SafetensorsReader reader(path);
  TensorFile file = {path, reader.entries()};
  for (TensorEntry& entry : file.entries) {
    entry.begin += reader.data_begin();
    entry.end += reader.data_begin();
  }
  return file;
}

}  // namespace troupe
