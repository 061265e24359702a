#include "modules/held_files.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "modules/stored_state.hpp"

namespace troupe {
namespace {

class BytesInMemory : public ByteSource {
 public:
  BytesInMemory(std::string path, Buffer bytes)
      : path_(std::move(path)), bytes_(std::move(bytes)) {}

  std::uint64_t size() const override { return bytes_.num_bytes(); }
  void Read(std::uint64_t offset, void* data, std::size_t count) const override {
    if (offset > size() || count > size() - offset) {
      throw std::runtime_error(path_ + ": has " + std::to_string(size()) + " bytes, expected " +
                               std::to_string(count) + " from " + std::to_string(offset) + " on");
    }
    if (count > 0) std::memcpy(data, bytes_.data() + offset, count);
  }

 private:
  std::string path_;
  Buffer bytes_;
};

Buffer BytesOfText(const std::string& text) {
  Buffer bytes = Buffer::AllocateBytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

}  // namespace

class HeldFiles::FreeMemory {
 public:
  /// Returns an undefined buffer if there is none of this size.
  Buffer Take(std::size_t num_bytes) {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(buffers_, num_bytes, &Buffer::num_bytes);
    if (found == buffers_.end()) return {};
    Buffer memory = std::move(*found);
    buffers_.erase(found);
    return memory;
  }
  void Put(Buffer memory) {
    const std::lock_guard lock(mutex_);
    buffers_.push_back(std::move(memory));
  }
  void Clear() {
    const std::lock_guard lock(mutex_);
    buffers_.clear();
  }

 private:
  std::mutex mutex_;
  std::vector<Buffer> buffers_;
};

HeldFiles::HeldFiles() : free_(std::make_shared<FreeMemory>()) {}

Buffer HeldFiles::Allocate(std::size_t num_bytes) {
  Buffer memory = free_->Take(num_bytes);
  if (!memory.defined()) memory = Buffer::AllocateBytes(num_bytes);
  const auto give_back = [free = free_, memory](void*) { free->Put(memory); };
  return Buffer::Wrap(std::shared_ptr<void>(nullptr, give_back), memory.data(), memory.shape(),
                      DType::kUInt8);
}

void HeldFiles::Put(const std::string& folder, HeldFile file) {
  const std::lock_guard lock(mutex_);
  folders_[folder].files[file.name] = std::move(file.bytes);
}

Buffer HeldFiles::BytesOf(const std::string& folder, const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = folders_.find(folder);
  if (found != folders_.end()) {
    const auto file = found->second.files.find(name);
    if (file != found->second.files.end()) return file->second;
  }
  throw std::runtime_error(folder + "/" + name + ": not held by this process");
}

void HeldFiles::Complete(const std::string& folder, std::string manifest) {
  const std::lock_guard lock(mutex_);
  folders_[folder].manifest = std::move(manifest);
  DropOthers(folder);
}

void HeldFiles::KeepOnly(const std::string& folder) {
  const std::lock_guard lock(mutex_);
  DropOthers(folder);
}

void HeldFiles::DropOthers(const std::string& folder) {
  free_->Clear();  // of sizes that are not needed any more
  std::erase_if(folders_, [&](const auto& held) { return held.first != folder; });
}

void HeldFiles::Clear() {
  const std::lock_guard lock(mutex_);
  folders_.clear();
  free_->Clear();
}

std::shared_ptr<const ByteSource> HeldFiles::Open(const std::string& path) const {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return nullptr;
  const std::string name = path.substr(slash + 1);
  const std::lock_guard lock(mutex_);
  const auto folder = folders_.find(path.substr(0, slash));
  if (folder == folders_.end()) return nullptr;
  const Folder& held = folder->second;
  if (name == kManifestName) {
    if (held.manifest.empty()) return nullptr;
    return std::make_shared<BytesInMemory>(path, BytesOfText(held.manifest));
  }
  const auto file = held.files.find(name);
  if (file == held.files.end()) return nullptr;
  return std::make_shared<BytesInMemory>(path, file->second);
}

std::vector<HeldCheckpoint> HeldFiles::Checkpoints() const {
  const std::lock_guard lock(mutex_);
  std::vector<HeldCheckpoint> all;
  for (const auto& [path, held] : folders_) {
    HeldCheckpoint checkpoint{.folder = path, .manifest = held.manifest, .files = {}};
    for (const auto& [name, bytes] : held.files) checkpoint.files.push_back(name);
    all.push_back(std::move(checkpoint));
  }
  return all;
}

std::size_t HeldFiles::num_bytes() const {
  const std::lock_guard lock(mutex_);
  std::size_t bytes = 0;
  for (const auto& [path, held] : folders_) {
    for (const auto& [name, file] : held.files) bytes += file.num_bytes();
  }
  return bytes;
}

}  // namespace troupe
