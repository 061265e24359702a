#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <system_error>
#include <unistd.h>

#include "answers/question.hpp"
#include "app/answer_model.hpp"
#include "app/run_directory.hpp"
#include "cli/commands.hpp"
#include "configs/precision_words.hpp"
#include "data/text/prompt.hpp"
#include "files/output_file.hpp"
#include "files/usable_cores.hpp"
#include "layout/text.hpp"
#include "modules/device/backend.hpp"
#include "modules/torch/compute.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

struct GenerateArguments {
  std::string model;
  std::optional<std::string> prompt;
  std::vector<std::string> images;
  std::string questions;
  std::string image_folder;
  std::string out;
  std::string model_id;
  std::string precision = "as saved";
  std::string format = "auto";
  std::string tokenizer;
  std::string backend = kBackendWords.front();
  int threads = 0;
  std::vector<std::string> overrides;
  AnswerSettings settings;
};

/// Returns the device that computes. Throws std::invalid_argument if `backend` needs a GPU and there
/// is none.
int DeviceFor(const std::string& backend) {
  if (backend == ToString(Backend::kCpu)) return Buffer::kHost;
  std::string missing = MissingFor(Backend::kCuda);
  if (missing.empty() && GpusHere().empty()) missing = "expected a GPU, found none";
  if (!missing.empty()) throw std::invalid_argument("--backend cuda: " + missing);
  return 0;
}

/// Prints an answer while it is written. Control characters do not reach a terminal.
class AnswerPrinter {
 public:
  /// What may still change stays back: the beginning of a character.
  void Show(const std::string& text) {
    constexpr std::string_view kBroken = "\xef\xbf\xbd";
    std::string_view sure = text;
    while (sure.ends_with(kBroken)) sure.remove_suffix(kBroken.size());
    Print(sure);
  }
  void Finish(const std::string& text) {
    Print(text);
    std::cout << '\n' << std::flush;
  }

 private:
  void Print(std::string_view text) {
    if (text.size() <= printed_) return;
    for (const char c : text.substr(printed_)) {
      const bool control = (c >= 0 && c < ' ' && c != '\n' && c != '\t') || c == '\x7f';
      if (!control || !terminal_) std::cout << c;
    }
    std::cout << std::flush;
    printed_ = text.size();
  }

  std::size_t printed_ = 0;
  bool terminal_ = isatty(STDOUT_FILENO) != 0;
};

/// Writes the lines of answers in the order of their questions, each as soon as all before it are
/// there.
class LineWriter {
 public:
  explicit LineWriter(const std::string& path) : path_(path) {
    if (!path.empty()) file_ = std::make_unique<OutputFile>(path, FileOpening::kInPlace);
  }
  /// Removes a file without answers.
  ~LineWriter() {
    std::error_code unknown;
    if (next_ == 0 && fs::is_regular_file(path_, unknown)) fs::remove(path_, unknown);
  }
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  void Add(std::size_t question, const std::string& line) {
    waiting_[question] = line;
    for (auto first = waiting_.begin(); first != waiting_.end() && first->first == next_; ++next_) {
      Write(first->second);
      first = waiting_.erase(first);
    }
  }
  void Close() {
    if (file_ != nullptr) file_->Close();
  }

 private:
  void Write(const std::string& line) {
    if (file_ == nullptr) {
      std::cout << line << std::flush;
    } else {
      file_->Write(std::as_bytes(std::span(line)));
    }
  }

  std::string path_;
  std::unique_ptr<OutputFile> file_;
  std::map<std::size_t, std::string> waiting_;
  std::size_t next_ = 0;
};

/// Tokens and seconds since the first answer began.
class Speed {
 public:
  void Add(std::size_t tokens) { tokens_ += static_cast<std::int64_t>(tokens); }
  std::string Text() const {
    const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
    return Counted(tokens_, "token") + ", " +
           Formatted("%.1f tok/s", static_cast<double>(tokens_) / std::max(seconds, 1e-9));
  }

 private:
  Clock::time_point begin_ = Clock::now();
  std::int64_t tokens_ = 0;
};

/// Says how far the work is, at most once a second.
class ProgressLine {
 public:
  explicit ProgressLine(std::size_t count) : count_(count) {}

  void Step(std::size_t tokens) {
    ++done_;
    speed_.Add(tokens);
    if (done_ < count_ && Clock::now() < next_) return;
    next_ = Clock::now() + std::chrono::seconds(1);
    std::cerr << "answered " << done_ << '/' << count_ << ", " << speed_.Text() << '\n';
  }

 private:
  std::size_t count_;
  std::size_t done_ = 0;
  Speed speed_;
  Clock::time_point next_ = Clock::now();
};

QuestionList QuestionsFor(const GenerateArguments& arguments, const SampleFormat& format) {
  if (!arguments.questions.empty()) {
    QuestionList list = ReadQuestions(arguments.questions, arguments.image_folder, format.fields);
    CheckQuestions(list, format);
    return list;
  }
  try {
    QuestionList list = OneQuestion(*arguments.prompt, arguments.images, format.fields);
    for (const auto& files : list.set.rows.front().files) {
      for (const std::string& file : files) format.items.front().preprocessor->Check(file, false);
    }
    return list;
  } catch (const std::runtime_error& error) {
    throw std::invalid_argument(std::string("--prompt: ") + error.what());
  }
}

void CheckTogether(const GenerateArguments& arguments) {
  if (arguments.prompt.has_value() == !arguments.questions.empty()) {
    throw std::invalid_argument("expected one of --prompt and --questions, got " +
                                std::string(arguments.prompt ? "both" : "neither"));
  }
  const auto belongs = [](const char* option, bool given, const std::string& to) {
    if (given) throw std::invalid_argument(std::string(option) + " belongs to " + to);
  };
  if (arguments.prompt) {
    belongs("--out", !arguments.out.empty(), "--questions; the answer to --prompt is printed");
    belongs("--image-folder", !arguments.image_folder.empty(), "--questions");
    belongs("--model-id", !arguments.model_id.empty(), "--questions");
  } else {
    belongs("--image", !arguments.images.empty(), "--prompt; a line of questions names its own");
  }
  const Sampling& sampling = arguments.settings.sampling;
  if (std::isnan(sampling.temperature) || std::isnan(sampling.top_p)) {
    throw std::invalid_argument("--temperature and --top-p: expected numbers, got nan");
  }
  if (arguments.threads > UsableCores()) {
    throw std::invalid_argument("--threads: expected at most " + std::to_string(UsableCores()) +
                                ", the cores here, got " + std::to_string(arguments.threads));
  }
  if (sampling.temperature == 0.0 && (sampling.top_k > 0 || sampling.top_p < 1.0)) {
    throw std::invalid_argument(
        "--top-k and --top-p belong to --temperature: at 0 the most "
        "probable token is always chosen");
  }
  std::error_code unknown;
  if (fs::is_regular_file(fs::status(arguments.out, unknown))) {
    throw std::invalid_argument("--out: " + arguments.out +
                                " exists; expected the name of a new file");
  }
  if (arguments.format != "auto" && !PromptOf(arguments.format)) {
    throw std::invalid_argument(
        "--format: expected auto, lines, plain, vicuna_v1, llama3 or "
        "chatml, got " +
        arguments.format);
  }
}

Prompt PromptFor(const GenerateArguments& arguments, const AnswerSource& source,
                 const QuestionList& list, std::size_t question) {
  try {
    return PromptOfQuestion(list, question, source.format, source.encoders);
  } catch (const FaultError& error) {
    if (arguments.prompt) throw std::invalid_argument("--prompt: " + error.fault().reason);
    // A file that was good when the work began: not a mistake in the arguments.
    throw std::runtime_error(error.what());
  }
}

/// Counts the answers that were cut.
class CutAnswers {
 public:
  void Add(AnswerCause cause) { ++counts_[cause]; }
  void Print() const {
    PrintOne(AnswerCause::kMaxNewTokens, "--max-new-tokens");
    PrintOne(AnswerCause::kContext, "the context of the model");
  }

 private:
  void PrintOne(AnswerCause cause, const char* by) const {
    const auto count = counts_.find(cause);
    if (count == counts_.end()) return;
    std::cerr << Counted(count->second, "answer") << " cut by " << by << '\n';
  }

  std::map<AnswerCause, std::int64_t> counts_;
};

void Answer(const GenerateArguments& arguments, const AnswerSource& source,
            const QuestionList& list, TokenModel& model, LineWriter& writer) {
  AnswerSettings settings = arguments.settings;
  settings.stops = source.stops;
  const bool lines = !arguments.questions.empty();
  const std::string id = arguments.model_id.empty() ? source.name : arguments.model_id;
  AnswerPrinter printer;
  CutAnswers cut;
  ProgressLine progress(list.questions.size());
  WriteAnswers(
      model, *source.format.tokenizer, settings, list.questions.size(),
      [&](std::size_t i) { return PromptFor(arguments, source, list, i); },
      [&](std::size_t, const troupe::Answer& answer) {
        if (!lines) printer.Show(answer.text);
      },
      [&](std::size_t i, const troupe::Answer& answer) {
        if (lines) {
          writer.Add(i, AnswerLine(list, i, answer.text, id));
        } else {
          printer.Finish(answer.text);
        }
        cut.Add(answer.cause);
        progress.Step(answer.tokens.size());
      });
  writer.Close();
  cut.Print();
}

int Generate(const GenerateArguments& arguments) {
  try {
    CheckTogether(arguments);
    AnswerOptions options;
    options.prompt = arguments.format;
    options.tokenizer = arguments.tokenizer;
    options.overrides = arguments.overrides;
    const auto word = std::ranges::find(kPrecisionWords, arguments.precision);
    if (word != kPrecisionWords.end()) {
      options.precision = static_cast<Precision>(word - kPrecisionWords.begin());
    }
    const int device = DeviceFor(arguments.backend);
    const AnswerSource source = OpenAnswerSource(arguments.model, options);
    const QuestionList list = QuestionsFor(arguments, source.format);
    LineWriter writer(arguments.out);
    const int most = source.is_large() ? UsableCores() : 1;
    const int threads = arguments.threads > 0 ? arguments.threads : most;
    ComputeWithThreads(threads);
    std::cerr << "reading " << source.parameters << ": "
              << kPrecisionWords[static_cast<std::size_t>(source.config.run.precision)] << " on "
              << arguments.backend << ", " << Counted(threads, "thread") << ", prompt format "
              << WordOf(source.format.prompt) << '\n';
    const std::unique_ptr<TokenModel> model = ReadAnswerModel(source, device);
    Answer(arguments, source, list, *model, writer);
  } catch (const std::invalid_argument& error) {
    std::cerr << "troupe generate: " << error.what() << '\n';
    return kExitBadInput;
  }
  return kExitDone;
}

void AddQuestionOptions(CLI::App& verb, GenerateArguments& arguments) {
  verb.add_option("--prompt", arguments.prompt,
                  "a question; its answer is printed as it is written");
  verb.add_option("--image", arguments.images,
                  "an image of --prompt; once for each. They stand before the text unless it has\n"
                  "their placeholders (<image>)")
      ->type_name("FILE")
      ->allow_extra_args(false);
  verb.add_option("--questions", arguments.questions,
                  "questions in LLaVA's form, one a line:\n"
                  "{\"question_id\": 3, \"image\": \"a.jpg\", \"text\": \"What is it?\"}")
      ->type_name("FILE.jsonl");
  verb.add_option("--image-folder", arguments.image_folder,
                  "where the images of --questions lie (default: beside the file)")
      ->type_name("DIR");
  verb.add_option("--out", arguments.out,
                  "new file for the answers to --questions, one a line in their order (default:\n"
                  "standard output)")
      ->type_name("FILE.jsonl");
  verb.add_option("--model-id", arguments.model_id,
                  "\"model_id\" of the answers (default: the name of the folder or run)");
}

void AddWritingOptions(CLI::App& verb, GenerateArguments& arguments) {
  AnswerSettings& settings = arguments.settings;
  verb.add_option("--max-new-tokens", settings.max_new_tokens, "most tokens of an answer")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30))
      ->capture_default_str();
  verb.add_option("--temperature", settings.sampling.temperature,
                  "0: always the most probable token")
      ->check(CLI::Range(0.0, 1000.0))
      ->capture_default_str();
  verb.add_option("--top-k", settings.sampling.top_k, "draw from the most probable K; 0: all")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  verb.add_option("--top-p", settings.sampling.top_p,
                  "draw from the most probable that together reach this probability")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  verb.add_option("--seed", settings.sampling.seed,
                  "of the draws, which depend on nothing but it, the question's id and the place")
      ->capture_default_str();
  verb.add_option("--batch", settings.batch, "answers written at once")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
}

}  // namespace

void AddGenerate(CLI::App& app, Command& command) {
  auto* verb = app.add_subcommand(
      "generate",
      "Answer questions about images with a Hugging Face folder, or with a run: its final\n"
      "parameters, or its newest checkpoint, also while it goes on. One process, with a\n"
      "cache of keys and values.\n"
      "Exit code: 0 done, 1 something cannot be read or written, 2 wrong arguments,\n"
      "questions or folder.");
  auto arguments = std::make_shared<GenerateArguments>();
  verb->add_option("MODEL", arguments->model,
                   "a Hugging Face folder (a LLaVA or a language model), a run directory\n"
                   "(runs/latest, or NAME for the newest runs/NAME-TIME), or one checkpoint")
      ->required()
      ->transform(FindRun);
  AddQuestionOptions(*verb, *arguments);
  AddWritingOptions(*verb, *arguments);
  std::vector<std::string> precisions = {arguments->precision};
  precisions.insert(precisions.end(), kPrecisionWords.begin(), kPrecisionWords.end());
  AddChoice(*verb, "--precision", precisions, arguments->precision,
            "number type of the model; float16 is computed as float32");
  AddChoice(*verb, "--backend", kBackendWords, arguments->backend, "device that computes");
  verb->add_option("--format", arguments->format,
                   "prompt format: a value of data.prompt (default: that of the folder or run)");
  AddRunOverrides(*verb, arguments->overrides);
  verb->add_option("--tokenizer", arguments->tokenizer,
                   "a value of data.tokenizer (default: that of the folder or run)");
  verb->add_option(
          "--threads", arguments->threads,
          "of the CPU (default: all cores; 1 for a model of fewer than 100 million parameters,\n"
          "where they would mostly wait for each other)")
      ->check(CLI::Range(1, 4096));
  SetCommand(*verb, command, [arguments] { return Generate(*arguments); });
}

}  // namespace troupe
