#include "data/counted_set.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Throws FaultError if the row does not fit.
void Measure(const LlavaRow& row, const SampleFormat& format, CountedSet& counted) {
  const Sample sample = BuildSample(counted.set, row, format);
  counted.num_labels.back() = sample.num_labels();
  counted.most_tokens = std::max(counted.most_tokens, sample.num_uncut_tokens);
  if (sample.cut()) ++counted.num_cut;
  const auto empty = [](const std::vector<std::string>& files) { return files.empty(); };
  if (std::all_of(row.files.begin(), row.files.end(), empty)) ++counted.num_without_files;
}

}  // namespace

CountedSet CountSet(const std::string& file, const SampleFormat& format, FileDepth depth,
                    const std::function<void(const DataFault&)>& report) {
  CountedSet counted;
  try {
    counted.set = ReadLlava(file, format.fields);
  } catch (const FaultError& error) {
    counted.set = {file, {}, {error.fault()}};
  }
  auto fault = counted.set.faults.cbegin();
  for (LlavaRow& row : counted.set.rows) {
    counted.num_labels.push_back(0);
    if (!row.usable) {
      report(*fault++);
      continue;
    }
    try {
      Measure(row, format, counted);
    } catch (const FaultError& error) {
      row.usable = false;
      report(error.fault());
    }
  }
  for (; fault != counted.set.faults.cend(); ++fault) report(*fault);
  counted.files = CheckFiles(counted.set, format, depth, report);
  return counted;
}

}  // namespace troupe
