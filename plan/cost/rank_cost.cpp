#include "plan/cost/rank_cost.hpp"

#include <algorithm>

namespace troupe {
namespace {

double Divided(std::int64_t size, int parts) {
  return static_cast<double>(size) / static_cast<double>(parts);
}

}  // namespace

double RingTime(const LinkRate& link, double bytes, int ranks) {
  if (ranks <= 1) return 0.0;
  return (ranks - 1) * link.TimeOf(bytes / ranks);
}

double SecondsOfCollective(const DeviceModel& device, const LinkRate& link, double bytes, int ranks,
                           bool sums) {
  if (ranks <= 1) return 0.0;
  return RingTime(link, bytes, ranks) + (ranks - 1) * device.collective_s +
         (sums ? bytes * device.sum_byte_s : 0.0);
}

RankCost::RankCost(const DeviceModel& device, const PassRates& rates, const RankShare& share)
    : device_(device), rates_(rates), share_(share) {}

bool RankCost::Again() const {
  if (!part() || !backs()) return false;
  const Recompute& recompute = share_.recompute;
  return recompute.Has(LayerPart::kLayer) || recompute.Has(*part()) ||
         (*part() == LayerPart::kMlpUp && recompute.Has(LayerPart::kMlp));
}

void RankCost::AddProduct(const Product& product, const OperationRates& rates, Breakdown& to) {
  const auto& [m, n, k] = product;
  to[Spent::kStarting] += rates.operation_s;
  to[Spent::kLinears] +=
      2.0 * m * n * k * rates.linear_flop_s + (m * n + m * k + n * k) * rates.linear_element_s;
}

void RankCost::AddProducts(const Product& product, bool input_gradient) {
  AddProduct(product, rates_.forward, cost_.forward);
  if (Again()) {
    Breakdown again;
    AddProduct(product, rates_.forward, again);
    cost_.inputs[Spent::kRecompute] += again.total();
  }
  const auto& [m, n, k] = product;
  if (input_gradient) AddProduct({m, k, n}, rates_.backward, cost_.inputs);
  if (share_.weight_gradient) AddProduct({n, k, m}, rates_.backward, cost_.weights);
}

void RankCost::AddRing(double bytes, int ranks, int stride, bool sums, Spent on, Breakdown& to) {
  if (ranks <= 1) return;
  const double seconds =
      SecondsOfCollective(device_, device_.topology.LinkOf(ranks, stride), bytes, ranks, sums);
  const double exposed = on == Spent::kTensor ? device_.exposed.tensor : 1.0;
  to[on] += exposed * seconds;
  cost_.hidden_s += (1.0 - exposed) * seconds;
}

void RankCost::AddLinear(const LinearWork& linear) {
  const int tp = share_.layout.tp;
  const double rows = Divided(linear.rows, share_.cp);
  const bool outputs = linear.cut == Cut::kRows;
  const bool inputs = linear.cut == Cut::kColumns;
  double out = outputs ? Divided(linear.out, tp) : static_cast<double>(linear.out);
  if (outputs && linear.kv_heads > 0 && linear.kv_heads < tp) {
    out = Divided(linear.out - linear.kv_out, tp) +
          Divided(linear.kv_out, static_cast<int>(linear.kv_heads));
  }
  const double in = inputs ? Divided(linear.in, tp) : static_cast<double>(linear.in);
  const bool input_gradient = share_.input_gradient || (share_.weight_gradient && !linear.first);
  AddProducts({rows, out, in}, input_gradient);
  if (tp == 1 || !(outputs || inputs)) return;

  // With sequence parallelism rows are gathered before the outputs are cut, and sums are cut after the
  // inputs were; the backward does the reverse, and gathers the inputs again for the weights. Without
  // it, the sums of both are gathered, too.
  const bool cuts_rows = share_.layout.cuts_rows();
  const double bytes =
      rows * share_.element_bytes * static_cast<double>(outputs ? linear.in : linear.out);
  const auto gather = [&](Breakdown& to) { AddRing(bytes, tp, 1, false, Spent::kTensor, to); };
  const auto sum = [&](Breakdown& to) { AddRing(bytes, tp, 1, true, Spent::kTensor, to); };
  Breakdown forward;
  if (inputs) sum(forward);
  if (cuts_rows ? outputs : inputs) gather(forward);
  cost_.forward += forward;
  if (Again()) cost_.inputs[Spent::kRecompute] += forward.total();
  if (outputs && input_gradient) sum(cost_.inputs);
  if (cuts_rows && inputs && backs()) gather(cost_.inputs);
  if (!cuts_rows && outputs && input_gradient) gather(cost_.inputs);
  if (cuts_rows && outputs && share_.weight_gradient) gather(cost_.weights);
}

void RankCost::AddAttention(const AttentionWork& attention) {
  const int tp = share_.layout.tp;
  const int cp = share_.cp;
  const double share = 1.0 / (static_cast<double>(tp) * cp);
  const auto add = [&](const OperationRates& rates, double products, Breakdown& to) {
    to[Spent::kStarting] += rates.operation_s;
    to[Spent::kAttention] +=
        share * attention.pairs *
        (2.0 * products * static_cast<double>(attention.width) * rates.attention_flop_s +
         static_cast<double>(attention.heads) * rates.attention_score_s);
  };
  Breakdown forward;
  add(rates_.forward, 2, forward);
  Breakdown inputs;
  // The scores again, their gradient, and those of queries, keys and values.
  if (backs()) add(rates_.backward, 5, inputs);
  if (cp > 1) {
    const double kv = attention.kv_heads > 0 && attention.kv_heads < tp
                          ? Divided(attention.kv_width, static_cast<int>(attention.kv_heads))
                          : Divided(attention.kv_width, tp);
    const double bytes = 2.0 * kv * static_cast<double>(attention.rows) * share_.element_bytes;
    const double once = RingTime(device_.topology.LinkOf(cp, tp), bytes, cp);
    // What arrives while the part before is attended to costs nothing.
    const auto exchange = [&](double seconds, Breakdown& to) {
      const double hides = share_.ring ? to[Spent::kAttention] * (cp - 1) / cp : 0.0;
      const double left = device_.exposed.context * std::max(0.0, seconds - hides);
      to[Spent::kContext] += left;
      cost_.hidden_s += seconds - left;
    };
    exchange(once, forward);
    if (backs()) exchange(2.0 * once, inputs);
  }
  cost_.forward += forward;
  cost_.inputs += inputs;
  if (Again()) cost_.inputs[Spent::kRecompute] += forward.total();
}

void RankCost::AddElements(const ElementWork& elements) {
  const bool cut = elements.inside || share_.layout.cuts_rows();
  const double number =
      Divided(elements.rows, share_.cp) * Divided(elements.width, cut ? share_.layout.tp : 1);
  const auto add = [&](const OperationRates& rates, double times, Breakdown& to) {
    to[Spent::kStarting] += rates.operation_s;
    to[Spent::kElements] += times * number * rates.element_s;
  };
  Breakdown forward;
  add(rates_.forward, elements.forward, forward);
  cost_.forward += forward;
  if (!backs()) return;
  add(rates_.backward, elements.backward, cost_.inputs);
  if (Again()) cost_.inputs[Spent::kRecompute] += forward.total();
}

void RankCost::AddExperts(const ExpertWork& experts) {
  const Layout& layout = share_.layout;
  const auto width = static_cast<double>(experts.width);
  // A rank routes its own rows, and computes as many as it sends, once for each rank along etp, if all
  // experts are chosen equally often.
  const double routed = Divided(experts.rows, share_.cp) / static_cast<double>(layout.tp);
  AddProducts({routed, static_cast<double>(experts.count), width}, backs());
  const double computed = routed * static_cast<double>(experts.per_token) * layout.etp;
  const auto here = std::max<std::int64_t>(1, experts.count / layout.ep);
  const double rows = computed / static_cast<double>(here);
  const double hidden = Divided(experts.hidden, layout.etp);
  const auto act = [&](double times, const OperationRates& rates) {
    return times * computed * hidden * rates.element_s;
  };
  for (std::int64_t expert = 0; expert < here; ++expert) {
    AddProducts({rows, 2.0 * hidden, width}, backs());
  }
  cost_.forward[Spent::kElements] += act(3.0, rates_.forward);
  if (backs()) cost_.inputs[Spent::kElements] += act(5.0, rates_.backward);
  if (Again()) cost_.inputs[Spent::kRecompute] += act(3.0, rates_.forward);

  // What follows is behind the rows that mlp.up computes again.
  Enter(LayerPart::kMlp);
  for (std::int64_t expert = 0; expert < here; ++expert) {
    AddProducts({rows, width, hidden}, backs());
  }
  Breakdown exchange;
  for (int way = 0; way < 2; ++way) {  // there and back
    AddRing(computed * width * share_.element_bytes, layout.expert_group(), 1, false,
            Spent::kExperts, exchange);
  }
  cost_.forward += exchange;
  if (backs()) cost_.inputs += exchange;
  if (Again()) cost_.inputs[Spent::kRecompute] += exchange.total();
  Enter(LayerPart::kMlpUp);
}

}  // namespace troupe
