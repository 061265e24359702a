// Where feed machines connect to a process of a job. It stays open while the process lives: when the job
// meets again after a loss, they find the same address.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cluster/acceptor.hpp"
#include "cluster/poll_set.hpp"
#include "feed/message.hpp"
#include "modules/feed_machines.hpp"

namespace troupe {

struct FeedPortOptions {
  RunKey key;         ///< RunKey::Feed
  bool leads = true;  ///< process 0
  TlsUse tls = {};
  std::string build = {};  ///< FeedHello::build
  std::string facts = {};  ///< FeedHello::facts
  std::function<void(const std::string&)> print =
      {};  ///< a line for each machine that comes, goes or is late
};

class FeedPort : public FeedMachines {
 public:
  FeedPort(Socket listener, FeedPortOptions options);
  /// Closes all connections. Unless End was called, machines then wait for the job.
  ~FeedPort() override;
  FeedPort(const FeedPort&) = delete;
  FeedPort& operator=(const FeedPort&) = delete;

  Address address() const { return address_; }
  /// Process 0: where machines find the other processes.
  void Tell(std::vector<Address> places);
  /// Tells all machines how the job has ended. Returns once they have got it, or after a second.
  void End(const JoinProblem& why);

  void Listen(std::function<void(std::shared_ptr<FeedMachine>)> came) override;
  void Forget() override;

 private:
  class Machine;
  struct Visitor {
    FeedChannel channel;
    Deadline until;                              ///< for its Hello
    std::string name = {};                       ///< once it has said it
    std::shared_ptr<Machine> machine = nullptr;  ///< once it fits
    bool over = false;                           ///< it has got its last message
    bool was_late = false;                       ///< when it was last looked at
    int told = 0;  ///< the number of the last list of places that it was sent
  };

  void Run();
  void Round();
  void Serve(Visitor& visitor, Deadline now);
  void Receive(Visitor& visitor, const FeedMessage& message);
  void Welcome(Visitor& visitor, const FeedHello& hello);
  /// Sends what other threads have asked for.
  void Forward(Visitor& visitor);
  void Dismiss(Visitor& visitor, const JoinProblem& why);
  void Leave(Visitor& visitor, const std::string& why);
  /// Prints a line, which may have words of a machine.
  void Say(std::string line);

  const FeedPortOptions options_;
  Acceptor acceptor_;
  const Address address_;
  const std::shared_ptr<WakeUp> wake_up_ = std::make_shared<WakeUp>();
  std::list<Visitor> visitors_;
  int num_lines_ = 0;  ///< so far
  PollSet polls_;
  std::mutex mutex_;
  std::vector<Address> places_;                             ///< under mutex_
  int num_lists_ = 1;                                       ///< likewise: of places, so far
  std::vector<std::shared_ptr<Machine>> machines_;          ///< likewise: those that are there
  std::function<void(std::shared_ptr<FeedMachine>)> came_;  ///< likewise
  std::optional<JoinProblem> end_;                          ///< likewise
  std::atomic<bool> listens_{false};
  std::atomic<bool> closing_{false};
  std::thread thread_;  ///< last: it uses all of the above
};

}  // namespace troupe
