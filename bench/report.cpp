#include "bench/report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <stdlib.h>
#include <thread>
#include <utility>

namespace troupe::bench {
namespace {

double MedianOf(std::vector<double>& samples) {
  std::sort(samples.begin(), samples.end());
  const std::size_t middle = samples.size() / 2;
  return samples.size() % 2 == 1 ? samples[middle] : (samples[middle - 1] + samples[middle]) / 2;
}

std::string CpuName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

std::string Sanitizer() {
#if defined(__SANITIZE_ADDRESS__)
  return "address";
#elif defined(__SANITIZE_THREAD__)
  return "thread";
#else
  return "";
#endif
}

bool Asserts() {
#ifdef NDEBUG
  return false;
#else
  return true;
#endif
}

bool Optimized() {
#ifdef __OPTIMIZE__
  return true;
#else
  return false;
#endif
}

}  // namespace

Summary Summarize(std::vector<double> samples) {
  if (samples.empty()) throw std::invalid_argument("a summary of no samples");
  Summary summary;
  summary.median = MedianOf(samples);
  summary.min = samples.front();
  summary.max = samples.back();
  for (double& sample : samples) sample = std::abs(sample - summary.median);
  summary.mad = MedianOf(samples);
  return summary;
}

std::string Fixed(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f", decimals, value);
  return text;
}

Report::Report(int argc, char** argv, const std::string& name, std::vector<std::string> columns)
    : columns_(std::move(columns)) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (i + 1 < argc && argument == "--json") {
      json_path_ = argv[++i];
    } else if (i + 1 < argc && argument == "--commit") {
      commit_ = argv[++i];
    } else {
      throw std::invalid_argument(name + ": unknown argument " + argument +
                                  "; known: --json FILE, --commit TEXT");
    }
  }
  result_["benchmark"] = name;
  result_["rows"] = nlohmann::json::array();
  std::cout << "== " << name << '\n';
  PrintConditions();
  for (const std::string& column : columns_) {
    std::printf("%*s  ", static_cast<int>(std::max<std::size_t>(10, column.size())),
                column.c_str());
  }
  std::printf("\n");
  std::fflush(stdout);
}

void Report::PrintConditions() {
  double load = 0.0;
  if (getloadavg(&load, 1) != 1) load = -1.0;
  const unsigned cores = std::thread::hardware_concurrency();
  nlohmann::json& c = result_["conditions"];
  c = {{"commit", commit_},        {"compiler", __VERSION__}, {"flags", TROUPE_BENCH_FLAGS},
       {"cpu", CpuName()},         {"cores", cores},          {"load_average_1min", load},
       {"sanitizer", Sanitizer()}, {"asserts", Asserts()}};
  std::cout << "commit " << commit_ << ", gcc " << __VERSION__ << ", " << TROUPE_BENCH_FLAGS << '\n'
            << CpuName() << ", " << cores << " cores, load average " << Fixed(load, 2) << '\n';
  if (!Optimized()) AddLine("WARNING: built without optimisation");
  if (Asserts()) AddLine("WARNING: built with assertions");
  if (!Sanitizer().empty()) AddLine("WARNING: built with the " + Sanitizer() + " sanitizer");
  // Other load takes time from a benchmark that needs every core.
  if (load > 0.25 * cores) AddLine("WARNING: high load, others are computing on this machine");
  std::cout << std::flush;
}

void Report::AddRow(const std::vector<std::string>& cells, nlohmann::json record) {
  if (cells.size() != columns_.size()) throw std::logic_error("a row with other columns");
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::printf("%*s  ", static_cast<int>(std::max<std::size_t>(10, columns_[i].size())),
                cells[i].c_str());
  }
  std::printf("\n");
  std::fflush(stdout);
  result_["rows"].push_back(std::move(record));
}

void Report::AddLine(const std::string& line) {
  std::cout << line << '\n' << std::flush;
  result_["notes"].push_back(line);
}

void Report::AddFault(const std::string& fault) {
  ++num_faults_;
  AddLine("WRONG: " + fault);
}

int Report::Finish() {
  result_["faults"] = num_faults_;
  if (!json_path_.empty()) {
    std::ofstream file(json_path_);
    file << result_.dump(1) << '\n';
    if (!file.flush()) throw std::runtime_error(json_path_ + ": cannot be written");
  }
  std::cout << '\n';
  return num_faults_ == 0 ? 0 : 1;
}

}  // namespace troupe::bench
