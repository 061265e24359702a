#include "tests/faults/bed.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "cluster/run_key.hpp"
#include "cluster/socket.hpp"

namespace troupe::testing {
namespace {

constexpr const char* kConfig = "configs/shapes.toml";
constexpr int kPort = 7420;

void Append(std::vector<std::string>& words, const char* option,
            const std::vector<std::string>& values) {
  for (const std::string& value : values) {
    words.push_back(option);
    words.push_back(value);
  }
}

std::vector<std::string> Words(const std::string& verb, const std::string& runs,
                               const std::vector<std::string>& settings,
                               const std::vector<std::string>& more) {
  std::vector<std::string> words = {TROUPE_PROGRAM, verb, kConfig};
  Append(words, "--set",
         {"run.steps=400", "run.evaluate_every=0", "data.held_out=''", "run.dir=" + runs});
  Append(words, "--set", settings);
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::vector<std::string> FaultWords(const std::vector<std::string>& faults) {
  std::vector<std::string> words;
  Append(words, "--plant-fault", faults);
  return words;
}

void AwaitStepOf(const Program& program, int step, const auto& transcript) {
  if (program.WaitForLine("step " + std::to_string(step) + "/", kPatience)) return;
  throw std::runtime_error("step " + std::to_string(step) + " was not reached:\n" + transcript());
}

}  // namespace

Job::Job() { RunKey::Generate().WriteFile(File("key")); }

std::vector<std::string> Job::Train(const std::vector<std::string>& settings,
                                    const std::vector<std::string>& more) const {
  return Words("train", File("runs"), settings, more);
}

std::vector<std::string> Job::Node(int node, int nodes, const std::string& join,
                                   const std::vector<std::string>& settings,
                                   const std::vector<std::string>& more) const {
  std::vector<std::string> all = {"cluster.nodes=" + std::to_string(nodes)};
  all.insert(all.end(), settings.begin(), settings.end());
  std::vector<std::string> words = {"--node", std::to_string(node) + "/" + std::to_string(nodes),
                                    "--join", join};
  if (std::find(more.begin(), more.end(), "--key-file") == more.end()) {
    words.insert(words.end(), {"--key-file", File("key")});
  }
  words.insert(words.end(), more.begin(), more.end());
  return Words("node", File("runs"), all, words);
}

std::vector<std::string> Job::Runs() const {
  std::vector<std::string> runs;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(File("runs"), none)) {
    if (!entry.is_symlink()) runs.push_back(entry.path().string());  // not runs/latest
  }
  return runs;
}

std::vector<double> Job::Losses() const {
  const auto runs = Runs();
  if (runs.size() != 1) throw std::runtime_error(std::to_string(runs.size()) + " runs, not 1");
  std::ifstream file(runs.front() + "/metrics.jsonl");
  std::vector<double> losses;
  const std::string key = "\"loss\":";
  for (std::string line; std::getline(file, line);) {
    const auto at = line.find(key);
    if (at == std::string::npos || line.find("\"kind\":\"step\"") == std::string::npos) continue;
    losses.push_back(std::stod(line.substr(at + key.size())));
  }
  return losses;
}

std::string FreeAddress() { return ToString(Socket::Listen({"127.0.0.1", 0}).local_address()); }

Bed::Bed(BedOptions options)
    : options_(std::move(options)), network_(options_.nodes + options_.strangers) {
  const std::string join = Network::AddressOf(0) + ":" + std::to_string(kPort);
  for (int node = 0; node < options_.nodes; ++node) {
    const auto words =
        job_.Node(node, options_.nodes, join, options_.settings, FaultWords(options_.faults));
    programs_.push_back(std::make_unique<Program>(network_.On(node, words)));
  }
}

Bed::~Bed() {
  for (const auto& program : programs_) program->Signal(SIGKILL);
}

void Bed::Kill(int node, int signal) {
  fault_at_ = Clock::now();
  (*this)[node].Signal(signal);
}

void Bed::Stop(int node) { Kill(node, SIGSTOP); }

void Bed::Continue(int node) { (*this)[node].Signal(SIGCONT); }

void Bed::LinkDown(int node) {
  network_.LinkDown(node);
  fault_at_ = Clock::now();
}

void Bed::LinkUp(int node) { network_.LinkUp(node); }

void Bed::CutOneWay(int from, int to) {
  network_.CutOneWay(from, to);
  fault_at_ = Clock::now();
}

void Bed::LimitPackets(int node, int bytes) {
  network_.LimitPackets(node, bytes);
  fault_at_ = Clock::now();
}

void Bed::AwaitStep(int step) const {
  AwaitStepOf((*this)[0], step, [this] { return Transcript(); });
}

std::optional<Line> Bed::WaitForLine(int node, const std::string& text,
                                     std::chrono::milliseconds timeout) const {
  return (*this)[node].WaitForLine(text, timeout, fault_at_);
}

std::vector<Ending> Bed::WaitAll(std::chrono::milliseconds timeout) const {
  const auto deadline = Clock::now() + timeout;
  std::vector<Ending> endings;
  for (const auto& program : programs_) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    endings.push_back(program->WaitForEnd(std::max(left, std::chrono::milliseconds(0))));
  }
  return endings;
}

double Bed::SinceFault(Clock::time_point moment) const {
  return std::chrono::duration<double>(moment - fault_at_).count();
}

std::string Bed::Transcript() const {
  std::string text;
  for (int node = 0; node < options_.nodes; ++node) {
    text += "n" + std::to_string(node) + ":\n" + (*this)[node].Transcript();
  }
  return text;
}

LocalBed::LocalBed(const BedOptions& options) {
  std::vector<std::string> more = {"--local", std::to_string(options.nodes)};
  const auto faults = FaultWords(options.faults);
  more.insert(more.end(), faults.begin(), faults.end());
  std::vector<std::string> words = {"env", "TMPDIR=" + job_.path()};
  const auto train = job_.Train(options.settings, more);
  words.insert(words.end(), train.begin(), train.end());
  program_ = std::make_unique<Program>(std::move(words));
}

LocalBed::~LocalBed() {
  const auto processes = Processes();
  program_->Signal(SIGKILL);
  for (const pid_t process : processes) kill(process, SIGKILL);
}

void LocalBed::AwaitStep(int step) const {
  AwaitStepOf(*program_, step, [this] { return program_->Transcript(); });
}

}  // namespace troupe::testing
