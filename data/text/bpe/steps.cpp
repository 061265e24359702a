#include "data/text/bpe/steps.hpp"

#include <cstddef>

namespace troupe::bpe {
namespace {

/// Published files have at most six.
constexpr std::size_t kMaxSteps = 32;

class StepReader {
 public:
  using Sink = std::function<void(const JsonNode& step, const JsonNode& type)>;
  StepReader(const std::string& key, const Sink& sink) : key_(key), sink_(sink) {}

  /// The depth of a file is bounded, so is this recursion.
  void Read(const JsonNode& node) {
    if (++num_steps_ > kMaxSteps) {
      node.Fail("expected at most " + std::to_string(kMaxSteps) + " steps");
    }
    const JsonNode type = node.At("type");
    if (type.Text() != "Sequence") return sink_(node, type);
    const JsonNode list = node.At(key_);
    for (std::size_t i = 0; i < list.size(); ++i) Read(list.Item(i));
  }

 private:
  const std::string& key_;
  const Sink& sink_;
  std::size_t num_steps_ = 0;
};

}  // namespace

void ForEachStep(const JsonNode& node, const std::string& key, const StepReader::Sink& sink) {
  StepReader(key, sink).Read(node);
}

}  // namespace troupe::bpe
