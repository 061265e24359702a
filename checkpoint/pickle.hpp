// Python pickles of tensors, as torch.save writes them: a list of instructions for a machine with a
// stack. This machine builds plain values and calls nothing. It knows the instructions and the
// globals that such pickles have, and refuses all others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "checkpoint/stored_type.hpp"

namespace troupe {

/// Functions that a pickle may name. "torch.FloatStorage" and its like become a StoredType.
enum class PickleFunction : std::uint8_t { kOrderedDict, kRebuildTensor, kRebuildParameter };

/// An index into Pickle::values.
using PickleId = std::uint32_t;

struct PickleNone {};
struct PickleTuple {
  std::vector<PickleId> items;
};
struct PickleList {
  std::vector<PickleId> items;
};
/// A dict, or an OrderedDict without its attributes.
struct PickleDict {
  std::vector<std::pair<PickleId, PickleId>> items;  ///< as written: a key may repeat
};
/// A call that the pickle asks for; it is not made.
struct PickleCall {
  PickleFunction function = PickleFunction::kOrderedDict;
  PickleId arguments = 0;  ///< of a tuple
};
/// A reference to something outside of the pickle: a storage.
struct PickleReference {
  PickleId id = 0;
};
using PickleValue =
    std::variant<PickleNone, bool, std::int64_t, double, std::string, StoredType, PickleFunction,
                 PickleTuple, PickleList, PickleDict, PickleCall, PickleReference>;

/// Containers hold ids, and may hold themselves.
struct Pickle {
  std::vector<PickleValue> values;
  PickleId root = 0;

  template <class Kind>
  const Kind* Get(PickleId id) const {
    return std::get_if<Kind>(&values[id]);
  }
};

/// "a dict", "a number": for messages.
std::string KindOf(const PickleValue& value);

/// Takes memory proportional to `bytes`, and at most about half a GiB. Throws std::runtime_error,
/// one line that begins with "the pickle".
Pickle ReadPickle(std::span<const std::byte> bytes);

}  // namespace troupe
