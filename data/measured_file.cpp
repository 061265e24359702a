#include "data/measured_file.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "data/rows/row_file.hpp"

namespace troupe {
namespace {

/// Rows that a thread takes at once: few, so that all threads end at about the same time.
constexpr std::int64_t kBlock = 32;
/// Reading headers mostly waits, about a millisecond each on network file systems, so there are
/// more threads than cores.
constexpr int kHeaderThreads = 8;

std::int64_t PixelsOf(const ImageFacts& facts) { return std::int64_t{facts.width} * facts.height; }

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

/// What the rows of a block add.
struct Block {
  RowSums sums;
  std::int64_t num_files = 0;
  std::vector<ImageFacts> images;
  Faults faults;
};

/// Checks the files that a row names. Returns whether all can be used.
bool CheckItems(const RowOrigin& origin, const LlavaRow& row, const SampleFormat& format,
                bool decode, Block& block) {
  const std::size_t before = block.faults.size();
  for (std::size_t field = 0; field < row.files.size(); ++field) {
    for (const std::string& file : row.files[field]) {
      ++block.num_files;
      try {
        const auto facts =
            format.items[field].preprocessor->Check(row.ItemOf(origin, file), decode);
        if (facts) block.images.push_back(*facts);
      } catch (const std::exception& error) {  // includes failed allocations of pixels
        DataFault& fault = block.faults.emplace_back(row.Fault(FaultKind::kItem, error.what()));
        fault.replaceable = true;
      }
    }
  }
  return block.faults.size() == before;
}

/// Measures one row, of which `facts` knows the place. Throws FaultError if it does not fit.
void Measure(const RowFile& file, std::int64_t index, const SampleFormat& format, FileDepth depth,
             RowFacts& facts, Block& block) {
  const LlavaRow row = file.ReadFirst(index, format.fields, facts);
  const Sample sample = BuildSample(file.origin(), row, format);
  facts.cut = sample.cut();
  facts.tokens = std::ssize(sample.tokens);
  facts.labels = sample.num_labels();
  facts.lengths = sample.lengths;
  if (depth != FileDepth::kNone &&
      !CheckItems(file.origin(), row, format, depth == FileDepth::kDecode, block)) {
    ++block.sums.replaceable;
    if (facts.labels > 0) ++block.sums.replaceable_with_labels;
    return;
  }
  facts.usable = true;
  const auto empty = [](const std::vector<std::string>& files) { return files.empty(); };
  if (std::all_of(row.files.begin(), row.files.end(), empty)) ++block.sums.without_files;
  block.sums.most_tokens = std::max(block.sums.most_tokens, sample.num_uncut_tokens);
  if (facts.cut) ++block.sums.cut;
  block.sums.tokens += facts.tokens;
  if (facts.labels > 0) ++block.sums.with_labels;
}

Block MeasureRows(const RowFile& file, const SampleFormat& format, FileDepth depth,
                  std::int64_t begin, std::int64_t end, RowIndex& index) {
  Block block;
  for (std::int64_t row = begin; row < end; ++row) {
    RowFacts facts = index.Get(row);
    try {
      Measure(file, row, format, depth, facts, block);
    } catch (const FaultError& error) {
      block.faults.push_back(error.fault());
    }
    if (!facts.usable) ++block.sums.bad;
    index.Set(row, facts);
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

}  // namespace

void FormatCount::Add(const ImageFacts& facts) {
  ++count;
  if (!smallest || PixelsOf(facts) < PixelsOf(*smallest)) smallest = facts;
  if (!largest || PixelsOf(facts) > PixelsOf(*largest)) largest = facts;
}

void FormatCount::Add(const FormatCount& others) {
  const std::int64_t all = count + others.count;
  if (others.smallest) Add(*others.smallest);
  if (others.largest) Add(*others.largest);
  count = all;
}

MeasuredFile MeasureFile(const RowOrigin& origin, const SampleFormat& format,
                         const MeasureTerms& terms, RowIndex& index,
                         const std::function<void(const DataFault&)>& report) {
  MeasuredFile measured;
  std::string failure;
  try {
    FormatOfFile(origin.file).Scan(origin.file, [&](const RowSpan& span) { index.Append(span); });
  } catch (const IndexError&) {
    throw;  // no fault of the file
  } catch (const std::runtime_error& error) {
    failure = error.what();
    measured.whole = false;
  }
  index.Flush();
  const std::int64_t num_rows = index.num_rows();
  if (num_rows > 0) {
    const RowFile file(origin);
    OrderedReport ordered(report);
    std::mutex mutex;  // guards `measured` and `ordered`
    const bool waits = terms.threads > 1 && terms.depth != FileDepth::kDecode;
    ForBlocks(num_rows, waits ? std::max(terms.threads, kHeaderThreads) : terms.threads,
              [&](std::int64_t begin, std::int64_t end) {
                Block block = MeasureRows(file, format, terms.depth, begin, end, index);
                if (terms.measured) terms.measured(end - begin);
                const std::lock_guard lock(mutex);
                measured.sums += block.sums;
                measured.files.num_files += block.num_files;
                for (const ImageFacts& image : block.images) {
                  measured.files.formats[static_cast<std::size_t>(image.format)].Add(image);
                }
                ordered.Add(begin, std::move(block.faults));
              });
  }
  if (!measured.whole) report({FaultKind::kFile, num_rows, "", failure});
  measured.sums.rows = num_rows;
  index.Finish(measured.sums);
  return measured;
}

void AddFaultsOf(const RowOrigin& origin, const SampleFormat& format, FileDepth depth,
                 std::int64_t row, const RowIndex& index, std::vector<DataFault>& faults) {
  Block block;
  RowFacts facts = index.Get(row);
  try {
    Measure(RowFile(origin), row, format, depth, facts, block);
  } catch (const FaultError& error) {
    block.faults.push_back(error.fault());
  }
  std::ranges::move(block.faults, std::back_inserter(faults));
}

}  // namespace troupe
