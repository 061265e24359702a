#include "modules/torch/compare.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "gpu/kernels/bfloat16.hpp"
#include "layout/text.hpp"
#include "modules/tensor_pieces.hpp"
#include "trace/analyze/table.hpp"

namespace troupe {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A reference tensor and the result of its comparison so far.
struct Whole {
  Buffer reference;
  std::vector<double> latest;  ///< the copy of each element that was seen last
  std::vector<bool> covered;
  TensorDifference difference;
  int num_pieces = 0;
};

double At(const Buffer& buffer, std::int64_t index) {
  const auto i = static_cast<std::size_t>(index);
  if (buffer.dtype() == DType::kBFloat16) {
    return static_cast<double>(static_cast<float>(buffer.as<BFloat16>()[i]));
  }
  return buffer.dtype() == DType::kFloat32 ? static_cast<double>(buffer.as<float>()[i])
                                           : buffer.as<double>()[i];
}

/// The largest |element|, infinite if one is not finite.
double Maximum(const Buffer& buffer) {
  double maximum = 0.0;
  for (std::int64_t i = 0; i < buffer.num_elements(); ++i) {
    const double value = std::abs(At(buffer, i));
    if (!std::isfinite(value)) return kInfinity;
    maximum = std::max(maximum, value);
  }
  return maximum;
}

double RelativeDifference(double a, double b, double scale) {
  if (!std::isfinite(a) || !std::isfinite(b)) return kInfinity;
  if (a == b) return 0.0;
  return scale > 0.0 ? std::abs(a - b) / scale : kInfinity;
}

Shape Unflatten(std::int64_t index, const Shape& shape) {
  Shape at(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    at[d] = index % shape[d];
    index /= shape[d];
  }
  return at;
}

/// The reason why the piece cannot be a part of a tensor of `shape`; empty if it can.
std::string Misfit(const TensorPiece& piece, const Shape& shape) {
  if (piece.global_shape != shape) {
    return "expected a piece of " + ToString(shape) + ", got one of " +
           ToString(piece.global_shape);
  }
  if (!piece.value.defined() && NumElements(piece.value.shape()) > 0)
    return "the piece has no value";
  const DType type = piece.value.dtype();
  if (type != DType::kFloat32 && type != DType::kFloat64 && type != DType::kBFloat16) {
    return "expected float32, float64 or bfloat16, got " + ToString(type);
  }
  if (LiesInside(piece)) return "";
  return "piece " + ToString(piece.value.shape()) + " at " + ToString(piece.offsets) +
         " is not inside " + ToString(shape);
}

Whole MakeWhole(const TensorPiece& piece) {
  const std::string misfit = Misfit(piece, piece.value.shape());
  if (!misfit.empty()) throw std::invalid_argument("reference of " + piece.name + ": " + misfit);
  const auto size = static_cast<std::size_t>(piece.value.num_elements());
  Whole whole{piece.value, std::vector<double>(size), std::vector<bool>(size), {}, 0};
  whole.difference.name = piece.name;
  whole.difference.shape = piece.global_shape;
  whole.difference.scale = Maximum(piece.value);
  return whole;
}

/// Gives every `...k_proj.bias` the size of its weight; the header says why.
void BorrowScales(std::map<std::string, Whole>& wholes) {
  constexpr std::string_view kBias = "k_proj.bias";
  for (auto& [name, whole] : wholes) {
    if (!name.ends_with(kBias)) continue;
    const auto weight = wholes.find(name.substr(0, name.size() - 4) + "weight");
    if (weight == wholes.end()) continue;
    whole.difference.scale = std::max(whole.difference.scale, weight->second.difference.scale);
  }
}

void CompareElement(double found, std::int64_t index, Whole& whole) {
  TensorDifference& difference = whole.difference;
  const double expected = At(whole.reference, index);
  const double relative = RelativeDifference(found, expected, difference.scale);
  if (relative > difference.worst) {
    difference.worst = relative;
    difference.worst_index = Unflatten(index, difference.shape);
    difference.worst_expected = expected;
    difference.worst_found = found;
  }
  const auto i = static_cast<std::size_t>(index);
  if (whole.covered[i]) {
    const double apart = RelativeDifference(found, whole.latest[i], difference.scale);
    difference.copies_differ = std::max(difference.copies_differ, apart);
  }
  whole.covered[i] = true;
  whole.latest[i] = found;
}

void ComparePiece(const TensorPiece& piece, Whole& whole) {
  ++whole.num_pieces;
  ForEachRun(piece, [&](std::int64_t first, std::int64_t global, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      CompareElement(At(piece.value, first + i), global + i, whole);
    }
  });
}

std::string Number(double value) { return Formatted("%.3g", value); }

void AddFaults(const TensorDifference& tensor, double limit, std::vector<std::string>& faults) {
  if (tensor.uncovered > 0) {
    faults.push_back(tensor.name + ": no piece holds " + std::to_string(tensor.uncovered) + " of " +
                     std::to_string(NumElements(tensor.shape)) + " elements");
  }
  if (tensor.worst > limit) {
    faults.push_back(tensor.name + ": element " + ToString(tensor.worst_index) + ": expected " +
                     Formatted("%.10g, got %.10g: ", tensor.worst_expected, tensor.worst_found) +
                     Number(tensor.worst) + " of the largest element " + Number(tensor.scale) +
                     ", the limit is " + Number(limit));
  }
  if (tensor.copies_differ > limit) {
    faults.push_back(tensor.name + ": copies of one element differ by " +
                     Number(tensor.copies_differ) + " of the largest element " +
                     Number(tensor.scale) + ", the limit is " + Number(limit));
  }
}

/// One line of the table.
struct Row {
  std::set<std::string> tensors;
  std::map<TensorKind, double> worst;
  double worst_of_all = -1.0;
  std::string worst_tensor;
};

std::map<std::string, Row> RowsByModule(const std::map<TensorKind, Comparison>& kinds) {
  std::map<std::string, Row> rows;
  for (const auto& [kind, comparison] : kinds) {
    for (const TensorDifference& tensor : comparison.tensors) {
      Row& row = rows[tensor.name.substr(0, tensor.name.find('.'))];
      // A tensor that is not held completely does not agree, even if the rest of it does.
      // NOLINTNEXTLINE(bugprone-narrowing-conversions): clang-tidy takes infinity for a narrower type
      const double worst = tensor.uncovered > 0 ? kInfinity : tensor.worst;
      row.tensors.insert(tensor.name);
      row.worst[kind] = std::max(row.worst[kind], worst);
      if (worst > row.worst_of_all) {
        row.worst_of_all = worst;
        row.worst_tensor = tensor.name;
      }
    }
  }
  return rows;
}

std::vector<Cell> CellsOf(const std::string& module, const Row& row) {
  const auto worst = [&row](TensorKind kind) {
    const auto found = row.worst.find(kind);
    return Cell::Number(found == row.worst.end() ? "-" : Number(found->second));
  };
  return {module,
          Cell::Number(std::to_string(row.tensors.size())),
          worst(TensorKind::kGradient),
          worst(TensorKind::kParameter),
          worst(TensorKind::kFirstMoment),
          worst(TensorKind::kSecondMoment),
          row.worst_tensor};
}

}  // namespace

Comparison CompareTensors(const std::vector<TensorPiece>& reference,
                          const std::vector<TensorPiece>& pieces) {
  std::map<std::string, Whole> wholes;
  for (const TensorPiece& piece : reference) {
    if (!wholes.emplace(piece.name, MakeWhole(piece)).second) {
      throw std::invalid_argument("reference of " + piece.name + ": given twice");
    }
  }
  BorrowScales(wholes);

  Comparison comparison;
  std::set<std::string> extra;
  for (const TensorPiece& piece : pieces) {
    const auto whole = wholes.find(piece.name);
    if (whole == wholes.end()) {
      extra.insert(piece.name);
      continue;
    }
    const std::string misfit = Misfit(piece, whole->second.difference.shape);
    if (misfit.empty()) {
      ComparePiece(piece, whole->second);
    } else {
      comparison.malformed.push_back(piece.name + ": " + misfit);
    }
  }
  comparison.extra.assign(extra.begin(), extra.end());
  for (auto& [name, whole] : wholes) {
    if (whole.num_pieces == 0) comparison.missing.push_back(name);
    whole.difference.uncovered = std::count(whole.covered.begin(), whole.covered.end(), false);
    comparison.tensors.push_back(std::move(whole.difference));
  }
  return comparison;
}

std::vector<std::string> Faults(const Comparison& comparison, double limit) {
  std::vector<std::string> faults = comparison.malformed;
  for (const std::string& name : comparison.missing) faults.push_back(name + ": no shard holds it");
  for (const std::string& name : comparison.extra) {
    faults.push_back(name + ": a shard holds it, the reference does not");
  }
  const std::set<std::string> missing(comparison.missing.begin(), comparison.missing.end());
  for (const TensorDifference& tensor : comparison.tensors) {
    if (!missing.contains(tensor.name)) AddFaults(tensor, limit, faults);
  }
  return faults;
}

std::string FormatTable(const std::map<TensorKind, Comparison>& kinds) {
  Table table{{"module", "tensors", "worst gradient", "worst parameter", "worst first moment",
               "worst second moment", "worst tensor"},
              {}};
  for (const auto& [module, row] : RowsByModule(kinds)) table.rows.push_back(CellsOf(module, row));
  return ToText(table);
}

}  // namespace troupe
