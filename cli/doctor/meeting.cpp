#include "cli/doctor/meeting.hpp"

#include <algorithm>
#include <exception>
#include <iterator>
#include <memory>
#include <utility>

#include "app/tensor_plane.hpp"
#include "cli/doctor/shared.hpp"
#include "cli/doctor/talk.hpp"
#include "layout/at.hpp"
#include "layout/text.hpp"

namespace troupe {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPings = 20;
constexpr double kLongTransferSeconds = 10.0;

double Since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// One other process.
struct Other {
  Peer& peer;
  std::string name;
  PlaneAddress address = {};
  bool connected = true;  ///< its data plane is
  bool lost = false;
};

class First {
 public:
  First(const DoctorMember& member, Joined joined) : member_(member), joined_(std::move(joined)) {
    for (Peer& peer : joined_.peers) {
      others_.push_back({peer, joined_.roster.members[At(peer.process)].name});
    }
    findings_ = member.own;
    const std::string names = member.plan.Names();
    findings_.push_back(Well("meeting", names + ": all " +
                                            std::to_string(member.plan.num_processes()) +
                                            " are there, of one build and configuration"));
  }

  DoctorOutcome Run() {
    end_ = OpenTransfers(member_, joined_, findings_);
    ForEach([this](Other& other) { ReceiveReport(other); });
    LookAndConnect();
    ForEach([this](Other& other) { Measure(other); });
    End();
    const bool fails = AnyFailure(findings_);
    return {std::move(findings_), fails, true};
  }

 private:
  /// Calls `function` for every process that is not lost. One that fails to answer is lost.
  template <class Function>
  void ForEach(Function function) {
    for (Other& other : others_) {
      if (other.lost) continue;
      try {
        function(other);
      } catch (const std::exception& e) {
        other.lost = true;
        findings_.push_back(Fails("meeting", "lost " + other.name + ": " + e.what(),
                                  "it ended, or stopped answering: see its output"));
      }
    }
  }

  void ReceiveReport(Other& other) {
    const auto report = ReceiveKind(other.peer.control, Talk::kReport);
    std::ptrdiff_t num_well = 0;
    for (Finding& finding : report.at("findings").get<Findings>()) {
      if (finding.verdict == Verdict::kOk) {
        ++num_well;
        continue;
      }
      finding.line = other.name + ": " + finding.line;
      findings_.push_back(std::move(finding));
    }
    if (num_well > 0) {
      findings_.push_back(
          Well("machine", other.name + ": " + std::to_string(num_well) + " checks passed"));
    }
    other.address = report.at("address").get<PlaneAddress>();
  }

  /// The addresses of all planes by process. Empty if one is missing: planes connect all or none.
  std::vector<PlaneAddress> Addresses() const {
    if (!end_) return {};
    std::vector<PlaneAddress> addresses = {end_->plane().address()};
    for (const Other& other : others_) {
      if (other.address.empty()) return {};
      addresses.push_back(other.address);
    }
    return addresses;
  }

  void LookAndConnect() {
    const std::string name =
        Formatted(".doctor-%016llx", static_cast<unsigned long long>(joined_.roster.nonce));
    std::unique_ptr<SharedToken> token;
    try {
      token = std::make_unique<SharedToken>(joined_.roster.run_directory, name);
    } catch (const std::runtime_error&) {
      // The findings about this machine have the reason.
    }
    const auto addresses = Addresses();
    ForEach([&](Other& other) {
      Send(other.peer.control, Talk::kLook,
           {{"token", token ? name : ""}, {"addresses", addresses}});
    });
    connected_ = !addresses.empty() && Connect(addresses);
    ForEach([&](Other& other) { ReceiveLooked(other, token != nullptr); });
  }

  bool Connect(const std::vector<PlaneAddress>& addresses) {
    try {
      end_->plane().Connect(addresses);
      return true;
    } catch (const std::exception& e) {
      findings_.push_back(
          Fails("transport", e.what(), "see transport.ucx_tls and transport.net_devices"));
      return false;
    }
  }

  void ReceiveLooked(Other& other, bool looked) {
    const auto answer = ReceiveKind(other.peer.control, Talk::kLooked);
    if (looked) {
      findings_.push_back(
          CheckSharedDirectory(other.name, joined_.roster.run_directory, answer.at("directory")));
    }
    const std::string connecting = answer.at("connecting");
    if (connecting.empty()) return;
    other.connected = false;
    findings_.push_back(Fails("transport", other.name + ": " + connecting,
                              "see transport.ucx_tls and transport.net_devices"));
  }

  void Measure(Other& other) {
    const PathFacts path = Ping(other);
    findings_.push_back(CheckPath(path, member_.config.cluster.suspect_after_s));
    findings_.push_back(CheckClockDifference(path));
    if (!connected_ || !other.connected) {
      findings_.push_back(Warns("tensors", other.name + ": not tried, they are not connected",
                                "see the failures of transport"));
      return;
    }
    try {
      Transfer(other, kOpeningBytes);
      findings_.push_back(CheckTransfer(BestTransfer(other)));
    } catch (const SocketError&) {
      throw;
    } catch (const std::runtime_error& e) {
      findings_.push_back(Fails("tensors", other.name + ": " + e.what(),
                                "is there a firewall between them? It must pass "
                                "transport.port_range on transport.net_devices"));
    }
  }

  PathFacts Ping(Other& other) {
    PathFacts facts;
    facts.node = other.name;
    std::vector<double> times;
    for (int ping = 0; ping < kPings; ++ping) {
      const double wall = static_cast<double>(WallClockNs()) * 1e-9;
      const auto begin = Clock::now();
      Send(other.peer.control, Talk::kPing);
      const auto pong = ReceiveKind(other.peer.control, Talk::kPong);
      const double time = Since(begin);
      const double theirs = pong.at("wall_ns").get<double>() * 1e-9;
      facts.mtu_back = pong.at("mtu");
      if (times.empty() || time < *std::ranges::min_element(times)) {
        facts.clock_ahead_s = theirs - (wall + time / 2);
      }
      times.push_back(time);
    }
    std::ranges::sort(times);
    facts.best_round_trip_s = times.front();
    facts.round_trip_s = times[times.size() / 2];
    facts.mtu_there = PathMtu(other.peer);
    return facts;
  }

  /// Returns the best time in each direction. Stops after a try that takes kLongTransferSeconds: a slow
  /// network is not a busy processor.
  TransferFacts BestTransfer(Other& other) {
    TransferFacts best = Transfer(other, kMeasuredBytes);
    for (int tries = 1; tries < kTransferTries && best.there_s + best.back_s < kLongTransferSeconds;
         ++tries) {
      const TransferFacts next = Transfer(other, kMeasuredBytes);
      best.there_s = std::min(best.there_s, next.there_s);
      best.back_s = std::min(best.back_s, next.back_s);
      best.intact = best.intact && next.intact;
    }
    return best;
  }

  /// Throws std::runtime_error if a message did not arrive.
  TransferFacts Transfer(Other& other, std::int64_t num_bytes) {
    TransferFacts facts;
    facts.node = other.name;
    facts.bytes = static_cast<std::uint64_t>(num_bytes);
    facts.transport = end_->plane().transport(other.peer.process);
    Send(other.peer.control, Talk::kTake, num_bytes);
    static_cast<void>(ReceiveKind(other.peer.control, Talk::kReady));
    auto begin = Clock::now();
    end_->Send(other.peer.process, num_bytes);
    const auto got = ReceiveKind(other.peer.control, Talk::kGot, kTransferTime + kAnswerTime);
    facts.there_s = Since(begin);
    const bool intact = ReceiveKind(other.peer.control, Talk::kChecked);
    if (const std::string error = got; !error.empty()) throw std::runtime_error(error);

    end_->Post(other.peer.process, num_bytes);
    begin = Clock::now();
    Send(other.peer.control, Talk::kGive, num_bytes);
    end_->Await();
    facts.back_s = Since(begin);
    facts.intact = intact && end_->Intact(other.peer.process);
    return facts;
  }

  void End() {
    if (connected_) {
      findings_.push_back(Well("transport", "tensors between processes over " +
                                                DescribeTensorPlane(end_->plane(), joined_.roster,
                                                                    member_.config.transport)));
    }
    if (end_) end_->plane().Leave();
    ForEach([&](Other& other) { Send(other.peer.control, Talk::kEnd, AnyFailure(findings_)); });
    ForEach([](Other& other) { static_cast<void>(ReceiveKind(other.peer.control, Talk::kLeft)); });
    ForEach([](Other& other) { Send(other.peer.control, Talk::kBye); });
  }

  const DoctorMember& member_;
  Joined joined_;
  std::vector<Other> others_;
  Findings findings_;
  std::unique_ptr<TransferEnd> end_;
  bool connected_ = false;
};

}  // namespace

std::unique_ptr<TransferEnd> OpenTransfers(const DoctorMember& member, Joined& joined,
                                           Findings& findings) {
  try {
    return std::make_unique<TransferEnd>(
        OpenTensorPlane(member.config, joined, member.self, member.key));
  } catch (const std::exception& e) {
    findings.push_back(Fails("transport", e.what(),
                             "see transport.ucx_tls, transport.net_devices and "
                             "transport.port_range"));
    return nullptr;
  }
}

DoctorOutcome MeetAndMeasure(DoctorMember member) {
  Joined joined;
  try {
    joined = Join(member.key, member.join);
  } catch (const JoinError& e) {
    member.own.push_back(CheckMeeting({e.what(), e.fault}));
    return {std::move(member.own), true, false};
  }
  return member.self == 0 ? First(member, std::move(joined)).Run()
                          : AnswerAsMember(member, std::move(joined));
}

}  // namespace troupe
