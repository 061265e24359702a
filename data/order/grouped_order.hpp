// The order of training rows with data.group_by = "modality_length": the samples of a step have the
// same fields, and are ordered by length, so that a microbatch pads little and its replicas take
// equally long. A run that resumes with another global batch keeps its groups, so that it reads no
// row twice: then a step may have samples of two groups. docs/decisions/0044-grouping-without-state.md explains the method.
//
// Any process can compute any step of it: as in data/order/sample_order.hpp nothing is sent. A checkpoint
// holds the size of the groups. Memory holds two windows of places.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "data/order/sample_order.hpp"
#include "layout/route.hpp"

namespace troupe {

/// The row at a place of the order of training, for grouping.
struct RowForm {
  std::int64_t row = 0;
  std::uint64_t fields = 0;  ///< bit i: it has items of field i
  std::int64_t length = 0;   ///< tokens, rows of encoders included
};

struct GroupTerms {
  std::uint64_t seed = 0;
  std::int64_t group = 1;  ///< samples among which rows are grouped
  std::int64_t size = 1;   ///< places of an epoch
  /// Returns the row at a place of the endless order. Thread-safe.
  std::function<RowForm(std::int64_t place)> form_at;
  /// Most places of a window. Groups are made within a window, and a window within an epoch.
  std::int64_t window = kOrderWindow;
};

/// Thread-safe.
class GroupedOrder {
 public:
  /// Throws std::invalid_argument unless group, size and window are at least 1.
  explicit GroupedOrder(GroupTerms terms);

  /// Returns the rows at `places` of the grouped order, longest first. Each window has the rows that its
  /// places have in the order of training. A step of `group` places that begins at a multiple of `group` has
  /// one modality, except a few steps of each window.
  std::shared_ptr<const std::vector<std::int64_t>> RowsAt(const Interval& places) const;

 private:
  struct Row {
    std::int64_t row = 0;
    std::int64_t length = 0;
  };
  /// Rows with the same fields.
  struct Class {
    std::vector<Row> rows;       ///< in the order of training
    std::int64_t num_steps = 0;  ///< steps that have only its rows
  };
  /// The parts of a window: the end of the step that the window before began, whole steps, and the
  /// beginning of the last step.
  struct Window {
    std::int64_t number = 0;
    Interval places;
    std::int64_t head = 0;
    std::int64_t steps = 0;      ///< whole ones
    std::int64_t uniform = 0;    ///< of them, with rows of one class only
    std::vector<Class> classes;  ///< in ascending order of the fields
  };

  /// Returns the number of the window of a place.
  std::int64_t NumberAt(std::int64_t place) const;
  Window MakeWindow(std::int64_t number) const;
  const Window& WindowOf(std::int64_t number) const;  ///< the lock must be held
  const Row& RowAt(const Window& window, std::int64_t place) const;
  /// Returns row `index` of those that are in no uniform step, one class after the other.
  const Row& Leftover(const Window& window, std::int64_t index) const;
  std::vector<std::int64_t> Compute(const Interval& places) const;

  const GroupTerms terms_;
  std::int64_t width_ = 0;      ///< places of a window; the last one of an epoch may have fewer
  std::int64_t per_epoch_ = 0;  ///< windows
  mutable std::mutex mutex_;    ///< of all below
  mutable std::map<std::int64_t, Window> windows_;
  /// Of the latest steps, by place: every unit of a step asks for the step's rows.
  mutable std::map<std::pair<std::int64_t, std::int64_t>,
                   std::shared_ptr<const std::vector<std::int64_t>>>
      recent_;
};

}  // namespace troupe
