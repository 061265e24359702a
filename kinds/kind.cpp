#include "kinds/kind.hpp"

namespace troupe {

void ModelConfig::FillDefaults(const std::function<bool(const char* key)>&) {}
void ModelConfig::Check(ModuleCheck&) const {}

std::string ModelConfig::WhyNotFrom(const ModelConfig&) const { return {}; }

std::unique_ptr<const Field> ModelConfig::field() const { return nullptr; }
std::int64_t ModelConfig::RowsOf(std::int64_t length) const { return length * rows_per_item(); }
std::int64_t ModelConfig::rows_per_item() const { return 0; }
std::optional<TextInput> ModelConfig::text() const { return std::nullopt; }
bool ModelConfig::ReadsData(bool first_stage, bool, bool) const { return first_stage; }

bool ModelConfig::emits_rows() const { return true; }
bool ModelConfig::takes_rows() const { return false; }
std::optional<StatedTimes> ModelConfig::stated_times() const { return std::nullopt; }
std::optional<Layers> ModelConfig::split_layers() const { return std::nullopt; }
ExtraCosts ModelConfig::extra_costs() const { return {}; }
bool ModelConfig::AllowsTp(int) const { return true; }
std::int64_t ModelConfig::shared_kv_heads() const { return 0; }
bool ModelConfig::ties_embedding() const { return false; }

void ModelConfig::AddParameters(const StagePlace&, ParameterList&) const {}
void ModelConfig::CountFlops(const StagePlace&, const StepShape&, const std::string&,
                             FlopCounter&) const {}
std::int64_t ModelConfig::KeptElements(const StagePlace&, const RankWork&) const { return 0; }

}  // namespace troupe
