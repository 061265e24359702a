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
void ForBlocks(std::int64_t first, std::int64_t num_rows, int wanted,
               const std::function<void(std::int64_t begin, std::int64_t end)>& work) {
  std::atomic<std::int64_t> next = first;
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
  const std::int64_t blocks = (num_rows - first + kBlock - 1) / kBlock;
  std::vector<std::jthread> threads;
  for (std::int64_t i = 1; i < std::min<std::int64_t>(wanted, blocks); ++i)
    threads.emplace_back(take_blocks);
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
    RowFacts facts{.span = index.SpanOf(row), .lengths = {}};
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

/// Saves a partial index at intervals.
class Keeper {
 public:
  Keeper(RowIndex& index, std::chrono::milliseconds every) : index_(index), every_(every) {}

  void KeepIfDue(const IndexPart& part) {
    if (std::chrono::steady_clock::now() - kept_ < every_) return;
    index_.Keep(part);
    kept_ = std::chrono::steady_clock::now();
  }

 private:
  RowIndex& index_;
  std::chrono::milliseconds every_;
  std::chrono::steady_clock::time_point kept_ = std::chrono::steady_clock::now();
};

/// Takes the blocks of a file in any order. Reports their faults and saves the index in the order of the rows.
class OrderedBlocks {
 public:
  OrderedBlocks(const IndexPart& begun, const std::function<void(const DataFault&)>& report,
                Keeper& keeper)
      : part_(begun), report_(report), keeper_(keeper) {}

  void Add(std::int64_t begin, std::int64_t end, Block block) {
    waiting_[begin] = {end, std::move(block)};
    for (auto next = waiting_.begin(); next != waiting_.end() && next->first == part_.measured;
         next = waiting_.erase(next)) {
      const auto& [rows_end, done] = next->second;
      for (const DataFault& fault : done.faults) report_(fault);
      part_.sums += done.sums;
      part_.measured = rows_end;
    }
    if (part_.has_all_places) keeper_.KeepIfDue(part_);
  }
  const RowSums& sums() const { return part_.sums; }

 private:
  IndexPart part_;
  const std::function<void(const DataFault&)>& report_;
  Keeper& keeper_;
  /// By first row, with the row after the last.
  std::map<std::int64_t, std::pair<std::int64_t, Block>> waiting_;
};

/// Appends the rows that the index lacks.
void FindRows(const std::string& path, RowIndex& index, Keeper& keeper) {
  std::optional<RowSpan> last;
  if (index.num_rows() > 0) last = index.SpanOf(index.num_rows() - 1);
  FormatOfFile(path).ScanAfter(path, last, [&](const RowSpan& span) {
    index.Append(span);
    constexpr std::int64_t kSeldom = 4096;
    if (index.num_rows() % kSeldom == 0) keeper.KeepIfDue({.sums = {.rows = index.num_rows()}});
  });
  index.Flush();
}

/// Returns whether a scan can begin after the last row. A larger row may be longer than its record says.
bool CanGoOn(const RowIndex& index) {
  return index.num_rows() > 0 && index.SpanOf(index.num_rows() - 1).size <= kMaxRowBytes;
}

/// Finds the rows of a file. Returns why the scan stopped early; "" if it reached the end of the file.
std::string FindAllRows(const std::string& path, RowIndex& index, Keeper& keeper) {
  if (index.part().has_all_places) return "";
  const bool begun = CanGoOn(index);
  if (!begun) index.Clear();
  try {
    FindRows(path, index, keeper);
    return "";
  } catch (const IndexError&) {
    throw;  // no fault of the file
  } catch (const std::runtime_error& error) {
    if (!begun) {
      index.Flush();
      return error.what();
    }
  }
  index.Clear();  // a scan of the whole file says what is wrong with it
  return FindAllRows(path, index, keeper);
}

/// Returns the part whose rows are still as they were measured. Adds their faults to `faults`.
IndexPart MeasuredPart(const RowOrigin& origin, const SampleFormat& format, FileDepth depth,
                       bool has_all_places, RowIndex& index, Faults& faults) {
  IndexPart part = index.part();
  part.sums.rows = index.num_rows();
  part.has_all_places = has_all_places;
  if (part.sums.bad == 0 || AddFaultsOf(origin, format, depth, part.measured, index, faults)) {
    return part;
  }
  faults.clear();
  part = {.sums = {.rows = part.sums.rows}, .has_all_places = has_all_places};
  index.Keep(part);  // before its rows are measured again
  return part;
}

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
  Keeper keeper(index, terms.keep_every);
  const std::string failure = FindAllRows(origin.file, index, keeper);
  measured.whole = failure.empty();
  const std::int64_t num_rows = index.num_rows();
  Faults known;
  const IndexPart part = MeasuredPart(origin, format, terms.depth, measured.whole, index, known);
  for (const DataFault& fault : known) report(fault);
  if (terms.measured && part.measured > 0) terms.measured(part.measured);
  OrderedBlocks ordered(part, report, keeper);
  if (part.measured < num_rows) {
    const RowFile file(origin);
    std::mutex mutex;  // guards `measured` and `ordered`
    const bool waits = terms.threads > 1 && terms.depth != FileDepth::kDecode;
    ForBlocks(part.measured, num_rows,
              waits ? std::max(terms.threads, kHeaderThreads) : terms.threads,
              [&](std::int64_t begin, std::int64_t end) {
                Block block = MeasureRows(file, format, terms.depth, begin, end, index);
                if (terms.measured) terms.measured(end - begin);
                const std::lock_guard lock(mutex);
                measured.files.num_files += block.num_files;
                for (const ImageFacts& image : block.images) {
                  measured.files.formats[static_cast<std::size_t>(image.format)].Add(image);
                }
                block.images.clear();
                ordered.Add(begin, end, std::move(block));
              });
  }
  if (!measured.whole) report({FaultKind::kFile, num_rows, "", failure});
  measured.sums = ordered.sums();
  if (measured.whole) index.Finish(measured.sums);
  return measured;
}

bool AddFaultsOf(const RowOrigin& origin, const SampleFormat& format, FileDepth depth,
                 std::int64_t end, const RowIndex& index, std::vector<DataFault>& faults) {
  const RowFile file(origin);
  for (std::int64_t row = 0; row < end; ++row) {
    const RowFacts known = index.Get(row);
    if (known.usable) continue;
    Block block;
    RowFacts facts{.span = known.span, .lengths = {}};
    try {
      Measure(file, row, format, depth, facts, block);
    } catch (const FaultError& error) {
      block.faults.push_back(error.fault());
    }
    if (block.faults.empty()) return false;
    std::ranges::move(block.faults, std::back_inserter(faults));
  }
  return true;
}

}  // namespace troupe
