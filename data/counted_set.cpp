#include "data/counted_set.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "files/usable_cores.hpp"

namespace troupe {
namespace {

/// Rows that a thread takes at once: few, so that all threads end at about the same time.
constexpr std::int64_t kBlock = 32;
/// Reading headers mostly waits, about a millisecond each on network file systems, so there are
/// more threads than cores.
constexpr int kHeaderThreads = 8;

std::int64_t PixelsOf(const ImageFacts& facts) { return std::int64_t{facts.width} * facts.height; }

void Count(const ImageFacts& facts, FileSurvey& survey) {
  FormatCount& format = survey.formats[static_cast<std::size_t>(facts.format)];
  ++format.count;
  if (!format.smallest || PixelsOf(facts) < PixelsOf(*format.smallest)) format.smallest = facts;
  if (!format.largest || PixelsOf(facts) > PixelsOf(*format.largest)) format.largest = facts;
}

using Faults = std::vector<DataFault>;

/// The files of kBlock rows.
struct Block {
  std::int64_t num_files = 0;
  std::vector<ImageFacts> images;
  Faults faults;
};

Block CheckRows(const LlavaSet& set, const SampleFormat& format, std::int64_t begin, bool decode) {
  Block block;
  for (std::int64_t i = begin; i < std::min(begin + kBlock, std::ssize(set.rows)); ++i) {
    const LlavaRow& row = set.rows[static_cast<std::size_t>(i)];
    if (!row.usable) continue;
    for (std::size_t field = 0; field < row.files.size(); ++field) {
      for (const std::string& file : row.files[field]) {
        ++block.num_files;
        try {
          const auto facts = format.items[field].preprocessor->Check(set.PathOf(file), decode);
          if (facts) block.images.push_back(*facts);
        } catch (const std::exception& error) {  // includes failed allocations of pixels
          block.faults.push_back(row.Fault(FaultKind::kItem, error.what()));
        }
      }
    }
  }
  return block;
}

/// Takes the faults of blocks in any order and reports them in the order of the rows.
class OrderedReport {
 public:
  explicit OrderedReport(const std::function<void(const DataFault&)>& report) : report_(report) {}

  void Add(std::int64_t begin, Faults faults) {
    waiting_[begin] = std::move(faults);
    for (auto next = waiting_.begin(); next != waiting_.end() && next->first == next_;
         next = waiting_.erase(next), next_ += kBlock) {
      for (const DataFault& fault : next->second) report_(fault);
    }
  }

 private:
  const std::function<void(const DataFault&)>& report_;
  std::map<std::int64_t, Faults> waiting_;
  std::int64_t next_ = 0;
};

/// Throws FaultError if the row does not fit.
void Measure(const LlavaRow& row, const SampleFormat& format, CountedSet& counted) {
  const Sample sample = BuildSample(counted.set, row, format);
  counted.num_labels.back() = sample.num_labels();
  counted.num_tokens.back() = std::ssize(sample.tokens);
  std::ranges::copy(sample.lengths, counted.lengths.end() - std::ssize(sample.lengths));
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
    counted.num_tokens.push_back(0);
    counted.lengths.resize(counted.lengths.size() + format.fields.size(), 0);
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

FileSurvey CheckFiles(const LlavaSet& set, const SampleFormat& format, FileDepth depth,
                      const std::function<void(const DataFault&)>& report) {
  FileSurvey survey;
  if (depth == FileDepth::kNone) return survey;
  const bool decode = depth == FileDepth::kDecode;
  OrderedReport ordered(report);
  std::mutex mutex;  // guards `survey` and `ordered`
  std::atomic<std::int64_t> next = 0;
  const auto work = [&] {
    for (std::int64_t begin = next.fetch_add(kBlock); begin < std::ssize(set.rows);
         begin = next.fetch_add(kBlock)) {
      Block block = CheckRows(set, format, begin, decode);
      const std::lock_guard lock(mutex);
      survey.num_files += block.num_files;
      for (const ImageFacts& image : block.images) Count(image, survey);
      ordered.Add(begin, std::move(block.faults));
    }
  };
  const int wanted = decode ? UsableCores() : kHeaderThreads;
  const auto blocks = static_cast<int>((std::ssize(set.rows) + kBlock - 1) / kBlock);
  std::vector<std::jthread> threads;
  for (int i = 1; i < std::min(wanted, blocks); ++i) threads.emplace_back(work);
  work();
  threads.clear();
  return survey;
}

}  // namespace troupe
