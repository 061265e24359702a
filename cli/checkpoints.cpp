#include "cli/checkpoints.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "app/resume.hpp"
#include "app/run_directory.hpp"
#include "app/run_spec.hpp"
#include "app/saved_run.hpp"
#include "checkpoint/manifest.hpp"
#include "checkpoint/run_checkpoints.hpp"
#include "checkpoint/saved_state.hpp"
#include "checkpoint/sharded.hpp"
#include "checkpoint/tensor_digest.hpp"
#include "cluster/hello_check.hpp"
#include "files/file_error.hpp"
#include "layout/route.hpp"
#include "layout/text.hpp"
#include "modules/tensor_pieces.hpp"

namespace troupe {
namespace {

constexpr const char* kRunOrCheckpoint = "RUN, or RUN/checkpoints/step-N";

std::uint64_t BytesOf(const CheckpointManifest& manifest) {
  std::uint64_t bytes = 0;
  for (const CheckpointFile& file : manifest.files) bytes += file.bytes;
  return bytes;
}

/// The checkpoints that `path` names: itself, or those of a run, newest first.
std::vector<FoundCheckpoint> CheckpointsAt(const std::string& path) {
  const std::string run = RunDirectoryOf(path);
  if (run.empty() || run != path) {
    if (!std::filesystem::is_directory(path) || (run.empty() && !ReadManifest(path))) {
      throw std::runtime_error(
          path +
          ": expected a checkpoint, a run directory or the name of one in runs/, found none");
    }
    return {{0, path, ""}};
  }
  std::vector<FoundCheckpoint> all = AllCheckpoints(run);
  if (all.empty()) throw std::runtime_error(run + ": it has no checkpoints");
  return all;
}

/// The newest complete one of these.
std::string NewestAt(const std::string& path) {
  const std::vector<FoundCheckpoint> all = CheckpointsAt(path);
  const auto newest = std::ranges::find(all, "", &FoundCheckpoint::fault);
  if (newest == all.end()) throw std::runtime_error(path + ": it has no complete checkpoint");
  return newest->folder;
}

int ListCheckpoints(const std::string& path) {
  std::vector<std::vector<std::string>> rows = {{"step", "files", "size", "data", "state"}};
  bool any = false;
  for (const FoundCheckpoint& found : CheckpointsAt(path)) {
    if (!found.fault.empty()) {
      rows.push_back({std::to_string(found.step), "", "", "", "incomplete: " + found.fault});
      continue;
    }
    const auto manifest = ReadManifest(found.folder);
    if (!manifest) continue;  // a run has removed it meanwhile
    any = true;
    rows.push_back({std::to_string(manifest->run.step), std::to_string(manifest->files.size()),
                    Bytes(BytesOf(*manifest)), "place " + std::to_string(manifest->run.data.place),
                    "complete"});
  }
  std::cout << Columns(rows);
  return any ? kExitDone : kExitFailed;
}

/// Reads every value, and compares it with the digests of its tensor.
void VerifyValues(const std::string& folder) {
  SavedState saved(folder);
  for (const auto& [name, tensor] : saved.manifest().tensors) {
    const std::vector<std::int64_t> origin(tensor.shape.size(), 0);
    const TensorPiece whole{.name = name,
                            .global_shape = tensor.shape,
                            .offsets = origin,
                            .value = saved.Read(name, origin, tensor.shape)};
    if (DigestOf(whole) == tensor.digest) continue;
    throw std::runtime_error(folder + ": tensor " + name + " was damaged since it was written");
  }
}

/// The number of files that are on the disks of other nodes.
std::ptrdiff_t NumElsewhere(const std::string& folder) {
  const CheckpointManifest manifest = RequireManifest(folder);
  return std::ssize(manifest.files) - std::ssize(FilesHere(folder, manifest));
}

int VerifyCheckpoints(const std::string& path) {
  bool good = true;
  for (const FoundCheckpoint& found : CheckpointsAt(path)) {
    std::string fault = found.fault;
    if (!fault.empty() && !IsThere(ManifestPath(found.folder))) {
      std::cout << found.folder << ": no manifest.json yet: being written, or interrupted\n";
      continue;
    }
    try {
      const std::string damaged = fault.empty() ? DamagedFile(found.folder) : "";
      if (!damaged.empty()) fault = damaged + ": damaged since it was written";
      if (fault.empty() && NumElsewhere(found.folder) == 0) VerifyValues(found.folder);
    } catch (const std::runtime_error& e) {
      fault = e.what();
    }
    if (fault.empty()) {
      const CheckpointManifest manifest = RequireManifest(found.folder);
      std::cout << found.folder << ": sound, " << Counted(std::ssize(manifest.files), "file")
                << ", " << Bytes(BytesOf(manifest));
      if (const auto elsewhere = NumElsewhere(found.folder); elsewhere > 0) {
        std::cout << "; " << elsewhere << " of them on disks of other nodes: not verified here";
      }
      std::cout << '\n';
    } else {
      std::cout << fault << '\n';
    }
    good = good && fault.empty();
  }
  return good ? kExitDone : kExitFailed;
}

/// The largest difference of two tensors, relative to the largest magnitude of the first.
double Distance(SavedState& a, SavedState& b, const std::string& name) {
  const SavedTensor& tensor = *a.Find(name);
  const std::vector<std::int64_t> origin(tensor.shape.size(), 0);
  const Buffer first = a.Read(name, origin, tensor.shape);
  const Buffer second = b.Read(name, origin, tensor.shape);
  const auto value = [](const Buffer& of, std::int64_t i) {
    return of.dtype() == DType::kFloat64 ? of.as<double>()[i]
                                         : static_cast<double>(of.as<float>()[i]);
  };
  double most = 0.0;
  double scale = 0.0;
  for (std::int64_t i = 0; i < first.num_elements(); ++i) {
    const double difference = std::abs(value(first, i) - value(second, i));
    most = std::isfinite(difference) ? std::max(most, difference)
                                     : std::numeric_limits<double>::infinity();
    scale = std::max(scale, std::abs(value(first, i)));
  }
  return scale > 0.0 && std::isfinite(scale) ? most / scale : most;
}

/// The tensors of one kind in two checkpoints.
struct KindDifference {
  std::int64_t equal = 0;
  std::int64_t different = 0;
  double most = 0.0;
  std::string worst = {};
};

int CompareCheckpoints(const std::string& before, const std::string& after) {
  SavedState a(NewestAt(before));
  SavedState b(NewestAt(after));
  for (const SavedState* saved : {&a, &b}) {
    const auto fault = FirstFault(saved->folder(), saved->manifest());
    if (fault) throw std::runtime_error(*fault);
  }
  std::map<std::string, KindDifference> kinds;
  std::vector<std::string> others;
  for (const auto& [name, tensor] : a.manifest().tensors) {
    const SavedTensor* const other = b.Find(name);
    if (other == nullptr || other->shape != tensor.shape) {
      others.push_back("  " + name + ": " + ToString(tensor.shape) + " and " +
                       (other == nullptr ? "not there" : ToString(other->shape)) + "\n");
      continue;
    }
    KindDifference& kind = kinds[name.substr(0, name.find('/'))];
    if (other->type == tensor.type && other->digest == tensor.digest) {
      ++kind.equal;
      continue;
    }
    const double distance = Distance(a, b, name);
    ++(distance == 0.0 ? kind.equal : kind.different);
    if (distance <= kind.most) continue;
    kind.most = distance;
    kind.worst = name;
  }
  for (const auto& [name, tensor] : b.manifest().tensors) {
    if (a.Find(name) == nullptr) {
      others.push_back("  " + name + ": not there and " + ToString(tensor.shape) + "\n");
    }
  }
  const RunState& first = a.manifest().run;
  const RunState& second = b.manifest().run;
  std::cout << a.folder() << ": after " << Counted(first.step, "step") << ", place "
            << first.data.place << " of the data\n"
            << b.folder() << ": after " << Counted(second.step, "step") << ", place "
            << second.data.place << '\n';
  const auto every = [](const std::string&, const KeySpec&) { return true; };
  const std::string keys =
      DescribeDifferences(KeyLines(ConfigurationOf(b.manifest(), b.folder()), every),
                          KeyLines(ConfigurationOf(a.manifest(), a.folder()), every), "the first");
  if (!keys.empty()) std::cout << "configuration: " << keys << '\n';
  std::vector<std::vector<std::string>> rows = {
      {"tensors", "equal", "differ", "most, of a maximum", ""}};
  bool same = others.empty();
  for (const auto& [kind, difference] : kinds) {
    rows.push_back({kind, std::to_string(difference.equal), std::to_string(difference.different),
                    Formatted("%.1e", difference.most), difference.worst});
    same = same && difference.different == 0;
  }
  std::cout << Columns(rows);
  for (const std::string& line : others) std::cout << line;
  return same ? kExitDone : kExitFailed;
}

}  // namespace

int InspectCheckpoint(const std::string& path) {
  SavedState saved(NewestAt(path));
  const std::string& folder = saved.folder();
  const CheckpointManifest& manifest = saved.manifest();
  for (const CheckpointFile& file : FilesHere(folder, manifest)) {
    OpenShardFile(folder, manifest.run.step, file);
  }
  const DataPosition& data = manifest.run.data;
  std::cout << folder << ": a checkpoint after " << Counted(manifest.run.step, "step") << " of "
            << manifest.run.steps << ", " << Counted(std::ssize(manifest.files), "file") << ", "
            << Bytes(BytesOf(manifest)) << '\n';
  std::cout << "  next in the data: place " << data.place;
  if (data.rows > 0) std::cout << " of an order with " << Counted(data.rows, "row") << " an epoch";
  std::cout << '\n';
  struct Part {
    std::int64_t parameters = 0;
    bool trained = false;
  };
  std::map<std::string, Part> parts;
  for (const auto& [name, tensor] : manifest.tensors) {
    const std::string plain = name.substr(name.find('/') + 1);
    Part& part = parts[PartNameOf(plain)];
    if (name == StoredName(TensorKind::kParameter, plain)) {
      part.parameters += NumElements(tensor.shape);
    } else {
      part.trained = true;
    }
  }
  for (const auto& [name, part] : parts) {
    std::cout << "  " << name << ": " << Millions(part.parameters) << " parameters, "
              << (part.trained ? "trained" : "frozen") << '\n';
  }
  for (const CheckpointFile& file : manifest.files) {
    std::cout << "  " << file.name << "  " << Bytes(file.bytes) << ", by " << file.process
              << (file.disk.empty() ? "" : ", on the disk of " + file.disk) << '\n';
  }
  return kExitDone;
}

void AddCheckpointVerbs(CLI::App& ckpt, Command& command) {
  struct Arguments {
    std::string run = "latest";
    std::string other;
  };
  auto arguments = std::make_shared<Arguments>();
  auto* list = ckpt.add_subcommand("ls",
                                   "List the checkpoints of a run, newest first.\n"
                                   "Exit code: 0 done, 1 none is complete, 2 wrong arguments.");
  list->add_option("RUN", arguments->run, "a run directory; latest or NAME as for --resume")
      ->capture_default_str();
  SetCommand(*list, command, [arguments] { return ListCheckpoints(FindRun(arguments->run)); });
  auto* verify = ckpt.add_subcommand(
      "verify",
      "Read every byte of checkpoints and compare it with the digests in their manifests.\n"
      "Exit code: 0 all are sound, 1 one is damaged or incomplete, 2 wrong arguments.");
  verify->add_option("DIR", arguments->run, kRunOrCheckpoint)->required()->transform(FindRun);
  SetCommand(*verify, command, [arguments] { return VerifyCheckpoints(arguments->run); });
  auto* diff = ckpt.add_subcommand(
      "diff",
      "Compare two checkpoints, of any layouts: step, place in the data, configuration and\n"
      "tensors. Reads the values of those whose digests differ.\n"
      "Exit code: 0 the tensors are equal, 1 they differ, 2 wrong arguments.");
  diff->add_option("A", arguments->run, kRunOrCheckpoint)->required()->transform(FindRun);
  diff->add_option("B", arguments->other, kRunOrCheckpoint)->required()->transform(FindRun);
  SetCommand(*diff, command,
             [arguments] { return CompareCheckpoints(arguments->run, arguments->other); });
}

}  // namespace troupe
