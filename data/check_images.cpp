#include "data/check_images.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <sched.h>
#include <thread>
#include <utility>
#include <vector>

namespace troupe {
namespace {

/// Rows that a thread takes at once: few enough that threads end together.
constexpr std::int64_t kBlock = 32;
/// Headers are waited for, on network file systems a millisecond each: more threads than cores.
constexpr int kHeaderThreads = 8;

int UsableCores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof(cores), &cores) != 0) return 1;
  return std::max(1, CPU_COUNT(&cores));
}

std::int64_t PixelsOf(const ImageFacts& facts) { return std::int64_t{facts.width} * facts.height; }

void Count(const ImageFacts& facts, ImageSurvey& survey) {
  FormatCount& format = survey.formats[static_cast<std::size_t>(facts.format)];
  ++format.count;
  if (!format.smallest || PixelsOf(facts) < PixelsOf(*format.smallest)) format.smallest = facts;
  if (!format.largest || PixelsOf(facts) > PixelsOf(*format.largest)) format.largest = facts;
}

void Merge(const ImageSurvey& part, ImageSurvey& survey) {
  survey.num_images += part.num_images;
  for (std::size_t i = 0; i < part.formats.size(); ++i) {
    const FormatCount& format = part.formats[i];
    if (format.count == 0) continue;
    const std::int64_t count = survey.formats[i].count + format.count;
    Count(*format.smallest, survey);
    Count(*format.largest, survey);
    survey.formats[i].count = count;
  }
}

using Faults = std::vector<DataFault>;

Faults CheckRows(const LlavaSet& set, std::int64_t begin, ImageDepth depth, ImageSurvey& survey) {
  Faults faults;
  for (std::int64_t i = begin; i < std::min(begin + kBlock, std::ssize(set.rows)); ++i) {
    const LlavaRow& row = set.rows[static_cast<std::size_t>(i)];
    if (!row.usable) continue;
    for (const std::vector<std::string>& images : row.images) {
      for (const std::string& image : images) {
        ++survey.num_images;
        try {
          Count(CheckImage(set.PathOf(image), depth == ImageDepth::kDecode), survey);
        } catch (const std::exception& error) {  // memory for its pixels, too
          faults.push_back({FaultKind::kImage, row.index, row.id, error.what(), row.line});
        }
      }
    }
  }
  return faults;
}

/// Takes the faults of blocks in any order, and passes them on in the order of the rows.
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

ImageSurvey CheckImages(const LlavaSet& set, ImageDepth depth,
                        const std::function<void(const DataFault&)>& report) {
  ImageSurvey survey;
  if (depth == ImageDepth::kNone) return survey;
  OrderedReport ordered(report);
  std::mutex mutex;  // of `survey` and `ordered`
  std::atomic<std::int64_t> next = 0;
  const auto work = [&] {
    for (std::int64_t begin = next.fetch_add(kBlock); begin < std::ssize(set.rows);
         begin = next.fetch_add(kBlock)) {
      ImageSurvey part;
      Faults faults = CheckRows(set, begin, depth, part);
      const std::lock_guard lock(mutex);
      Merge(part, survey);
      ordered.Add(begin, std::move(faults));
    }
  };
  const int wanted = depth == ImageDepth::kDecode ? UsableCores() : kHeaderThreads;
  const auto blocks = static_cast<int>((std::ssize(set.rows) + kBlock - 1) / kBlock);
  std::vector<std::jthread> threads;
  for (int i = 1; i < std::min(wanted, blocks); ++i) threads.emplace_back(work);
  work();
  threads.clear();
  return survey;
}

}  // namespace troupe
