// The time that one rank takes for a list of operations, its share of those of a stage.
#pragma once

#include <cstdint>

#include "kinds/work.hpp"
#include "layout/grid.hpp"
#include "plan/cost/breakdown.hpp"
#include "plan/cost/device.hpp"

namespace troupe {

/// How the operations of a part are divided among ranks, and what its backward computes.
struct RankShare {
  Layout layout = {};
  int cp = 1;  ///< 1 for an inline encoder, whatever the layout
  bool weight_gradient = false;
  bool input_gradient = false;  ///< of its first operation
  Recompute recompute = {};
  double element_bytes = 4.0;  ///< of a row's element, as it is sent
  bool ring = true;            ///< keys and values go around while attention computes
};

/// Adds up the forward and the backward of the operations that are listed. Collectives take as long as
/// a ring needs: those along tp and ep wait for what they send; keys and values along cp are hidden
/// behind the attention of the part before, if they go around a ring.
class RankCost : public WorkList {
 public:
  /// `device` outlives it.
  RankCost(const DeviceModel& device, const PassRates& rates, const RankShare& share);

  void AddLinear(const LinearWork& linear) override;
  void AddAttention(const AttentionWork& attention) override;
  void AddElements(const ElementWork& elements) override;
  void AddExperts(const ExpertWork& experts) override;

  const PassCost& cost() const { return cost_; }

 private:
  struct Product {
    double m = 0.0;
    double n = 0.0;
    double k = 0.0;
  };
  bool backs() const { return share_.weight_gradient || share_.input_gradient; }
  /// Returns whether a backward runs the operations of this part of a layer again.
  bool Again() const;
  void AddProducts(const Product& product, bool input_gradient);
  static void AddProduct(const Product& product, const OperationRates& rates, Breakdown& to);
  /// Adds to `to` the time of `ranks` ranks to gather `bytes`, or to sum and cut as many.
  void AddRing(double bytes, int ranks, int stride, bool sums, Spent on, Breakdown& to);

  const DeviceModel& device_;
  const PassRates& rates_;
  RankShare share_;
  PassCost cost_;
};

/// Returns the time of a collective over a ring in which each of `ranks` ranks sends and receives
/// (ranks - 1) / ranks of `bytes`: to gather them, or to sum and cut them.
double RingTime(const LinkRate& link, double bytes, int ranks);

/// Returns that time with what each rank does for it; `sums`: it adds up what it receives.
double SecondsOfCollective(const DeviceModel& device, const LinkRate& link, double bytes, int ranks,
                           bool sums);

}  // namespace troupe
