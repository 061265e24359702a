#include "tests/simulation/kernel.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <unistd.h>
#include <utility>

#include "tests/simulation/real_calls.hpp"

namespace troupe::testing {
namespace {

Kernel* kernel = nullptr;
thread_local SimThread* current = nullptr;
thread_local bool is_outside = false;

void GiveBaton(SimThread& thread) {
  thread.baton.store(1);
  RealFutexWake(thread.baton);
}

void AwaitBaton(SimThread& thread) {
  while (thread.baton.exchange(0) == 0) RealFutexWait(thread.baton, 0);
}

}  // namespace

OutsideOfWorld::OutsideOfWorld() : before_(std::exchange(is_outside, true)) {}
OutsideOfWorld::~OutsideOfWorld() { is_outside = before_; }

Kernel::Kernel(std::uint64_t seed) : random_(seed) {
  if (kernel != nullptr) throw std::logic_error("there is another world");
  kernel = this;
  NewThread(nullptr);
}

SimThread* Kernel::Here() { return is_outside ? nullptr : current; }
Kernel& Kernel::Current() { return *kernel; }
SimProcess* Kernel::Running() { return current == nullptr ? nullptr : current->process; }

Machine* Kernel::AddMachine(std::uint32_t address) {
  machines_.push_back(std::make_unique<Machine>());
  Machine& machine = *machines_.back();
  machine.number = static_cast<int>(machines_.size()) - 1;
  machine.address = address;
  machine.clock_offset = Ms(1000.0 * static_cast<double>(1 + Draw(100'000)));
  return &machine;
}

SimProcess* Kernel::Start(const std::string& name, Machine* machine, std::function<int()> body) {
  const OutsideOfWorld outside;
  processes_.push_back(std::make_unique<SimProcess>());
  SimProcess* const process = processes_.back().get();
  process->number = static_cast<int>(processes_.size()) - 1;
  process->name = name;
  process->machine = machine;
  process->pid = 1000 + process->number;
  Note("start " + name);
  struct First {
    SimThread* thread;
    std::function<int()> body;
  };
  auto* const first = new First{NewThread(process), std::move(body)};
  const auto run = [](void* argument) -> void* {
    const std::unique_ptr<First> started(static_cast<First*>(argument));
    Begin(started->thread);
    const int exit_code = started->body();
    Current().Kill(started->thread->process, exit_code);
    return nullptr;
  };
  pthread_t real{};
  first->thread->stack = TakeStack();
  if (RealPthreadCreate(&real, first->thread->stack, run, first) != 0) {
    throw std::runtime_error("no thread");
  }
  first->thread->real = real;
  return process;
}

SimThread* Kernel::NewThread(SimProcess* process) {
  threads_.push_back(std::make_unique<SimThread>());
  SimThread* const thread = threads_.back().get();
  thread->number = static_cast<int>(threads_.size()) - 1;
  thread->process = process;
  living_.push_back(thread);
  return thread;
}

void Kernel::Begin(SimThread* thread) {
  AwaitBaton(*thread);
  current = thread;
}

void Kernel::End(SimThread* thread) {
  is_outside = true;
  thread->ended = true;
  std::erase(living_, thread);
  SimThread* const next = Choose();
  current = nullptr;
  GiveBaton(*next);
}

SimThread* Kernel::Find(pthread_t real) {
  for (auto thread = threads_.rbegin(); thread != threads_.rend(); ++thread) {
    if (pthread_equal((*thread)->real, real) != 0 && (*thread)->process != nullptr) {
      return thread->get();
    }
  }
  return nullptr;
}

std::string Kernel::Run(const std::function<bool()>& done, SimTime limit) {
  limit_ = limit;
  stuck_.clear();
  current = threads_.front().get();
  is_outside = true;
  current->ready = [&] { return done() || !stuck_.empty(); };
  Switch(current);
  current = nullptr;
  is_outside = false;
  // For a debugger.
  if (!stuck_.empty() && std::getenv("TROUPE_WORLD_HOLD") != nullptr) pause();
  return stuck_;
}

void Kernel::At(SimTime time, std::function<void()> event) {
  events_.emplace(std::max(time, now_), std::move(event));
}

void Kernel::Note(const std::string& text) {
  for (const char c : text) digest_ = (digest_ ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  digest_ = (digest_ ^ static_cast<std::uint64_t>(now_)) * 1099511628211ULL;
  static const bool is_shown = std::getenv("TROUPE_WORLD_EVENTS") != nullptr;
  if (!is_shown) return;
  const OutsideOfWorld outside;
  std::fprintf(stderr, "%12.6f %s%s\n", static_cast<double>(now_) * 1e-9,
               current != nullptr && current->process != nullptr
                   ? (current->process->name + "/" + std::to_string(current->number) + " ").c_str()
                   : "",
               text.c_str());
}

void Kernel::Kill(SimProcess* process, int exit_code) {
  if (!process->is_alive) return;
  const bool was_outside = std::exchange(is_outside, true);
  process->is_alive = false;
  process->exit_code = exit_code;
  Note((exit_code < 0 ? "kill " : "exit ") + process->name + " " + std::to_string(exit_code));
  std::erase_if(living_, [&](SimThread* thread) { return thread->process == process; });
  for (const int file : std::exchange(process->files, {})) RealClose(file);
  if (ended) ended(process);
  is_outside = was_outside;
  if (was_outside || current == nullptr || current->process != process) return;
  is_outside = true;
  GiveBaton(*Choose());
  Park();
}

void Kernel::Park() {
  std::atomic<int> never = 0;
  for (;;) RealFutexWait(never, 0);
}

bool Kernel::CanRun(SimThread& thread) const {
  if (thread.process != nullptr && thread.process->stopped_until > now_) return false;
  if (!thread.ready || thread.ready()) return true;
  if (thread.deadline > now_) return false;
  thread.timed_out = true;
  return true;
}

SimThread* Kernel::Choose() {
  for (;;) {
    const std::size_t first = random_() % living_.size();
    for (std::size_t i = 0; i < living_.size(); ++i) {
      SimThread* const thread = living_[(first + i) % living_.size()];
      if (CanRun(*thread)) return thread;
    }
    SimTime next = events_.empty() ? kNever : events_.begin()->first;
    for (const SimThread* const thread : living_) {
      const SimTime stopped = thread->process == nullptr ? 0 : thread->process->stopped_until;
      if (thread->ready == nullptr || thread->deadline != kNever) {
        next = std::min(next, std::max(stopped, thread->ready ? thread->deadline : stopped));
      } else if (stopped > now_) {
        next = std::min(next, stopped);
      }
    }
    if (next == kNever || next > limit_) {
      stuck_ = next == kNever ? "nothing can happen any more" : "it does not end";
      continue;
    }
    now_ = std::max(now_, next);
    while (!events_.empty() && events_.begin()->first <= now_) {
      const auto event = std::move(events_.begin()->second);
      events_.erase(events_.begin());
      event();
    }
  }
}

void Kernel::Switch(SimThread* from) {
  SimThread* const next = Choose();
  ++num_switches_;
  digest_ = (digest_ ^ static_cast<std::uint64_t>(next->number)) * 1099511628211ULL;
  if (next == from) return;
  GiveBaton(*next);
  AwaitBaton(*from);
}

bool Kernel::Wait(std::function<bool()> ready, SimTime deadline) {
  const OutsideOfWorld outside;
  SimThread& here = *current;
  here.ready = std::move(ready);
  here.deadline = deadline;
  here.timed_out = false;
  Switch(&here);
  here.ready = nullptr;
  here.deadline = kNever;
  return !here.timed_out;
}

void Kernel::Yield() {
  now_ += 1000;
  Wait(nullptr);
}

void Kernel::MayYield() {
  if (random_() % 16 == 0) Yield();
}

void Kernel::BeforeCall(const char* name) {
  ++num_changes_;
  SimProcess* const process = current->process;
  if (process->calls++ != process->dies_at) return;
  Note(std::string("dies before ") + name);
  Kill(process);
}

SimTime Kernel::Look() {
  now_ += 40;
  return now_;
}

}  // namespace troupe::testing
