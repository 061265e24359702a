#include "checkpoint/export.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "files/file_error.hpp"
#include "files/output_file.hpp"
#include "files/text_file.hpp"
#include "trace/mapped_memory.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

/// Elements that are converted or repeated at once.
constexpr std::size_t kChunk = std::size_t{1} << 20U;

void WriteConverted(const Buffer& value, StoredType type, const ByteSink& sink) {
  const StoredType from = StoredTypeOf(value.dtype());
  const auto count = static_cast<std::size_t>(value.num_elements());
  std::vector<std::byte> converted(std::min(count, kChunk) * SizeOf(type));
  for (std::size_t first = 0; first < count; first += kChunk) {
    const std::size_t some = std::min(kChunk, count - first);
    ConvertFloats(from, value.data() + first * SizeOf(from), some, type, converted.data());
    sink({converted.data(), some * SizeOf(type)});
  }
}

void WriteCopied(const ExportedTensor& tensor, const ByteSink& sink) {
  const MappedMemory memory = MappedMemory::Open(tensor.source->path);
  const std::uint64_t begin = tensor.source_entry->begin;
  const std::uint64_t end = tensor.source_entry->end;
  if (memory.size() >= end) sink({memory.data() + begin, end - begin});
  if (memory.size() < end || memory.lost()) {
    throw std::runtime_error(tensor.source->path + ": it has shrunk while it was read");
  }
}

void WriteConstant(const ExportedTensor& tensor, const ByteSink& sink) {
  Buffer value = Buffer::Allocate(tensor.shape, DType::kFloat64);
  std::fill_n(value.as<double>(), value.num_elements(), tensor.constant);
  WriteConverted(value, tensor.type, sink);
}

/// The elements of `value` as float64.
std::vector<double> AsDoubles(const Buffer& value) {
  std::vector<double> doubles(static_cast<std::size_t>(value.num_elements()));
  ConvertFloats(StoredTypeOf(value.dtype()), value.data(), doubles.size(), StoredType::kFloat64,
                reinterpret_cast<std::byte*>(doubles.data()));
  return doubles;
}

/// Passes the rows of the weight without its adapter to `take`, in float64.
void ReadUnadapted(const ExportedTensor& tensor, const SavedParameters& saved,
                   const std::function<void(std::vector<double> rows)>& take) {
  if (!tensor.own.empty()) {
    saved.ReadInBands(tensor.own, [&](const Buffer& rows) { take(AsDoubles(rows)); });
    return;
  }
  const StoredType type = tensor.source_entry->type;
  const auto row = static_cast<std::size_t>(tensor.shape.at(1));  // elements
  const std::size_t band = std::max<std::size_t>(kChunk / row, 1) * row * SizeOf(type);
  WriteCopied(tensor, [&](std::span<const std::byte> bytes) {
    for (std::size_t first = 0; first < bytes.size(); first += band) {
      const auto some = bytes.subspan(first, std::min(band, bytes.size() - first));
      std::vector<double> rows(some.size() / SizeOf(type));
      ConvertFloats(type, some.data(), rows.size(), StoredType::kFloat64,
                    reinterpret_cast<std::byte*>(rows.data()));
      take(std::move(rows));
    }
  });
}

/// W + scale B A, row by row.
void WriteMerged(const ExportedTensor& tensor, const SavedParameters& saved, const ByteSink& sink) {
  const std::vector<double> a = AsDoubles(saved.Read(tensor.adapter->a));
  const std::vector<double> b = AsDoubles(saved.Read(tensor.adapter->b));
  const auto in = static_cast<std::size_t>(tensor.shape.at(1));
  const std::size_t rank = a.size() / in;
  const double* factors = b.data();  // of the next row
  ReadUnadapted(tensor, saved, [&](std::vector<double> rows) {
    for (std::size_t first = 0; first < rows.size(); first += in, factors += rank) {
      for (std::size_t r = 0; r < rank; ++r) {
        const double factor = tensor.adapter->scale * factors[r];
        for (std::size_t i = 0; i < in; ++i) rows[first + i] += factor * a[r * in + i];
      }
    }
    std::vector<std::byte> converted(rows.size() * SizeOf(tensor.type));
    ConvertFloats(StoredType::kFloat64, reinterpret_cast<const std::byte*>(rows.data()),
                  rows.size(), tensor.type, converted.data());
    sink(converted);
  });
}

TensorToWrite ToWrite(const ExportedTensor& tensor, const SavedParameters& saved) {
  return {tensor.name, tensor.type, tensor.shape, [&tensor, &saved](const ByteSink& sink) {
            if (tensor.adapter) {
              WriteMerged(tensor, saved, sink);
            } else if (!tensor.own.empty()) {
              saved.ReadInBands(
                  tensor.own, [&](const Buffer& rows) { WriteConverted(rows, tensor.type, sink); });
            } else if (tensor.source != nullptr) {
              WriteCopied(tensor, sink);
            } else {
              WriteConstant(tensor, sink);
            }
          }};
}

std::uint64_t BytesOf(const ExportedFile& file) {
  std::uint64_t bytes = 0;
  for (const ExportedTensor& tensor : file.tensors) {
    bytes += static_cast<std::uint64_t>(NumElements(tensor.shape)) * SizeOf(tensor.type);
  }
  return bytes;
}

std::string IndexOf(const std::vector<ExportedFile>& files) {
  std::uint64_t bytes = 0;
  nlohmann::json map = nlohmann::json::object();
  for (const ExportedFile& file : files) {
    bytes += BytesOf(file);
    for (const ExportedTensor& tensor : file.tensors) map[tensor.name] = file.name;
  }
  const nlohmann::json index = {{"metadata", {{"total_size", bytes}}}, {"weight_map", map}};
  return index.dump(2) + "\n";
}

class Writer {
 public:
  Writer(const SavedParameters& saved,
         const std::function<void(const std::string&, std::uint64_t)>& wrote)
      : saved_(saved), wrote_(wrote) {}

  void WriteFolder(const ExportedFolder& folder, const fs::path& into) {
    MakeFolders(into.string());
    for (const ExportedFile& file : folder.files) {
      std::vector<TensorToWrite> tensors;
      for (const ExportedTensor& tensor : file.tensors) tensors.push_back(ToWrite(tensor, saved_));
      WriteTensors((into / file.name).string(), std::move(tensors));
      size_.num_tensors += file.tensors.size();
      size_.num_bytes += BytesOf(file);
      wrote_((fs::path(folder.name) / file.name).string(), size_.num_bytes);
    }
    if (folder.files.size() > 1) {
      ReplaceFile((into / "model.safetensors.index.json").string(), IndexOf(folder.files));
    }
    for (const std::string& path : folder.copies) {
      ReplaceFile((into / fs::path(path).filename()).string(), ReadWholeFile(path));
    }
    for (const auto& [name, text] : folder.texts) ReplaceFile((into / name).string(), text);
    if (!folder.config_json.empty())
      ReplaceFile((into / "config.json").string(), folder.config_json);
    SyncDirectory(into.string());
  }

  ExportedSize size() const { return size_; }

 private:
  const SavedParameters& saved_;
  const std::function<void(const std::string&, std::uint64_t)>& wrote_;
  ExportedSize size_;
};

}  // namespace

void RequireNewFolder(const std::string& out) {
  std::error_code unknown;
  const bool there = fs::exists(fs::symlink_status(out, unknown));
  if (!out.empty() && (!there || (fs::is_directory(out, unknown) && fs::is_empty(out, unknown)))) {
    return;
  }
  throw std::invalid_argument("--out: expected a new or empty folder, got \"" + out + "\"");
}

ExportedSize WriteExport(
    const ExportPlan& plan, const SavedParameters& saved, const std::string& out,
    const std::function<void(const std::string& file, std::uint64_t num_bytes)>& wrote) {
  RequireNewFolder(out);
  const fs::path whole = fs::path(out).lexically_normal();
  const fs::path target = whole.has_filename() ? whole : whole.parent_path();
  const std::string partial = target.string() + ".partial";
  std::error_code ignored;
  if (fs::exists(fs::symlink_status(partial, ignored))) {
    throw std::invalid_argument("--out: " + partial +
                                " exists, from an export that did not end or " +
                                "of another origin; remove it");
  }
  try {
    Writer writer(saved, wrote);
    for (const ExportedFolder& folder : plan.folders) {
      writer.WriteFolder(folder, fs::path(partial) / folder.name);
    }
    std::error_code failure;
    fs::rename(partial, target, failure);  // replaces an empty folder
    if (failure) throw FileError(target.string(), "be created", failure);
    SyncParent(target.string());
    return writer.size();
  } catch (...) {
    fs::remove_all(partial, ignored);
    throw;
  }
}

}  // namespace troupe
