// The order of training rows with data.group_by = "modality_length": the samples of a step have the
// same fields, and are ordered by length, so that a microbatch pads little and its replicas take
// equally long. A run that resumes with another global batch keeps its groups, so that it reads no
// row twice: then a step may have samples of two groups. docs/decisions/0044-grouping-without-state.md explains the method.
//
// Any process can compute any step of it: as in data/sample_order.hpp nothing is sent. A checkpoint
// holds the size of the groups.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "layout/route.hpp"

namespace troupe {

/// A training row, for grouping.
struct RowForm {
  std::uint64_t fields = 0;  ///< bit i: it has items of field i
  std::int64_t length = 0;   ///< tokens, rows of encoders included
};

/// Thread-safe.
class GroupedOrder {
 public:
  /// `rows`: at least one. `group`: samples among which rows are grouped.
  GroupedOrder(std::uint64_t seed, std::int64_t group, const std::vector<RowForm>& rows);

  /// Returns the rows at `places` of the endless order, longest first; each epoch, size places,
  /// holds every row once. A step whose places are a multiple of `group` onwards has one modality.
  std::shared_ptr<const std::vector<std::int64_t>> RowsAt(const Interval& places) const;

 private:
  /// Rows with the same fields.
  struct Class {
    std::vector<std::int64_t> rows;
    std::int64_t num_rows() const { return std::ssize(rows); }
  };
  /// The parts of an epoch: the end of the step that the epoch before began, whole steps, and the
  /// beginning of the last step.
  struct Epoch {
    std::int64_t number = 0;
    std::int64_t head = 0;
    std::int64_t steps = 0;              ///< whole ones
    std::int64_t uniform = 0;            ///< of them, with rows of one class only
    std::vector<std::int64_t> of_class;  ///< uniform steps, by class
  };

  Epoch EpochOf(std::int64_t number) const;
  /// Returns the row at place `index` of the epoch.
  std::int64_t RowAt(const Epoch& epoch, std::int64_t index) const;
  /// Returns row `index` of a class, in the order of the epoch.
  std::int64_t Drawn(const Epoch& epoch, std::size_t of_class, std::int64_t index) const;
  /// Returns row `index` of those that are in no uniform step, one class after the other.
  std::int64_t Leftover(const Epoch& epoch, std::int64_t index) const;
  std::vector<std::int64_t> Compute(const Interval& places) const;

  std::uint64_t seed_;
  std::int64_t group_;
  std::int64_t size_;
  std::vector<std::int64_t> lengths_;  ///< by row
  std::vector<Class> classes_;         ///< in ascending order of the fields
  mutable std::mutex mutex_;
  /// Of the latest steps, by place: every unit of a step asks for the step's rows.
  mutable std::map<std::pair<std::int64_t, std::int64_t>,
                   std::shared_ptr<const std::vector<std::int64_t>>>
      recent_;
};

}  // namespace troupe
