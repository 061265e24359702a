#include "data/row_set.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "files/sha256.hpp"
#include "files/usable_cores.hpp"

namespace troupe {
namespace {

/// Part of every key. Change it when the same bytes give other samples or records.
constexpr const char* kIndexVersion = "3";
constexpr std::size_t kKeyDigits = 32;
constexpr std::size_t kSetDigits = 16;
/// An index in memory takes a descriptor for as long as the job runs.
constexpr std::size_t kMostInMemory = 64;
constexpr std::size_t kMostOpen = 64;

/// Names the index of a file. Links to one file share an index, since they have the same inode. Of a list the
/// folder counts, too: its images lie there.
std::string KeyOf(const Shard& shard, const SetTerms& terms) {
  const RowFormat& format = FormatOfFile(shard.path);
  std::string text = std::string(kIndexVersion) + " " + std::to_string(shard.inode) + " " +
                     std::to_string(shard.size) + " " + std::to_string(shard.modified_ns) + " " +
                     std::to_string(static_cast<int>(terms.depth)) + " " + terms.format_key;
  if (!format.holds_items()) {
    text += " " + std::filesystem::absolute(shard.path).parent_path().string();
  }
  return Sha256Of(text + std::filesystem::path(shard.path).extension().string())
      .substr(0, kKeyDigits);
}

/// Thrown while an index is built: not all rows of the file can be found.
struct NotWhole {};

}  // namespace

std::optional<StoredIndex> FindIndex(const std::string& path, std::size_t num_encoders,
                                     const SetTerms& terms) {
  const IndexCache cache(terms.cache, terms.cache_bytes);
  const std::string key = KeyOf(LookAt(path), terms);
  const auto index = cache.Find(key, num_encoders);
  if (index == nullptr) return std::nullopt;
  return StoredIndex{cache.PathOf(key), index->digest()};
}

RowSet::RowSet(const std::vector<std::string>& sources, std::shared_ptr<const SampleFormat> format,
               const SetTerms& terms, const ReportFault& report)
    : depth_(terms.depth), format_(std::move(format)) {
  LookAtFiles(sources, terms);
  const std::map<std::string, Indexed> indexed = IndexAll(terms);
  std::string names;
  std::string facts;
  for (File& file : files_) {
    const Indexed& known = indexed.at(file.key);
    file.digest = known.digest;
    file.first_row = sums_.rows;
    file.num_rows = known.sums.rows;
    file.index = known.index;
    const auto at = static_cast<std::size_t>(&file - files_.data());
    const auto source = std::ranges::upper_bound(source_ends_, at) - source_ends_.begin();
    for (const DataFault& fault : known.faults) {
      report(fault, {file.shard.path, static_cast<std::size_t>(source), sums_.rows});
    }
    sums_ += known.sums;
    names += std::filesystem::path(file.shard.path).filename().string() + " " + known.digest + "\n";
    facts += known.facts_digest + "\n";
  }
  for (const std::size_t end : source_ends_) names += std::to_string(end) + "\n";
  digest_ = Sha256Of(names).substr(0, kSetDigits);
  facts_digest_ = Sha256Of(names + facts).substr(0, kSetDigits);
  std::size_t first = 0;
  std::int64_t begin = 0;
  for (const std::size_t end : source_ends_) {
    std::int64_t rows = begin;
    for (; first < end; ++first) rows += files_[first].num_rows;
    sources_.push_back({begin, rows});
    begin = rows;
  }
}

void RowSet::LookAtFiles(const std::vector<std::string>& sources, const SetTerms& terms) {
  std::int64_t bytes = 0;
  for (const std::string& source : sources) {
    std::string looked_at = source;
    try {
      for (const std::string& path : ExpandPaths(source)) {
        looked_at = path;
        const Shard& shard = files_.emplace_back().shard = LookAt(path);
        files_.back().key = KeyOf(shard, terms);
        bytes += shard.size;
      }
    } catch (const std::runtime_error& error) {
      throw DataError(looked_at + ": " + error.what());
    }
    source_ends_.push_back(files_.size());
  }
  if (bytes < terms.small_bytes && files_.size() <= kMostInMemory) return;
  try {
    cache_ = std::make_shared<const IndexCache>(terms.cache, terms.cache_bytes);
  } catch (const std::runtime_error& error) {
    throw DataError(std::string("data.cache: ") + error.what());
  }
}

RowSet::Indexed RowSet::IndexFile(const File& file, const SetTerms& terms, int threads,
                                  const std::function<void(std::int64_t)>& measured,
                                  const std::function<void(const std::string&)>& waits) const {
  Indexed indexed;
  bool built = false;
  const auto build = [&](RowIndex& index) {
    built = true;
    indexed.faults.clear();
    const MeasuredFile result =
        MeasureFile({file.shard.path}, *format_, {terms.depth, threads, measured}, index,
                    [&](const DataFault& fault) { indexed.faults.push_back(fault); });
    if (!result.whole) throw NotWhole();
  };
  try {
    std::shared_ptr<const RowIndex> index;
    if (cache_ == nullptr) {
      const auto own = std::make_shared<RowIndex>(format_->fields.size());
      build(*own);
      indexed.index = index = own;
    } else {
      // A user may have repaired the images of a list. A disk may have failed while a shard was read.
      const auto is_final = [&](const RowIndex& found) {
        if (found.sums().bad == 0) return true;
        if (!FormatOfFile(file.shard.path).holds_items()) return false;
        indexed.faults = FaultsOf(file, found);
        return !indexed.faults.empty();
      };
      index = cache_->Get(file.key, format_->fields.size(), build, is_final,
                          [&] { waits(file.shard.path); });
      if (!built && index->sums().bad > 0 && indexed.faults.empty()) {
        indexed.faults = FaultsOf(file, *index);  // another job has just built it
      }
    }
    indexed.sums = index->sums();
    indexed.digest = index->digest();
    indexed.facts_digest = index->facts_digest();
  } catch (const NotWhole&) {  // its last fault says so
  }
  return indexed;
}

std::map<std::string, RowSet::Indexed> RowSet::IndexAll(const SetTerms& terms) const {
  std::map<std::string, Indexed> all;  // links to one file have one index
  std::vector<std::pair<const File*, Indexed*>> files;
  for (const File& file : files_) {
    const auto [entry, is_new] = all.try_emplace(file.key);
    if (is_new) files.emplace_back(&file, &entry->second);
  }
  const int cores = UsableCores();
  const auto count = static_cast<int>(files.size());
  const int each = std::max(1, cores / std::max(1, count));
  std::mutex mutex;  // guards `progress` and `failure`
  IndexProgress progress{.files = count};
  std::exception_ptr failure;
  std::atomic<std::size_t> next = 0;
  const auto tell = [&](std::int64_t rows, std::int64_t done) {
    const std::lock_guard lock(mutex);
    progress.rows += rows;
    progress.files_done += done;
    if (terms.progress) terms.progress(progress);
  };
  const auto tell_wait = [&](const std::string& file) {
    const std::lock_guard lock(mutex);
    IndexProgress waiting = progress;
    waiting.waits_for = file;
    if (terms.progress) terms.progress(waiting);
  };
  const auto take_files = [&] {
    for (std::size_t i = next++; i < files.size(); i = next++) {
      try {
        *files[i].second = IndexFile(
            *files[i].first, terms, each, [&](std::int64_t rows) { tell(rows, 0); }, tell_wait);
        tell(0, 1);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        next = files.size();
      }
    }
  };
  std::vector<std::jthread> threads;
  for (int i = 1; i < std::min(cores, count); ++i) threads.emplace_back(take_files);
  take_files();
  threads.clear();
  if (failure) std::rethrow_exception(failure);
  return all;
}

std::vector<DataFault> RowSet::FaultsOf(const File& file, const RowIndex& index) const {
  std::vector<DataFault> faults;
  const RowOrigin origin{file.shard.path};
  if (AddFaultsOf(origin, *format_, depth_, index.num_rows(), index, faults)) return faults;
  return {};
}

std::vector<std::int64_t> RowSet::SizesOf(std::size_t source) const {
  std::vector<std::int64_t> sizes;
  const std::size_t begin = source == 0 ? 0 : source_ends_[source - 1];
  for (std::size_t i = begin; i < source_ends_[source]; ++i) sizes.push_back(files_[i].num_rows);
  return sizes;
}

const RowSet::File& RowSet::At(std::int64_t row) const {
  if (row < 0 || row >= num_rows()) {
    throw std::invalid_argument("rows: expected one in [0, " + std::to_string(num_rows()) +
                                "), got " + std::to_string(row));
  }
  return *std::prev(std::ranges::upper_bound(files_, row, {}, &File::first_row));
}

std::shared_ptr<const RowFile> RowSet::Opened(const File& file) const {
  const std::lock_guard lock(open_->mutex);
  auto& latest = open_->latest;
  const auto found = std::ranges::find(
      latest, &file, &std::pair<const File*, std::shared_ptr<const RowFile>>::first);
  if (found != latest.end()) {
    latest.splice(latest.begin(), latest, found);
    return latest.front().second;
  }
  std::shared_ptr<const RowIndex> index = file.index;
  if (index == nullptr) {
    const auto changed = [&] {
      return FaultError(file.shard.path,
                        {FaultKind::kFile, 0, "", "it has changed since the job started"});
    };
    // Another job may have had it removed.
    index = cache_->Get(file.key, format_->fields.size(), [&](RowIndex& made) {
      const MeasuredFile measured = MeasureFile(
          {file.shard.path}, *format_, {depth_, UsableCores()}, made, [](const DataFault&) {});
      if (!measured.whole || made.digest() != file.digest) throw changed();
    });
    if (index->digest() != file.digest) throw changed();
  }
  latest.emplace_front(&file, std::make_shared<const RowFile>(RowOrigin{file.shard.path}, index));
  if (latest.size() > kMostOpen) latest.pop_back();
  return latest.front().second;
}

RowFacts RowSet::FactsOf(std::int64_t row) const {
  const File& file = At(row);
  return Opened(file)->FactsOf(row - file.first_row);
}

StoredRow RowSet::Read(std::int64_t row) const {
  const File& file = At(row);
  return {{file.shard.path}, Opened(file)->Read(row - file.first_row, format_->fields)};
}

}  // namespace troupe
