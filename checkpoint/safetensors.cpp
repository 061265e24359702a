#include "checkpoint/safetensors.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace troupe {

namespace {

static_assert(std::endian::native == std::endian::little,
              "tensors are stored as they are in memory");

[[noreturn]] void Fail(const std::string& path, const std::string& what) {
  throw std::runtime_error(path + ": " + what);
}

/// The tensors in their order in the file.
std::vector<const NamedTensor*> Sorted(const std::vector<NamedTensor>& tensors) {
  std::vector<const NamedTensor*> sorted;
  for (const NamedTensor& tensor : tensors) {
    if (!tensor.value.defined()) {
      throw std::runtime_error("tensor \"" + tensor.name + "\" has no value");
    }
    sorted.push_back(&tensor);
  }
  std::sort(sorted.begin(), sorted.end(), [](const NamedTensor* a, const NamedTensor* b) {
    const std::size_t width_a = SizeOf(a->value.dtype());
    const std::size_t width_b = SizeOf(b->value.dtype());
    return width_a != width_b ? width_a > width_b : a->name < b->name;
  });
  return sorted;
}

SafetensorsHeader HeaderOf(const std::vector<const NamedTensor*>& tensors,
                           const Metadata& metadata) {
  SafetensorsHeader header{.entries = {}, .metadata = metadata};
  header.metadata.emplace("format", "pt");
  std::uint64_t end = 0;
  for (const NamedTensor* tensor : tensors) {
    const std::uint64_t begin = end;
    end += tensor->value.num_bytes();
    header.entries.push_back({.name = tensor->name,
                              .type = StoredTypeOf(tensor->value.dtype()),
                              .shape = tensor->value.shape(),
                              .begin = begin,
                              .end = end});
  }
  return header;
}

struct FileContent {
  std::vector<const NamedTensor*> tensors;
  std::string header;
};

FileContent Arrange(const std::vector<NamedTensor>& tensors, const Metadata& metadata) {
  FileContent content{.tensors = Sorted(tensors), .header = {}};
  content.header = FormatHeader(HeaderOf(content.tensors, metadata));
  return content;
}

void Write(OutputFile& file, const FileContent& content, Sha256* sum) {
  const auto write = [&](std::span<const std::byte> bytes) {
    file.Write(bytes);
    if (sum) sum->Update(bytes);
  };
  const std::uint64_t length = content.header.size();
  write(std::as_bytes(std::span(&length, 1)));
  write(std::as_bytes(std::span(content.header)));
  for (const NamedTensor* tensor : content.tensors) {
    write(std::span<const std::byte>(tensor->value.data(), tensor->value.num_bytes()));
  }
}

}  // namespace

void WriteSafetensors(OutputFile& file, const std::vector<NamedTensor>& tensors,
                      const Metadata& metadata) {
  Write(file, Arrange(tensors, metadata), nullptr);
}

void WriteSafetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                      const Metadata& metadata, Sha256* sum) {
  FileContent content;
  try {
    content = Arrange(tensors, metadata);
  } catch (const std::runtime_error& error) {
    Fail(path, error.what());
  }
  ReplaceFile(path, [&](OutputFile& file) { Write(file, content, sum); });
}

SafetensorsReader::SafetensorsReader(std::string path) : path_(std::move(path)) {
  // Without O_NONBLOCK, opening a pipe would wait for a writer.
  file_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file_ < 0) Fail(path_, std::string("cannot open: ") + std::strerror(errno));
  try {
    ReadHeader();
  } catch (...) {
    close(file_);
    throw;
  }
}

SafetensorsReader::~SafetensorsReader() { close(file_); }

void SafetensorsReader::ReadHeader() {
  struct stat status = {};
  if (fstat(file_, &status) != 0) Fail(path_, std::string("cannot read: ") + std::strerror(errno));
  if (!S_ISREG(status.st_mode)) Fail(path_, "not a regular file");
  const auto file_bytes = static_cast<std::uint64_t>(status.st_size);
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
  try {
    header_ = ParseHeader(json, file_bytes - data_begin_);
  } catch (const std::runtime_error& error) {
    Fail(path_, error.what());
  }
}

void SafetensorsReader::ReadAt(std::uint64_t offset, void* data, std::size_t count) const {
  auto* bytes = static_cast<std::byte*>(data);
  while (count > 0) {
    const ssize_t got = pread(file_, bytes, count, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) Fail(path_, std::string("cannot read: ") + std::strerror(errno));
    if (got == 0) Fail(path_, "file has shrunk to " + std::to_string(offset) + " bytes");
    bytes += got;
    count -= static_cast<std::size_t>(got);
    offset += static_cast<std::uint64_t>(got);
  }
}

const TensorEntry* SafetensorsReader::Find(const std::string& name) const {
  const auto found = std::find_if(entries().begin(), entries().end(),
                                  [&](const TensorEntry& entry) { return entry.name == name; });
  return found == entries().end() ? nullptr : &*found;
}

Buffer SafetensorsReader::Read(const std::string& name) const {
  const TensorEntry* entry = Find(name);
  if (entry == nullptr) Fail(path_, "no tensor \"" + name + "\"");
  return ReadEntry(*entry, nullptr);
}

Buffer SafetensorsReader::ReadEntry(const TensorEntry& entry, Sha256* sum) const {
  Buffer loaded = Buffer::Allocate(entry.shape, LoadedTypeOf(entry.type));
  const std::size_t num_bytes = entry.end - entry.begin;
  const bool as_stored = SizeOf(entry.type) == SizeOf(loaded.dtype());
  std::vector<std::byte> stored(as_stored ? 0 : num_bytes);
  std::byte* const bytes = as_stored ? loaded.data() : stored.data();
  ReadAt(data_begin_ + entry.begin, bytes, num_bytes);
  if (sum) sum->Update({bytes, num_bytes});
  if (!as_stored) Widen(entry.type, bytes, num_bytes / SizeOf(entry.type), loaded.data());
  return loaded;
}

void SafetensorsReader::ReadAll(Sha256& sum,
                                const std::function<void(const TensorEntry&, Buffer)>& take) const {
  std::vector<std::byte> header(data_begin_);
  ReadAt(0, header.data(), header.size());
  sum.Update(header);
  for (const TensorEntry& entry : entries()) take(entry, ReadEntry(entry, &sum));
}

}  // namespace troupe
