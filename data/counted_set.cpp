#include "data/counted_set.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
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

/// Calls `work` with [begin, end) of kBlock rows at a time, on up to `wanted` threads. Throws the first
/// exception of a call when all threads have ended.
void ForBlocks(std::int64_t num_rows, int wanted,
               const std::function<void(std::int64_t begin, std::int64_t end)>& work) {
  std::atomic<std::int64_t> next = 0;
  std::mutex mutex;  // guards `failure`
  std::exception_ptr failure;
  const auto take_blocks = [&] {
    try {
      for (std::int64_t begin = next.fetch_add(kBlock); begin < num_rows;
           begin = next.fetch_add(kBlock)) {
        work(begin, std::min(begin + kBlock, num_rows));
      }
    } catch (...) {
      next = num_rows;
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  const auto blocks = static_cast<int>((num_rows + kBlock - 1) / kBlock);
  std::vector<std::jthread> threads;
  for (int i = 1; i < std::min(wanted, blocks); ++i) threads.emplace_back(take_blocks);
  take_blocks();
  threads.clear();
  if (failure) std::rethrow_exception(failure);
}

using Faults = std::vector<DataFault>;

/// The files of kBlock rows.
struct Block {
  std::int64_t num_files = 0;
  std::vector<ImageFacts> images;
  Faults faults;
};

Block CheckRows(const LlavaSet& set, const SampleFormat& format, std::int64_t begin,
                std::int64_t end, bool decode) {
  Block block;
  for (std::int64_t i = begin; i < end; ++i) {
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

/// What the rows of a block add to the sums of a set.
struct BlockSums {
  std::int64_t num_cut = 0;
  std::int64_t num_without_files = 0;
  std::int64_t most_tokens = 0;
};

/// Fills what `counted` knows of row `index`. Throws FaultError if the row does not fit.
void Measure(std::size_t index, const SampleFormat& format, CountedSet& counted, BlockSums& sums) {
  const LlavaRow& row = counted.set.rows[index];
  const Sample sample = BuildSample(counted.set, row, format);
  counted.num_labels[index] = sample.num_labels();
  counted.num_tokens[index] = std::ssize(sample.tokens);
  std::ranges::copy(sample.lengths, counted.lengths.begin() +
                                        static_cast<std::ptrdiff_t>(index * format.fields.size()));
  sums.most_tokens = std::max(sums.most_tokens, sample.num_uncut_tokens);
  if (sample.cut()) ++sums.num_cut;
  const auto empty = [](const std::vector<std::string>& files) { return files.empty(); };
  if (std::all_of(row.files.begin(), row.files.end(), empty)) ++sums.num_without_files;
}

/// The fault that reading the list has found in a row.
const DataFault& FaultOfRow(const LlavaSet& set, std::int64_t row) {
  return *std::ranges::lower_bound(set.faults, row, {}, &DataFault::row);
}

/// Measures all usable rows. Rows that do not fit become unusable. Reports these and the others that
/// are not usable, in their order.
void MeasureRows(const SampleFormat& format, CountedSet& counted,
                 const std::function<void(const DataFault&)>& report) {
  std::vector<LlavaRow>& rows = counted.set.rows;
  counted.num_labels.assign(rows.size(), 0);
  counted.num_tokens.assign(rows.size(), 0);
  counted.lengths.assign(rows.size() * format.fields.size(), 0);
  OrderedReport ordered(report);
  std::mutex mutex;  // guards `ordered` and the sums of `counted`
  const int wanted = std::max(UsableCores(), kHeaderThreads);  // tiles need headers of files
  ForBlocks(std::ssize(rows), wanted, [&](std::int64_t begin, std::int64_t end) {
    BlockSums sums;
    Faults faults;
    for (std::int64_t i = begin; i < end; ++i) {
      const auto index = static_cast<std::size_t>(i);
      if (!rows[index].usable) {
        faults.push_back(FaultOfRow(counted.set, i));
        continue;
      }
      try {
        Measure(index, format, counted, sums);
      } catch (const FaultError& error) {
        rows[index].usable = false;
        faults.push_back(error.fault());
      }
    }
    const std::lock_guard lock(mutex);
    ordered.Add(begin, std::move(faults));
    counted.num_cut += sums.num_cut;
    counted.num_without_files += sums.num_without_files;
    counted.most_tokens = std::max(counted.most_tokens, sums.most_tokens);
  });
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
  MeasureRows(format, counted, report);
  for (const DataFault& fault : counted.set.faults) {
    if (fault.row >= std::ssize(counted.set.rows)) report(fault);  // of the file
  }
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
  ForBlocks(std::ssize(set.rows), decode ? UsableCores() : kHeaderThreads,
            [&](std::int64_t begin, std::int64_t end) {
              Block block = CheckRows(set, format, begin, end, decode);
              const std::lock_guard lock(mutex);
              survey.num_files += block.num_files;
              for (const ImageFacts& image : block.images) Count(image, survey);
              ordered.Add(begin, std::move(block.faults));
            });
  return survey;
}

}  // namespace troupe
