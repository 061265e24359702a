// Both ends of `troupe feed`: the port of a process that takes samples, and a machine that prepares them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "app/handed_config.hpp"
#include "cluster/run_key.hpp"
#include "cluster/tls.hpp"
#include "configs/config.hpp"
#include "data/row_source.hpp"
#include "feed/port.hpp"
#include "transport/failure.hpp"

namespace troupe {

struct RunSpec;
class Work;

/// The port of a process, and what it needs.
class FeedEntrance {
 public:
  /// `host`: where this process listens; empty: process 0, which listens at data.feed_address. Throws
  /// LaunchError if it cannot listen, and as TlsOf.
  FeedEntrance(const Config& config, const RowSource& rows, const RunKey& run_key,
               const std::string& host);
  /// Tells machines that the job has ended, and how: empty for a job that is done.
  void End(const Failure& failure, bool interrupted = false);
  FeedPort& port() { return *port_; }

 private:
  std::unique_ptr<TlsContext> tls_;
  std::unique_ptr<FeedPort> port_;
};

/// Whether a job of this configuration takes samples of feed machines.
bool TakesFeed(const Config& config);
/// Returns null if this work takes none. `key` is called if it does.
std::unique_ptr<FeedEntrance> OpenFeed(const RunSpec& run, const Work& work,
                                       const std::function<RunKey()>& key, const std::string& host);

struct FeedArguments {
  ConfigArguments config;
  std::optional<std::string> node;  ///< "1/2"
  std::optional<std::string> at;    ///< in place of data.feed_address
  std::string key_file;
  int threads = 0;  ///< 0: as many as this process may use cores
  std::optional<std::int64_t> wait_s = {};
};
/// Prepares samples until the job ends. Returns the exit code. Throws LaunchError, ConfigErrors and
/// DataError.
int RunFeed(const FeedArguments& arguments);

}  // namespace troupe
