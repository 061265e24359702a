#include "cli/run_directory.hpp"

#include <array>
#include <cstddef>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <span>
#include <stdexcept>
#include <system_error>

#include "checkpoint/manifest.hpp"
#include "checkpoint/output_file.hpp"
#include "checkpoint/run_checkpoints.hpp"

namespace troupe {
namespace {

std::string Timestamp() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y%m%d-%H%M%S", &utc);
  return text.data();
}

std::string TraceName(std::ptrdiff_t start) {
  return start == 1 ? "trace.bin" : "trace-" + std::to_string(start) + ".bin";
}

}  // namespace

RunDirectory::RunDirectory(const RunConfig& run, const std::string& resolved_toml,
                           const std::string& into)
    : path_(into) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!into.empty()) {
    fs::create_directories(into, error);
    if (error) throw std::runtime_error(into + ": cannot create: " + error.message());
    const auto warn = [](const std::string& line) { std::cerr << "troupe: warning: " << line << '\n'; };
    if (const auto newest = NewestCheckpoint(into, warn)) {
      checkpoint_ = *newest;
      steps_done_ = ReadManifest(checkpoint_)->step;
    }
  }
  if (path_.empty()) fs::create_directories(run.dir, error);
  if (error) throw std::runtime_error(run.dir + ": cannot create: " + error.message());
  const std::string base = run.dir + "/" + run.name + "-" + Timestamp();
  for (int attempt = 1; path_.empty(); ++attempt) {
    const std::string candidate = attempt == 1 ? base : base + "-" + std::to_string(attempt);
    if (fs::create_directory(candidate, error)) path_ = candidate;
    if (error) throw std::runtime_error(candidate + ": cannot create: " + error.message());
  }
  ReplaceFile(File("resolved.toml"),
              [&](OutputFile& file) { file.Write(std::as_bytes(std::span(resolved_toml))); });
}

std::string RunDirectory::NewTraceFile() const {
  return File(TraceName(std::ssize(TraceFiles()) + 1));
}

std::vector<std::string> RunDirectory::TraceFiles() const {
  std::vector<std::string> files;
  std::string name = TraceName(1);
  while (std::filesystem::exists(File(name))) {
    files.push_back(name);
    name = TraceName(std::ssize(files) + 1);
  }
  return files;
}

}  // namespace troupe
