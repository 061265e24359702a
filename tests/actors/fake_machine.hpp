// A feed machine that answers when the test says so.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "modules/feed_machines.hpp"

namespace troupe {

class FakeMachine : public FeedMachine {
 public:
  explicit FakeMachine(std::string name = "f0", int credits = 2)
      : name_(std::move(name)), credits_(credits) {}
  const std::string& name() const override { return name_; }
  int credits() const override { return credits_; }
  void Watch(std::function<void()> call) override { gone = std::move(call); }
  void Ask(std::int64_t microbatch, const SampleTicket& ticket,
           std::function<void(const MachineSample&)> call) override {
    asked.emplace_back(microbatch, ticket.row);
    prepared.push_back(std::move(call));
  }
  void SetLate(bool is_late) override { late.push_back(is_late); }
  void Dismiss(const std::string& why) override { dismissed.push_back(why); }

  std::function<void()> gone;
  std::vector<std::function<void(const MachineSample&)>> prepared;
  std::vector<std::pair<std::int64_t, std::int64_t>> asked;
  std::vector<std::string> dismissed;
  std::vector<bool> late;

 private:
  const std::string name_;
  const int credits_;
};

}  // namespace troupe
