// Which ranks have become slow. Pure: process 0 asks it after each step.
//
// A rank's own time in a step is the time of its passes without the time that it waited for others, so
// a slow rank does not make those slow that wait for it. It is slow if it takes much longer than usual.
// Usual is the median of its peers, which do the same work. If no peer is in another process, they
// may all be slow together; then it is the smaller one of that and of the median of the rank's own
// first steps, scaled by the change of all other ranks since theirs.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <vector>

namespace troupe {

struct SlowRank {
  int rank = 0;
  double own_s = 0.0;    ///< median of the steps
  double usual_s = 0.0;  ///< likewise
  std::int64_t steps = 0;
  bool next_to_peers = false;  ///< their time is the usual one, else that of its first steps
};

/// The ranks of a process that are named after the same step.
struct SlowProcess {
  std::string name;        ///< "n1"
  std::vector<int> ranks;  ///< ascending
  SlowRank slowest;        ///< next to what is usual for it
};

struct SlowLimits {
  double factor = 0.0;     ///< of the usual time; 0: no rank is slow
  std::int64_t steps = 1;  ///< in a row
};

/// The ranks that do the same work as one.
struct PeerRanks {
  std::vector<int> ranks;
  bool in_another_process = false;  ///< at least one of them
};

class SlowRanks {
 public:
  SlowRanks() = default;
  /// `peers`: of every rank of the job.
  SlowRanks(SlowLimits limits, std::map<int, PeerRanks> peers);

  /// `own_s`: by rank, of every rank of the job. Returns the ranks that have been slow for the stated
  /// number of steps now. One that stays slow is returned once.
  std::vector<SlowRank> OnStep(double step_s, const std::map<int, double>& own_s);
  /// Those that were returned and are slow since.
  std::vector<int> SlowNow() const;

 private:
  struct Course {
    std::vector<double> first_s;  ///< of the first steps
    double baseline_s = 0.0;      ///< their median; 0: not known yet
    std::vector<double> own_s;    ///< of the steps in which it was slow, in a row
    std::vector<double> usual_s;  ///< of the same steps
  };
  struct Usual {
    double s = 0.0;  ///< 0: not known
    bool of_peers = false;
  };

  Usual UsualFor(int rank, const std::map<int, double>& own_s) const;
  bool IsSlow(const Course& course) const {
    return !course.own_s.empty() && std::ssize(course.own_s) == limits_.steps;
  }

  SlowLimits limits_;
  std::map<int, PeerRanks> peers_;
  std::map<int, Course> courses_;
  std::int64_t steps_ = 0;
};

}  // namespace troupe
