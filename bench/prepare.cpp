// The speed of preparing samples, without actors: `bench_prepare SHARDS TOKENIZER [--threads N] [--out FILE]`.
// Threads take the rows of WebDataset shards (*.jpg, *.txt) in turn and read, decode, resize to a square of
// 336 pixels, normalise and tokenize. Then they tokenize the same texts alone. Prints one line of JSON; the
// times of the parts are milliseconds of processor time per row. --out writes of the first rows the number of
// ids, the ids (32 bits each) and the pixels (float32). bench/prepare.py makes the shards and compares.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <ctime>
#include <fstream>
#include <functional>
#include <iostream>
#include <limits>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/program.hpp"
#include "data/images/image.hpp"
#include "data/row_set.hpp"
#include "data/sample.hpp"

namespace troupe::bench {
namespace {

constexpr std::int64_t kSide = 336;
constexpr std::int64_t kTextRounds = 10;
constexpr std::int64_t kWritten = 32;  // rows
constexpr std::array<const char*, 5> kParts = {"read", "decode", "resize", "normalise", "tokenize"};

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Processor time of this thread, which a busy machine changes less.
double ThreadSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

struct Prepared {
  std::vector<float> pixels = std::vector<float>(kSide * kSide * 3);
  Sample sample;
};

/// What one thread did.
struct Tally {
  std::array<double, kParts.size()> seconds{};
  std::int64_t tokens = 0;
};

class Preparation {
 public:
  Preparation(const std::string& shards, const std::string& tokenizer)
      : field_(kSide, kClipImages), format_(std::make_shared<SampleFormat>(PlainFormat())) {
    format_->tokenizer = MakeTokenizer("hf:" + tokenizer, {"<image>"});
    format_->prompt = PromptKind::kPlain;
    SetTerms terms;
    terms.small_bytes = std::numeric_limits<std::int64_t>::max();  // no index on disk
    rows_ = RowSet({shards}, format_, terms, [](const DataFault& fault, const FaultPlace& place) {
      throw std::runtime_error(place.file + ": " + fault.reason);
    });
  }

  std::int64_t num_rows() const { return rows_.num_rows(); }
  StoredRow Read(std::int64_t row) const { return rows_.Read(row); }
  Sample SampleOf(const StoredRow& stored) const {
    return BuildSample(stored.origin, stored.row, *format_);
  }

  void Prepare(std::int64_t row, Prepared& out, Tally& tally) const {
    double begin = ThreadSeconds();
    std::size_t part = 0;
    const auto next = [&] {
      const double now = ThreadSeconds();
      tally.seconds[part++] += now - begin;
      begin = now;
    };
    const StoredRow stored = Read(row);
    const ItemFile file = stored.row.ItemOf(stored.origin, stored.row.files[0][0]);
    next();
    const Image image = ReadImage(file);
    next();
    const std::vector<std::uint8_t> squares = ToSquares(image, field_);
    next();
    Normalise(squares, field_, out.pixels);
    next();
    out.sample = SampleOf(stored);
    next();
    tally.tokens += std::ssize(out.sample.tokens);
  }

 private:
  ImageField field_;
  std::shared_ptr<SampleFormat> format_;
  RowSet rows_;
};

/// Calls `work` for each number below `count`, on as many threads as there are tallies. Returns seconds.
double OnThreads(std::vector<Tally>& tallies, std::int64_t count,
                 const std::function<void(std::int64_t, Prepared&, Tally&)>& work) {
  std::atomic<std::int64_t> next = 0;
  const auto begin = Clock::now();
  std::vector<std::jthread> threads;
  for (Tally& tally : tallies) {
    threads.emplace_back([&] {
      Prepared prepared;
      for (std::int64_t i = next++; i < count; i = next++) work(i, prepared, tally);
    });
  }
  threads.clear();
  return SecondsSince(begin);
}

std::int64_t TokensOf(const std::vector<Tally>& tallies) {
  std::int64_t sum = 0;
  for (const Tally& tally : tallies) sum += tally.tokens;
  return sum;
}

void Measure(const Preparation& preparation, std::size_t threads) {
  const std::int64_t count = preparation.num_rows();
  std::vector<Tally> whole(threads);
  const double seconds =
      OnThreads(whole, count, [&](std::int64_t row, Prepared& prepared, Tally& tally) {
        preparation.Prepare(row, prepared, tally);
      });
  nlohmann::ordered_json line{
      {"rows", count},
      {"images_per_s", static_cast<double>(count) / seconds},
      {"tokens_per_s", static_cast<double>(TokensOf(whole)) / seconds},
  };
  for (std::size_t part = 0; part < kParts.size(); ++part) {
    double sum = 0.0;
    for (const Tally& tally : whole) sum += tally.seconds[part];
    line[kParts[part]] = sum * 1e3 / static_cast<double>(count);
  }
  std::vector<StoredRow> stored;
  for (std::int64_t row = 0; row < count; ++row) stored.push_back(preparation.Read(row));
  std::vector<Tally> texts(threads);
  const double alone =
      OnThreads(texts, kTextRounds * count, [&](std::int64_t i, Prepared& prepared, Tally& tally) {
        prepared.sample = preparation.SampleOf(stored[static_cast<std::size_t>(i % count)]);
        tally.tokens += std::ssize(prepared.sample.tokens);
      });
  line["tokens_alone_per_s"] = static_cast<double>(TokensOf(texts)) / alone;
  std::cout << line << '\n';
}

void Write(const Preparation& preparation, const std::string& path) {
  std::ofstream out(path, std::ios::binary);
  const auto write = [&](const auto& value, std::size_t bytes) {
    out.write(reinterpret_cast<const char*>(value), static_cast<std::streamsize>(bytes));
  };
  for (std::int64_t row = 0; row < std::min(kWritten, preparation.num_rows()); ++row) {
    Prepared prepared;
    Tally tally;
    preparation.Prepare(row, prepared, tally);
    std::vector<std::uint32_t> words = {static_cast<std::uint32_t>(prepared.sample.tokens.size())};
    for (const std::int64_t id : prepared.sample.tokens)
      words.push_back(static_cast<std::uint32_t>(id));
    write(words.data(), words.size() * sizeof words[0]);
    write(prepared.pixels.data(), prepared.pixels.size() * sizeof prepared.pixels[0]);
  }
  if (!out.flush()) throw std::runtime_error("cannot write " + path);
}

int Run(const std::vector<std::string>& arguments) {
  std::size_t threads = 2;
  std::string out;
  bool usable = arguments.size() >= 2 && arguments.size() % 2 == 0;
  for (std::size_t i = 2; usable && i < arguments.size(); i += 2) {
    if (arguments[i] == "--threads") {
      threads = std::stoul(arguments[i + 1]);
    } else if (arguments[i] == "--out") {
      out = arguments[i + 1];
    } else {
      usable = false;
    }
  }
  if (!usable) {
    std::cerr << "usage: bench_prepare SHARDS TOKENIZER [--threads N] [--out FILE]\n";
    return 2;
  }
  const Preparation preparation(arguments[0], arguments[1]);
  if (out.empty()) {
    Measure(preparation, threads);
  } else {
    Write(preparation, out);
  }
  return 0;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  return troupe::bench::ExitCodeOf("bench_prepare", [=] {
    return troupe::bench::Run({argv + 1, argv + argc});
  });
}
