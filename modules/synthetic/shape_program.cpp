#include "modules/synthetic/shape_program.hpp"

#include <stdexcept>
#include <utility>

namespace troupe {

const Buffer& ShapeProgram::Zeros(std::int64_t rows) {
  const auto found = zeros_.find(rows);
  if (found != zeros_.end()) return found->second;
  return zeros_.emplace(rows, Buffer::Zeros({rows, hidden_}, DType::kFloat64)).first->second;
}

ForwardResult ShapeProgram::Forward(const ForwardPass& pass) {
  std::vector<std::int64_t> rows;
  for (const Buffer& input : pass.inputs) rows.push_back(input.num_rows());
  if (rows.empty()) {
    if (!pass.data) throw std::invalid_argument("a source stage got no inputs");
    rows.push_back(CutTable(pass.data->table, shape_.cut, shape_.part).num_rows());
  }
  ForwardResult result;
  result.outputs.assign(shape_.links_out, Zeros(rows.front()));
  if (shape_.links_out == 0) result.loss.tokens = shape_.part == 0 ? 1 : 0;
  if (pass.train && !in_flight_.emplace(pass.unit, std::move(rows)).second) {
    throw std::logic_error("unit " + std::to_string(pass.unit) + " is in flight already");
  }
  return result;
}

BackwardResult ShapeProgram::Backward(const BackwardPass& pass) {
  const auto node = in_flight_.extract(pass.unit);
  if (node.empty()) throw std::logic_error("backward without forward");
  BackwardResult result;
  for (std::size_t k = 0; k < shape_.in_carries_gradient.size(); ++k) {
    result.gradients.push_back(shape_.in_carries_gradient[k] ? Zeros(node.mapped()[k]) : Buffer());
  }
  return result;
}

void ShapeProgram::Update(const UpdateStep&) {
  if (!in_flight_.empty()) throw std::logic_error("a unit is still in flight at the update");
}

ProgramFactory MakeShapePrograms(const Config& config) {
  // Every device gets a copy of the factory, not of the configuration.
  return [shared = std::make_shared<const Config>(config)](const ShardAddress& shard) {
    return std::make_unique<ShapeProgram>(shared->Find(shard.module)->model->row_width(),
                                          SyntheticShapeOf(*shared, shard));
  };
}

}  // namespace troupe
