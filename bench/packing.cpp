// Compares training on packs with training on padded samples: one language model on one rank, the same
// samples on both sides, which take turns. bench/README.md has the lengths and explains the columns.
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <utility>

#include "app/run_job.hpp"
#include "bench/report.hpp"
#include "configs/loader.hpp"
#include "data/row_source.hpp"
#include "modules/groups.hpp"
#include "modules/torch/compute.hpp"
#include "modules/torch/programs.hpp"

namespace troupe::bench {
namespace {

using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

constexpr std::int64_t kContext = 1024;
constexpr int kSamples = 512;
constexpr int kRounds = 5;

/// Half the scale of LLaVA's mix: 6 of 10 samples have an image of 288 tokens and about 90 of text, the
/// others about 180 of text. Lengths of texts are log-normal.
std::int64_t LengthOf(std::mt19937& random) {
  const bool image = random() % 10 < 6;
  std::normal_distribution<double> normal(std::log(image ? 90.0 : 180.0), 0.9);
  const auto text = static_cast<std::int64_t>(std::exp(normal(random)));
  return std::min<std::int64_t>(kContext - 16, (image ? 288 : 0) + std::max<std::int64_t>(text, 8));
}

void WriteSamples(const fs::path& file) {
  std::mt19937 random(1);
  nlohmann::json rows = nlohmann::json::array();
  for (int i = 0; i < kSamples; ++i) {
    const auto length = static_cast<std::size_t>(LengthOf(random));
    std::string text;
    while (text.size() < length - length / 4) text += static_cast<char>('a' + random() % 26);
    rows.push_back({{"id", std::to_string(i)},
                    {"conversations",
                     {{{"from", "human"}, {"value", std::string(length / 4, 'q')}},
                      {{"from", "gpt"}, {"value", text}}}}});
  }
  std::ofstream(file) << rows;
}

Config ConfigOf(const fs::path& folder, bool packs) {
  std::ofstream(folder / "run.toml")
      << "schema = 1\ncluster.ranks = 1\n[modules.language]\nkind = \"llama\"\nranks = \"0\"\n"
         "vocab = 260\nhidden = 256\nlayers = 2\nheads = 4\nmlp_hidden = 512\ncontext = "
      << kContext << "\n[data]\ntrain = \"samples.json\"\nprompt = \"lines\"\npacking = "
      << (packs ? "true" : "false") << "\npack_window = " << kSamples
      << "\n[schedule]\nmicro_batch_size = " << (packs ? 4 : 16) << "\n";
  return LoadConfig((folder / "run.toml").string()).config;
}

/// Trains on one microbatch after the other.
class Side {
 public:
  Side(const fs::path& folder, bool packs)
      : config_(ConfigOf(folder, packs)),
        source_(config_),
        program_(MakeTorchPrograms(
            config_, std::make_shared<GroupTable>(config_, std::make_shared<AbortSignal>()))(
            {"language", 0, 0, 0, 0, 0})) {}

  struct Work {
    double seconds = 0.0;
    double tokens = 0.0;  ///< of samples
    double rows = 0.0;    ///< that were computed
  };
  /// On as many microbatches as have that many tokens.
  Work Run(double tokens) {
    Work work;
    while (work.tokens < tokens) {
      const Round round{.number = step_,
                        .step = step_,
                        .microbatches = 1,
                        .place = step_ * config_.global_batch(),
                        .group = config_.global_batch()};
      const auto inputs = source_.Load("language", 0, round, 0);
      const auto begin = Clock::now();
      program_->Forward({step_, true, 1e-3, {}, inputs});
      program_->Backward({step_, {}});
      work.seconds += std::chrono::duration<double>(Clock::now() - begin).count();
      work.tokens += static_cast<double>(inputs->num_tokens);
      work.rows += static_cast<double>(config_.data.packing ? inputs->num_tokens
                                                            : inputs->tokens.num_elements());
      ++step_;
    }
    return work;
  }

 private:
  Config config_;
  RowSource source_;
  std::unique_ptr<StageProgram> program_;
  std::int64_t step_ = 0;
};

void Measure(const fs::path& folder, Report& report) {
  Side packed(folder, true);
  Side padded(folder, false);
  packed.Run(1);
  padded.Run(1);
  std::vector<double> ratios;
  for (int round = 0; round < kRounds; ++round) {
    const Side::Work a = packed.Run(20'000);
    const Side::Work b = padded.Run(20'000);
    const double faster = a.tokens / a.seconds / (b.tokens / b.seconds);
    const double useful = a.tokens / a.rows / (b.tokens / b.rows);
    ratios.push_back(faster / useful);
    report.AddRow({std::to_string(round), Fixed(a.tokens / a.seconds, 0),
                   Fixed(b.tokens / b.seconds, 0), Fixed(faster, 2), Fixed(b.tokens / b.rows, 2),
                   Fixed(useful, 2), Fixed(faster / useful, 2)},
                  {{"packed_tokens_per_s", a.tokens / a.seconds},
                   {"padded_tokens_per_s", b.tokens / b.seconds},
                   {"useful_share_padded", b.tokens / b.rows},
                   {"faster", faster},
                   {"faster_by_useful", faster / useful}});
  }
  report.AddLine("median of faster / useful: " + Fixed(Summarize(ratios).median, 2));
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  troupe::RestartWithBestKernels(argv);
  troupe::SetupCompute();
  troupe::bench::Report report(
      argc, argv, "packing",
      {"round", "packed_tok_s", "padded_tok_s", "faster", "padded_useful", "useful", "ratio"});
  const auto folder = std::filesystem::temp_directory_path() /
                      ("troupe_packing_" + std::to_string(std::random_device()()));
  std::filesystem::create_directory(folder);
  troupe::bench::WriteSamples(folder / "samples.json");
  troupe::bench::Measure(folder, report);
  std::filesystem::remove_all(folder);
  return report.Finish();
}
