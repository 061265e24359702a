// The speed of a folder's tokenizer: `bench_tokenizer FOLDER TEXTS [--ids OUT]`, where TEXTS holds
// texts, each after its length as four bytes, little-endian. --ids writes the ids of every text after
// their number, as such words: tools/oracle/compare_tokenizers.py compares them with `tokenizers`.
#include "data/text/tokenizer.hpp"

#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "bench/program.hpp"
#include "bench/report.hpp"
#include "files/text_file.hpp"

namespace troupe::bench {
namespace {

constexpr int kRounds = 5;

std::vector<std::string_view> SplitTexts(std::string_view file) {
  std::vector<std::string_view> texts;
  while (!file.empty()) {
    std::uint32_t length = 0;
    if (file.size() < sizeof length) throw std::runtime_error("TEXTS ends within a length");
    std::memcpy(&length, file.data(), sizeof length);
    file.remove_prefix(sizeof length);
    if (file.size() < length) throw std::runtime_error("TEXTS ends within a text");
    texts.push_back(file.substr(0, length));
    file.remove_prefix(length);
  }
  return texts;
}

void WriteIds(const Tokenizer& tokenizer, const std::vector<std::string_view>& texts,
              const std::string& path) {
  std::ofstream out(path, std::ios::binary);
  const auto write = [&](std::uint64_t word) {
    const auto bits = static_cast<std::uint32_t>(word);
    out.write(reinterpret_cast<const char*>(&bits), sizeof bits);
  };
  for (const std::string_view text : texts) {
    const std::vector<TextToken> tokens = tokenizer.Encode(text);
    write(tokens.size());
    for (const TextToken& token : tokens) write(static_cast<std::uint64_t>(token.id));
  }
  if (!out.flush()) throw std::runtime_error("cannot write " + path);
}

void Measure(const Tokenizer& tokenizer, const std::vector<std::string_view>& texts) {
  std::vector<double> rates;
  std::size_t num_bytes = 0;
  std::size_t num_tokens = 0;
  for (int round = 0; round < kRounds; ++round) {
    num_bytes = num_tokens = 0;
    const auto begin = std::chrono::steady_clock::now();
    for (const std::string_view text : texts) {
      num_bytes += text.size();
      num_tokens += tokenizer.Encode(text).size();
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    rates.push_back(static_cast<double>(num_bytes) / 1e6 / seconds.count());
  }
  const Summary rate = Summarize(rates);
  std::cout << nlohmann::ordered_json{{"bytes", num_bytes},
                                      {"tokens", num_tokens},
                                      {"MB_per_s", rate.median},
                                      {"mad", rate.mad}}
            << '\n';
}

int Run(const std::vector<std::string>& arguments) {
  const bool writes = arguments.size() == 4 && arguments[2] == "--ids";
  if (arguments.size() != 2 && !writes) {
    std::cerr << "usage: bench_tokenizer FOLDER TEXTS [--ids OUT]\n";
    return 2;
  }
  const auto tokenizer = MakeTokenizer("hf:" + arguments[0], {"<image>"});
  const std::string file = ReadWholeFile(arguments[1]);
  const std::vector<std::string_view> texts = SplitTexts(file);
  if (writes) {
    WriteIds(*tokenizer, texts, arguments[3]);
  } else {
    Measure(*tokenizer, texts);
  }
  return 0;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  return troupe::bench::ExitCodeOf("bench_tokenizer", [=] {
    return troupe::bench::Run({argv + 1, argv + argc});
  });
}
