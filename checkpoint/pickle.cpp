#include "checkpoint/pickle.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>

#include "files/strict_json.hpp"
#include "layout/text.hpp"

namespace troupe {
namespace {

/// The tensors of a model of 10^12 parameters need less than a MiB.
constexpr std::size_t kMaxPickleBytes = std::size_t{16} << 20U;
constexpr std::size_t kMaxValues = std::size_t{4} << 20U;

struct Global {
  std::string_view name;
  PickleValue value;
};

PickleValue FindGlobal(const std::string& name) {
  static const std::array<Global, 13> globals = {
      {{"collections.OrderedDict", PickleFunction::kOrderedDict},
       {"torch._utils._rebuild_tensor_v2", PickleFunction::kRebuildTensor},
       {"torch._utils._rebuild_parameter", PickleFunction::kRebuildParameter},
       {"torch.DoubleStorage", StoredType::kFloat64},
       {"torch.FloatStorage", StoredType::kFloat32},
       {"torch.HalfStorage", StoredType::kFloat16},
       {"torch.BFloat16Storage", StoredType::kBFloat16},
       {"torch.LongStorage", StoredType::kInt64},
       {"torch.IntStorage", StoredType::kInt32},
       {"torch.ShortStorage", StoredType::kInt16},
       {"torch.CharStorage", StoredType::kInt8},
       {"torch.ByteStorage", StoredType::kUInt8},
       {"torch.BoolStorage", StoredType::kBool}}};
  const auto found = std::ranges::find(globals, name, &Global::name);
  if (found != globals.end()) return found->value;
  const std::string quoted = QuoteText(name);
  const bool plain = quoted == "\"" + name + "\"";
  FailReading("the pickle asks for " + (plain ? name : quoted) + "; only tensors are read");
}

/// Takes numbers and texts off the front of bytes.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  /// Bytes taken.
  std::size_t at() const { return at_; }

  std::span<const std::byte> Take(std::uint64_t count) {
    if (count > bytes_.size() - at_) {
      FailReading("the pickle ends at byte " + std::to_string(bytes_.size()) +
                  ", within an instruction");
    }
    const auto taken = bytes_.subspan(at_, static_cast<std::size_t>(count));
    at_ += taken.size();
    return taken;
  }
  /// A little-endian number.
  template <class Number>
  Number TakeNumber() {
    Number number = 0;
    std::memcpy(&number, Take(sizeof(number)).data(), sizeof(number));
    return number;
  }
  std::string TakeText(std::uint64_t count) {
    const auto taken = Take(count);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }
  /// Takes the line break, too.
  std::string TakeLine() {
    const auto rest = bytes_.subspan(at_);
    const auto end = std::ranges::find(rest, std::byte{'\n'});
    std::string line = TakeText(static_cast<std::uint64_t>(end - rest.begin()));
    Take(1);
    return line;
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

class Machine {
 public:
  explicit Machine(std::span<const std::byte> bytes) : cursor_(bytes) {
    for (PickleValue value : {PickleValue(PickleNone{}), PickleValue(false), PickleValue(true)}) {
      pickle_.values.push_back(std::move(value));
    }
  }

  Pickle Run() && {
    while (true) {
      begin_ = cursor_.at();
      const auto opcode = cursor_.TakeNumber<std::uint8_t>();
      if (opcode == kStop) break;
      if (!Announce(opcode) && !PushNumber(opcode) && !PushText(opcode) && !PushContainer(opcode) &&
          !Fill(opcode) && !Remember(opcode) && !Refer(opcode)) {
        Fail(Formatted("has the instruction 0x%02x", opcode) + "; only tensors are read");
      }
    }
    pickle_.root = Pop();
    return std::move(pickle_);
  }

 private:
  /// Bytes of instructions, as Python's pickletools names them.
  enum Opcode : std::uint8_t {
    kMark = '(',
    kStop = '.',
    kBinFloat = 'G',
    kBinInt = 'J',
    kBinInt1 = 'K',
    kBinInt2 = 'M',
    kNone = 'N',
    kBinPersId = 'Q',
    kReduce = 'R',
    kBinUnicode = 'X',
    kEmptyList = ']',
    kAppend = 'a',
    kBuild = 'b',
    kGlobal = 'c',
    kAppends = 'e',
    kBinGet = 'h',
    kLongBinGet = 'j',
    kBinPut = 'q',
    kLongBinPut = 'r',
    kSetItem = 's',
    kTuple = 't',
    kSetItems = 'u',
    kEmptyDict = '}',
    kEmptyTuple = ')',
    kProto = 0x80,
    kTuple1 = 0x85,
    kTuple2 = 0x86,
    kTuple3 = 0x87,
    kNewTrue = 0x88,
    kNewFalse = 0x89,
    kLong1 = 0x8a,
    kShortBinUnicode = 0x8c,
    kBinUnicode8 = 0x8d,
    kStackGlobal = 0x93,
    kMemoize = 0x94,
    kFrame = 0x95,
  };

  // The values that exist once.
  static constexpr PickleId kNoneId = 0;
  static constexpr PickleId kFalseId = 1;
  static constexpr PickleId kTrueId = 2;

  // Each of these functions runs an instruction of its group, and returns whether it is one.

  bool Announce(std::uint8_t opcode) {
    if (opcode == kFrame) {
      cursor_.Take(sizeof(std::uint64_t));
    } else if (opcode == kProto) {
      const auto protocol = cursor_.TakeNumber<std::uint8_t>();
      if (protocol < 2 || protocol > 4) {
        Fail("has protocol " + std::to_string(protocol) + ", expected 2 to 4");
      }
    } else {
      return false;
    }
    return true;
  }

  bool PushNumber(std::uint8_t opcode) {
    if (opcode == kNone) {
      stack_.push_back(kNoneId);
    } else if (opcode == kNewFalse) {
      stack_.push_back(kFalseId);
    } else if (opcode == kNewTrue) {
      stack_.push_back(kTrueId);
    } else if (opcode == kBinInt) {
      Push(std::int64_t{cursor_.TakeNumber<std::int32_t>()});
    } else if (opcode == kBinInt1) {
      Push(std::int64_t{cursor_.TakeNumber<std::uint8_t>()});
    } else if (opcode == kBinInt2) {
      Push(std::int64_t{cursor_.TakeNumber<std::uint16_t>()});
    } else if (opcode == kLong1) {
      Push(TakeLong());
    } else if (opcode == kBinFloat) {  // the only one that is big-endian
      Push(std::bit_cast<double>(__builtin_bswap64(cursor_.TakeNumber<std::uint64_t>())));
    } else {
      return false;
    }
    return true;
  }

  bool PushText(std::uint8_t opcode) {
    if (opcode == kBinUnicode) {
      Push(cursor_.TakeText(cursor_.TakeNumber<std::uint32_t>()));
    } else if (opcode == kShortBinUnicode) {
      Push(cursor_.TakeText(cursor_.TakeNumber<std::uint8_t>()));
    } else if (opcode == kBinUnicode8) {
      Push(cursor_.TakeText(cursor_.TakeNumber<std::uint64_t>()));
    } else {
      return false;
    }
    return true;
  }

  bool PushContainer(std::uint8_t opcode) {
    if (opcode == kMark) {
      marks_.push_back(stack_.size());
    } else if (opcode == kEmptyTuple) {
      Push(PickleTuple{});
    } else if (opcode == kEmptyList) {
      Push(PickleList{});
    } else if (opcode == kEmptyDict) {
      Push(PickleDict{});
    } else if (opcode == kTuple) {
      Push(PickleTuple{PopToMark()});
    } else if (opcode >= kTuple1 && opcode <= kTuple3) {
      Push(PickleTuple{PopLast(std::size_t{1} + opcode - kTuple1)});
    } else {
      return false;
    }
    return true;
  }

  /// Adds to the container on top of the stack.
  bool Fill(std::uint8_t opcode) {
    if (opcode == kAppend || opcode == kAppends) {
      const std::vector<PickleId> items = opcode == kAppend ? PopLast(1) : PopToMark();
      auto& list = TopAs<PickleList>("a list").items;
      list.insert(list.end(), items.begin(), items.end());
    } else if (opcode == kSetItem || opcode == kSetItems) {
      const std::vector<PickleId> items = opcode == kSetItem ? PopLast(2) : PopToMark();
      if (items.size() % 2 != 0) Fail("has a key without a value");
      auto& dict = TopAs<PickleDict>("a dict").items;
      for (std::size_t i = 0; i < items.size(); i += 2) dict.emplace_back(items[i], items[i + 1]);
    } else if (opcode == kBuild) {  // the attributes of an OrderedDict: _metadata
      Pop();
      TopAs<PickleDict>("a dict");
    } else {
      return false;
    }
    return true;
  }

  bool Remember(std::uint8_t opcode) {
    if (opcode == kBinPut) {
      Keep(cursor_.TakeNumber<std::uint8_t>());
    } else if (opcode == kLongBinPut) {
      Keep(cursor_.TakeNumber<std::uint32_t>());
    } else if (opcode == kMemoize) {
      Keep(static_cast<std::uint32_t>(memo_.size()));
    } else if (opcode == kBinGet) {
      stack_.push_back(Kept(cursor_.TakeNumber<std::uint8_t>()));
    } else if (opcode == kLongBinGet) {
      stack_.push_back(Kept(cursor_.TakeNumber<std::uint32_t>()));
    } else {
      return false;
    }
    return true;
  }

  /// What a pickle would import, call or load.
  bool Refer(std::uint8_t opcode) {
    if (opcode == kGlobal) {
      const std::string module = cursor_.TakeLine();
      Push(FindGlobal(module + "." + cursor_.TakeLine()));
    } else if (opcode == kStackGlobal) {
      const std::string name = PopAs<std::string>("a name");
      Push(FindGlobal(PopAs<std::string>("a module") + "." + name));
    } else if (opcode == kBinPersId) {
      Push(PickleReference{Pop()});
    } else if (opcode == kReduce) {
      Reduce();
    } else {
      return false;
    }
    return true;
  }

  void Reduce() {
    const PickleId arguments = Pop();
    const auto function = PopAs<PickleFunction>("a function");
    const auto* const tuple = pickle_.Get<PickleTuple>(arguments);
    if (tuple == nullptr) Fail("calls a function with " + KindOf(pickle_.values[arguments]));
    if (function != PickleFunction::kOrderedDict) return Push(PickleCall{function, arguments});
    if (!tuple->items.empty()) Fail("makes an OrderedDict with arguments");
    Push(PickleDict{});
  }

  std::int64_t TakeLong() {
    const auto bytes = cursor_.Take(cursor_.TakeNumber<std::uint8_t>());
    if (bytes.size() > sizeof(std::int64_t)) {
      Fail("has a number of " + std::to_string(bytes.size()) + " bytes, expected at most 8");
    }
    const bool negative = !bytes.empty() && (bytes.back() & std::byte{0x80}) != std::byte{0};
    std::int64_t number = negative ? -1 : 0;
    if (!bytes.empty()) std::memcpy(&number, bytes.data(), bytes.size());
    return number;
  }

  void Push(PickleValue value) {
    if (pickle_.values.size() >= kMaxValues) {
      Fail("has more than " + std::to_string(kMaxValues) + " values");
    }
    stack_.push_back(static_cast<PickleId>(pickle_.values.size()));
    pickle_.values.push_back(std::move(value));
  }

  /// The last values of the stack, in their order.
  std::vector<PickleId> PopLast(std::size_t count) {
    const std::size_t below = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() - below < count) Fail("takes a value off an empty stack");
    const auto first = stack_.end() - static_cast<std::ptrdiff_t>(count);
    std::vector<PickleId> ids(first, stack_.end());
    stack_.erase(first, stack_.end());
    return ids;
  }

  std::vector<PickleId> PopToMark() {
    if (marks_.empty()) Fail("has no mark on its stack");
    std::vector<PickleId> ids = PopLast(stack_.size() - marks_.back());
    marks_.pop_back();
    return ids;
  }

  PickleId Pop() { return PopLast(1).front(); }

  template <class Kind>
  Kind& As(PickleId id, const char* expected) {
    auto* const value = std::get_if<Kind>(&pickle_.values[id]);
    if (value != nullptr) return *value;
    Fail("expects " + std::string(expected) + ", found " + KindOf(pickle_.values[id]));
  }
  template <class Kind>
  const Kind& PopAs(const char* expected) {
    return As<Kind>(Pop(), expected);
  }
  template <class Kind>
  Kind& TopAs(const char* expected) {
    const PickleId top = Pop();
    stack_.push_back(top);
    return As<Kind>(top, expected);
  }

  void Keep(std::uint32_t place) {
    if (memo_.size() >= kMaxValues) {
      Fail("keeps more than " + std::to_string(kMaxValues) + " values");
    }
    const PickleId top = Pop();
    stack_.push_back(top);
    memo_[place] = top;
  }
  PickleId Kept(std::uint32_t place) const {
    const auto kept = memo_.find(place);
    if (kept == memo_.end())
      Fail("takes value " + std::to_string(place) + ", which it has not kept");
    return kept->second;
  }

  [[noreturn]] void Fail(const std::string& fault) const {
    FailReading("the pickle " + fault + ", at its byte " + std::to_string(begin_));
  }

  Cursor cursor_;
  std::size_t begin_ = 0;  ///< of the instruction
  Pickle pickle_;
  std::vector<PickleId> stack_;
  std::vector<std::size_t> marks_;  ///< sizes of the stack, ascending
  std::map<std::uint32_t, PickleId> memo_;
};

}  // namespace

std::string KindOf(const PickleValue& value) {
  // In the order of PickleValue.
  constexpr std::array<const char*, std::variant_size_v<PickleValue>> kKinds = {
      "None",       "a bool",  "a number", "a number", "a text", "a type",
      "a function", "a tuple", "a list",   "a dict",   "a call", "a storage"};
  return kKinds[value.index()];
}

Pickle ReadPickle(std::span<const std::byte> bytes) {
  if (bytes.size() > kMaxPickleBytes) {
    FailReading("the pickle has " + std::to_string(bytes.size()) + " bytes, expected at most " +
                std::to_string(kMaxPickleBytes));
  }
  return Machine(bytes).Run();
}

}  // namespace troupe
