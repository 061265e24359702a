// Divides the samples of a step among groups that get the same numbers of samples, so that every
// group has about the same work.
//
// With one kind of cost it is greedy number partitioning, longest first, into groups with room (Algorithm 1
// of DistTrain, arXiv:2408.04275, with equal counts), and then swaps of samples. Every
// module has a kind of cost, and groups of its own: its replicas. A column is a set of places that all
// modules keep together, so a replica of a module has one or more columns.
//
// All arithmetic is in integers and ties go to the lowest index: every process computes the same.
#pragma once

#include <cstdint>
#include <vector>

namespace troupe {

struct SampleColumns {
  std::vector<std::int64_t> room;          ///< by column: the samples that it takes
  std::vector<std::vector<int>> group_of;  ///< by kind of cost, by column: its group, from 0
};

/// Returns the column of each sample; column c has room[c] samples. `costs`: by sample, by kind, 0 or
/// more, in any unit: loads are compared with the mean load of a group of their kind. Throws
/// std::invalid_argument: the rooms are not as many as there are samples; a list of the wrong length;
/// a negative number.
///   cost     O(n (log n + columns * kinds)), and at most 2^21 comparisons of two samples for the swaps
std::vector<int> DivideEvenly(const std::vector<std::vector<std::int64_t>>& costs,
                              const SampleColumns& columns);

}  // namespace troupe
