#include "checkpoint/pickle.hpp"

#include <stdexcept>

#include <catch2/catch.hpp>

namespace troupe {
namespace {

using namespace std::string_literals;

Pickle Read(const std::string& bytes) { return ReadPickle(std::as_bytes(std::span(bytes))); }

template <class Kind>
Kind RootOf(const std::string& bytes) {
  const Pickle pickle = Read(bytes);
  const Kind* const root = pickle.Get<Kind>(pickle.root);
  REQUIRE(root != nullptr);
  return *root;
}

TEST_CASE("a pickle's numbers and texts are those that Python wrote", "[pickle]") {
  // As pickletools shows what pickle.dumps(..., 4) makes of each.
  CHECK(RootOf<std::int64_t>("\x80\x02J\xfe\xff\xff\xff.") == -2);
  CHECK(RootOf<std::int64_t>("K\xff.") == 255);
  CHECK(RootOf<std::int64_t>("M\x01\x02.") == 513);
  CHECK(RootOf<std::int64_t>("\x8a\x05\xfe\xff\xff\xff\xfe.") == -4294967298);
  CHECK(RootOf<std::int64_t>("\x8a\x06\x01\0\0\0\xff\0."s) == 1095216660481);
  CHECK(RootOf<std::int64_t>("\x8a\0."s) == 0);
  CHECK(RootOf<double>("G\xbf\xf8\0\0\0\0\0\0."s) == -1.5);
  CHECK(RootOf<bool>("\x88."));
  CHECK_FALSE(RootOf<bool>("\x89."));
  CHECK(RootOf<std::string>("X\x02\0\0\0ab."s) == "ab");
  CHECK(RootOf<std::string>("\x8c\x02"
                            "ab.") == "ab");
  CHECK(RootOf<std::string>("\x8d\x02\0\0\0\0\0\0\0"
                            "ab."s) == "ab");
  CHECK(RootOf<StoredType>("ctorch\nHalfStorage\n.") == StoredType::kFloat16);
}

TEST_CASE("containers hold what was put into them, in its order, by reference", "[pickle]") {
  // a = []; (a, a, 7, {1: 2, 3: 4}) and a.append(5), a.extend([6, 8])
  const Pickle pickle = Read(
      "(]q\0K\x05"
      "a(K\x06K\x08"
      "eh\0K\x07}(K\x01K\x02K\x03K\x04ut."s);
  const auto* const tuple = pickle.Get<PickleTuple>(pickle.root);
  REQUIRE(tuple != nullptr);
  REQUIRE(tuple->items.size() == 4);
  CHECK(tuple->items[0] == tuple->items[1]);
  const auto numbers = [&](const std::vector<PickleId>& ids) {
    std::vector<std::int64_t> values;
    for (const PickleId id : ids) values.push_back(*pickle.Get<std::int64_t>(id));
    return values;
  };
  CHECK(numbers(pickle.Get<PickleList>(tuple->items[0])->items) ==
        std::vector<std::int64_t>{5, 6, 8});
  CHECK(numbers({tuple->items[2]}) == std::vector<std::int64_t>{7});
  std::vector<PickleId> pairs;
  for (const auto& [key, value] : pickle.Get<PickleDict>(tuple->items[3])->items) {
    pairs.push_back(key);
    pairs.push_back(value);
  }
  CHECK(numbers(pairs) == std::vector<std::int64_t>{1, 2, 3, 4});
}

TEST_CASE("a list that holds itself is a value like others", "[pickle]") {
  const Pickle pickle = Read("]q\0h\0a."s);
  CHECK(pickle.Get<PickleList>(pickle.root)->items == std::vector<PickleId>{pickle.root});
}

TEST_CASE("an OrderedDict is a dict, and its attributes are left out", "[pickle]") {
  const std::string dict = "ccollections\nOrderedDict\n)R";
  CHECK(RootOf<PickleDict>(dict + "K\x01K\x02s}K\x03K\x04sb.").items.size() == 1);
}

TEST_CASE("a pickle's faults are one line", "[pickle]") {
  struct Fault {
    std::string bytes;
    std::string text;
  };
  const std::vector<Fault> faults = {
      {"", "the pickle ends at byte 0, within an instruction"},
      {"K", "the pickle ends at byte 1, within an instruction"},
      {"X\xff\xff\xff\xff"
       "a.",
       "the pickle ends at byte 7, within an instruction"},
      {"\x8d\xff\xff\xff\xff\xff\xff\xff\xff.",
       "the pickle ends at byte 10, within an instruction"},
      {"cos", "the pickle ends at byte 3, within an instruction"},
      {"cos\nsystem\n.", "the pickle asks for os.system; only tensors are read"},
      {"cos\x1b\nsystem\n.", "the pickle asks for \"os\\u001b.system\"; only tensors are read"},
      {"ctorch\nComplexFloatStorage\n.",
       "the pickle asks for torch.ComplexFloatStorage; only tensors are read"},
      {"\x8c\x08"
       "builtins\x8c\x04"
       "eval\x93.",
       "the pickle asks for builtins.eval; only tensors are read"},
      {"\x80\x05N.", "the pickle has protocol 5, expected 2 to 4, at its byte 0"},
      {"\x80\x01N.", "the pickle has protocol 1, expected 2 to 4, at its byte 0"},
      {"Nios\nsystem\n.",
       "the pickle has the instruction 0x69; only tensors are read, at its byte 1"},
      {".", "the pickle takes a value off an empty stack, at its byte 0"},
      {"N(.", "the pickle takes a value off an empty stack, at its byte 2"},
      {"Nt.", "the pickle has no mark on its stack, at its byte 1"},
      {"h\x07.", "the pickle takes value 7, which it has not kept, at its byte 0"},
      {"q\x07.", "the pickle takes a value off an empty stack, at its byte 0"},
      {"}(K\x01u.", "the pickle has a key without a value, at its byte 4"},
      {"]NNs.", "the pickle expects a dict, found a list, at its byte 3"},
      {"}Na.", "the pickle expects a list, found a dict, at its byte 2"},
      {"NNb.", "the pickle expects a dict, found None, at its byte 2"},
      {"NK\x01\x93.", "the pickle expects a name, found a number, at its byte 3"},
      {"K\x01)R.", "the pickle expects a function, found a number, at its byte 3"},
      {"ctorch\nFloatStorage\n)R.", "the pickle expects a function, found a type, at its byte 21"},
      {"ccollections\nOrderedDict\nNR.", "the pickle calls a function with None, at its byte 26"},
      {"ccollections\nOrderedDict\nN\x85R.",
       "the pickle makes an OrderedDict with arguments, at its byte 27"},
      {"\x8a\x09"
       "123456789.",
       "the pickle has a number of 9 bytes, expected at most 8, at its byte 0"},
  };
  for (const Fault& fault : faults) {
    INFO(fault.text);
    CHECK_THROWS_WITH(Read(fault.bytes), fault.text);
  }
}

TEST_CASE("a pickle takes a bounded amount of memory", "[pickle]") {
  CHECK_THROWS_WITH(Read(std::string((std::size_t{16} << 20U) + 1, 'N')),
                    "the pickle has 16777217 bytes, expected at most 16777216");
  CHECK_THROWS_WITH(Read(std::string(std::size_t{5} << 20U, '}')),
                    "the pickle has more than 4194304 values, at its byte 4194301");
  CHECK_THROWS_WITH(Read("N" + std::string(std::size_t{5} << 20U, '\x94')),
                    "the pickle keeps more than 4194304 values, at its byte 4194305");
}

}  // namespace
}  // namespace troupe
