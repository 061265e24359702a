#include "plan/cost/fit.hpp"

#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>

namespace troupe {
namespace {

using Row = std::vector<double>;

/// Returns the solution of a symmetric positive system by elimination; nothing if it has none.
std::optional<Row> Solved(std::vector<Row> a, Row b) {
  const std::size_t n = b.size();
  for (std::size_t i = 0; i < n; ++i) {
    if (a[i][i] <= 1e-12) return std::nullopt;
    for (std::size_t row = i + 1; row < n; ++row) {
      const double factor = a[row][i] / a[i][i];
      for (std::size_t k = i; k < n; ++k) a[row][k] -= factor * a[i][k];
      b[row] -= factor * b[i];
    }
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) b[i] -= a[i][k] * b[k];
    b[i] /= a[i][i];
  }
  return b;
}

/// One row for each observation, divided by its measured time.
struct System {
  std::vector<Row> parts;  ///< [observation][rate]: the time that a rate of 1 adds
  Row left;                ///< [observation]: the time that known rates do not explain
};

double SquaresOf(const System& system, const Row& rates) {
  double sum = 0.0;
  for (std::size_t i = 0; i < system.left.size(); ++i) {
    double error = -system.left[i];
    for (std::size_t k = 0; k < rates.size(); ++k) error += system.parts[i][k] * rates[k];
    sum += error * error;
  }
  return sum;
}

/// The best rates of which those outside of `chosen`, a set of bits, are 0; nothing if one is below 0.
std::optional<Row> BestOf(const System& system, unsigned chosen, std::size_t num_rates) {
  std::vector<std::size_t> rates;
  for (std::size_t k = 0; k < num_rates; ++k) {
    if ((chosen >> k & 1U) != 0U) rates.push_back(k);
  }
  std::vector<Row> products(rates.size(), Row(rates.size()));
  Row right(rates.size());
  for (std::size_t i = 0; i < system.left.size(); ++i) {
    for (std::size_t a = 0; a < rates.size(); ++a) {
      right[a] += system.parts[i][rates[a]] * system.left[i];
      for (std::size_t b = 0; b < rates.size(); ++b) {
        products[a][b] += system.parts[i][rates[a]] * system.parts[i][rates[b]];
      }
    }
  }
  const auto solution = Solved(std::move(products), std::move(right));
  if (!solution) return std::nullopt;
  Row all(num_rates);
  for (std::size_t a = 0; a < rates.size(); ++a) {
    if ((*solution)[a] < 0.0) return std::nullopt;
    all[rates[a]] = (*solution)[a];
  }
  return all;
}

}  // namespace

void FitRates(const std::vector<Observation>& observations, const std::vector<SetRate>& rates,
              DeviceModel& device) {
  if (rates.size() > 8) throw std::invalid_argument("a fit has at most 8 rates");
  for (const SetRate& set : rates) set(device, 0.0);
  System system;
  Row scales(rates.size());  // so that all columns are of one size
  for (const Observation& observation : observations) {
    const double known = observation.time(device);
    system.left.push_back(1.0 - known / observation.seconds);
    Row& parts = system.parts.emplace_back();
    for (std::size_t k = 0; k < rates.size(); ++k) {
      rates[k](device, 1.0);
      parts.push_back((observation.time(device) - known) / observation.seconds);
      rates[k](device, 0.0);
      scales[k] += std::abs(parts.back());
    }
  }
  for (Row& parts : system.parts) {
    for (std::size_t k = 0; k < rates.size(); ++k) {
      if (scales[k] > 0.0) parts[k] /= scales[k];
    }
  }
  Row best(rates.size());
  double least = std::numeric_limits<double>::infinity();
  for (unsigned chosen = 0; chosen < 1U << rates.size(); ++chosen) {
    const auto found = BestOf(system, chosen, rates.size());
    if (!found) continue;
    const double squares = SquaresOf(system, *found);
    if (squares >= least) continue;
    least = squares;
    best = *found;
  }
  for (std::size_t k = 0; k < rates.size(); ++k) {
    rates[k](device, scales[k] > 0.0 ? best[k] / scales[k] : 0.0);
  }
}

std::vector<double> RelativeErrors(const std::vector<Observation>& observations,
                                   const DeviceModel& device) {
  std::vector<double> errors;
  for (const Observation& observation : observations) {
    errors.push_back(observation.time(device) / observation.seconds - 1.0);
  }
  return errors;
}

}  // namespace troupe
