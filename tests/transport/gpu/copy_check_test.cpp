// Copies between a device and the host that are checked, and what the check says.
#include "transport/gpu/copy_check.hpp"

#include <cstdio>
#include <cstring>
#include <future>
#include <utility>

#include <catch2/catch.hpp>

#include "gpu/check.hpp"
#include "gpu/kernels/rows.hpp"
#include "tests/gpu/emulated/machine.hpp"
#include "tests/transport/gpu/device_buffers.hpp"
#include "tests/transport/plane_job.hpp"
#include "transport/gpu/staging.hpp"

using namespace troupe;
using namespace troupe::testing;
using emulated::Machine;

namespace {

/// A process with a device, whose copies are awaited one by one.
struct Copies {
  explicit Copies(CheckCopies check)
      : device(std::make_unique<DeviceBuffers>(0)),
        staging(std::make_unique<DeviceStaging>(check)) {}

  /// What came, or the error.
  std::pair<Buffer, std::string> ToHost(Buffer bytes, std::size_t begin = 0) {
    std::promise<std::pair<Buffer, std::string>> result;
    staging->ToHost(
        std::move(bytes),
        [&](Buffer here, const std::string& error) {
          result.set_value({std::move(here), error});
        },
        begin);
    return result.get_future().get();
  }
  /// The error.
  std::string ToDevice(const Buffer& bytes, Buffer there, std::size_t begin = 0) {
    Buffer here = staging->Pinned(bytes.num_bytes(), 0);
    std::memcpy(here.data(), bytes.data(), bytes.num_bytes());
    std::promise<std::string> result;
    staging->ToDevice(
        std::move(here), std::move(there),
        [&](const std::string& error) { result.set_value(error); }, begin);
    return result.get_future().get();
  }

  Machine machine;
  std::unique_ptr<DeviceBuffers> device;
  std::unique_ptr<DeviceStaging> staging;
};

/// What the check says of bytes [begin, end) of `good` when bit 2 of `byte` has changed.
std::string Said(const Buffer& good, std::size_t begin, std::size_t end, std::size_t byte,
                 const std::string& way) {
  Buffer bad = Buffer::Allocate(good.shape(), good.dtype());
  std::memcpy(bad.data(), good.data(), good.num_bytes());
  bad.data()[byte] ^= std::byte{4};
  const bool odd = end - begin < 4;
  const auto number = [&](const Buffer& buffer) {
    std::uint64_t value = 0;
    if (odd) {
      std::memcpy(&value, buffer.data() + begin, end - begin);
    } else {
      RowChecksums(buffer.data() + begin, 1, end - begin, &value);
    }
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
    return std::string(text);
  };
  return "bytes [" + std::to_string(begin) + ", " + std::to_string(end) +
         ") changed on the way from " + way + ": expected " + (odd ? "content " : "checksum ") +
         number(good) + ", got " + number(bad);
}

}  // namespace

TEST_CASE("bytes are cut into rows of whole words and odd ends, wherever they lie", "[copies]") {
  for (std::uintptr_t address = 256; address < 264; ++address) {
    for (const std::size_t size : {0, 1, 2, 3, 4, 5, 7, 8, 11, 4095, 4096, 4097, 4100, 12'299}) {
      std::size_t end = 0;
      for (const ComparedRows& rows : CutRows(address, size)) {
        REQUIRE(rows.begin == end);
        REQUIRE(rows.num_rows > 0);
        REQUIRE(rows.row_bytes > 0);
        REQUIRE(rows.row_bytes <= kRowBytes);
        end += static_cast<std::size_t>(rows.num_rows) * rows.row_bytes;
        if (rows.row_bytes >= 4) {
          REQUIRE((address + rows.begin) % 4 == 0);
          REQUIRE(rows.row_bytes % 4 == 0);
        } else {
          REQUIRE((rows.begin == 0 || end == size));
        }
      }
      REQUIRE(end == size);
    }
  }
  CHECK(CutRows(257, 12'299) == std::vector<ComparedRows>{{0, 1, 3}, {3, 3, 4096}, {12'291, 1, 8}});
}

TEST_CASE("checked copies that change nothing bring what they should, both ways", "[copies]") {
  Copies copies(CheckCopies::kYes);
  for (const std::int64_t size : {0, 1, 3, 4, 4096, 4097, 12'299}) {
    for (const std::int64_t skipped : {0, 1, 2, 3}) {  // where the tensor begins in its memory
      const Buffer bytes = Pattern(size + skipped, 7).Rows(skipped, size + skipped);
      const Buffer there = copies.device->Blank({size + skipped}).Rows(skipped, size + skipped);
      REQUIRE(copies.ToDevice(bytes, there) == "");
      const auto [here, error] = copies.ToHost(there);
      REQUIRE(error == "");
      CHECK(SameBytes(here, bytes));
    }
  }
  CHECK(copies.machine.num_kernels() > 0);
  CHECK(copies.machine.fault().empty());
}

TEST_CASE("a byte that a checked copy changes is reported with its place, both ways", "[copies]") {
  Copies copies(CheckCopies::kYes);
  struct Case {
    std::int64_t size;
    std::size_t byte, begin, end;
  };
  for (const Case& it :
       {Case{1, 0, 0, 1}, Case{3, 1, 0, 3}, Case{4, 3, 0, 4}, Case{4096, 4095, 0, 4096},
        Case{4097, 0, 0, 4096}, Case{4097, 4096, 4096, 4097}, Case{12'299, 8200, 8192, 12'288},
        Case{12'299, 12'290, 12'288, 12'296}, Case{12'299, 12'297, 12'296, 12'299}}) {
    CAPTURE(it.size, it.byte);
    const Buffer bytes = Pattern(it.size, 3);
    const auto size = static_cast<std::size_t>(it.size);
    const Buffer there = copies.device->From(bytes);
    // Odd bytes are brought by a copy of their own, before the others.
    copies.machine.Spoil({.num_bytes = size, .byte = it.byte, .skipped = size < 4 ? 1 : 0});
    const auto [here, error] = copies.ToHost(there);
    CHECK(error == Said(bytes, it.begin, it.end, it.byte, "device 0 to the host"));
    CHECK_FALSE(here.defined());
    copies.machine.Spoil({.num_bytes = size, .byte = it.byte});
    CHECK(copies.ToDevice(bytes, there) ==
          Said(bytes, it.begin, it.end, it.byte, "the host to device 0"));
  }
  CHECK(copies.machine.fault().empty());
}

TEST_CASE("places are those of the whole of which a copy is a piece", "[copies]") {
  Copies copies(CheckCopies::kYes);
  const Buffer there = copies.device->From(Pattern(5000, 3));
  copies.machine.Spoil({.num_bytes = 5000, .byte = 4999});
  CHECK_THAT(copies.ToHost(there, 10'000).second, Catch::StartsWith("bytes [14096, 15000) "));
  copies.machine.Spoil({.num_bytes = 5000, .byte = 0});
  CHECK_THAT(copies.ToDevice(Pattern(5000, 3), there, 10'000),
             Catch::StartsWith("bytes [10000, 14096) "));
}

TEST_CASE("rows in parts are checked part by part", "[copies]") {
  Copies copies(CheckCopies::kYes);
  const Buffer bytes = Pattern(12'003, 3);
  const auto part = [&](std::int64_t begin, std::int64_t end) {
    // At an address that is no multiple of 4, and different for each.
    const std::int64_t skipped = begin % 3 + 1;
    const Buffer rows = Buffer::Allocate({skipped + end - begin}, DType::kUInt8);
    std::memcpy(rows.data() + skipped, bytes.data() + begin, static_cast<std::size_t>(end - begin));
    return copies.device->From(rows).Rows(skipped, rows.num_rows());
  };
  const Buffer there = ConcatenateRows({part(0, 101), part(101, 7001), part(7001, 12'003)});
  REQUIRE(there.parts().size() == 3);
  CHECK(SameBytes(copies.ToHost(there).first, bytes));
  // Each begins and ends with odd bytes: [101, 102) and [6998, 7001), [7001, 7002) and one more.
  copies.machine.Spoil({.num_bytes = 6900, .byte = 5000});
  CHECK_THAT(copies.ToHost(there).second, Catch::StartsWith("bytes [4198, 6998) changed on"));
  copies.machine.Spoil({.num_bytes = 5002, .byte = 5001});
  CHECK_THAT(copies.ToDevice(bytes, there), Catch::StartsWith("bytes [12002, 12003) changed on"));
  CHECK(copies.ToDevice(bytes, there) == "");
  CHECK(copies.machine.fault().empty());
}

TEST_CASE("parts on other devices and on the host are copied, those on devices checked",
          "[copies]") {
  const bool checked = GENERATE(false, true);
  Copies copies(checked ? CheckCopies::kYes : CheckCopies::kNo);
  {
    DeviceBuffers other(1);
    const Buffer bytes = Pattern(9000, 5);
    const Buffer rows = ConcatenateRows({bytes.Rows(0, 1000), copies.device->Blank({2000}),
                                         bytes.Rows(3000, 4000), other.Blank({5000})});
    REQUIRE(rows.device() == 0);
    CHECK(copies.ToDevice(bytes, rows) == "");
    const auto [here, error] = copies.ToHost(rows);
    CHECK(error == "");
    CHECK(SameBytes(here, bytes));
    copies.machine.Spoil({.num_bytes = 5000, .byte = 4999});
    CHECK_THAT(copies.ToHost(rows).second,
               checked ? Catch::StartsWith("bytes [8096, 9000) changed on the way from device 1 to")
                       : Catch::StartsWith(""));
  }
  CHECK(copies.machine.fault().empty());
}

TEST_CASE("a copy of more rows than a device keeps sums of is checked to its end", "[copies]") {
  Copies copies(CheckCopies::kYes);
  const std::int64_t size = (CopyCheck::kSpareSums + 3) * std::int64_t{kRowBytes};
  const Buffer bytes = Pattern(size, 9);
  const Buffer there = copies.device->Blank({size});
  CHECK(copies.ToDevice(bytes, there) == "");
  CHECK(SameBytes(copies.ToHost(there).first, bytes));
  const auto last = static_cast<std::size_t>(size) - 1;
  copies.machine.Spoil({.num_bytes = last + 1, .byte = last});
  CHECK(copies.ToHost(there).second ==
        Said(bytes, last + 1 - kRowBytes, last + 1, last, "device 0 to the host"));
}

TEST_CASE("copies that are not checked cost no kernel and no memory", "[copies]") {
  const auto after_copies = [](CheckCopies check) {
    Copies copies(check);
    const Buffer there = copies.device->From(Pattern(5000, 3));
    CHECK(copies.ToHost(there).second == "");
    CHECK(copies.ToDevice(Pattern(5000, 3), there) == "");
    return std::pair(copies.machine.num_kernels(), copies.machine.open());
  };
  // The tensor and what is pinned for either way.
  const auto [kernels, open] = after_copies(CheckCopies::kNo);
  CHECK(kernels == 0);
  CHECK_THAT(open, Catch::EndsWith(", 2 allocations"));
  // And sums on the device, in the stream of each way, and pinned.
  const auto [kernels_checked, open_checked] = after_copies(CheckCopies::kYes);
  CHECK(kernels_checked == 4);
  CHECK_THAT(open_checked, Catch::EndsWith(", 5 allocations"));
}

TEST_CASE("memory of checks is used again, and given back with the staging", "[copies]") {
  Copies copies(CheckCopies::kYes);
  {
    const Buffer there = copies.device->From(Pattern(9000, 3));
    CHECK(copies.ToHost(there).second == "");
    const std::string open = copies.machine.open();
    for (int i = 0; i < 5; ++i) CHECK(copies.ToHost(there).second == "");
    CHECK(copies.machine.open() == open);
  }
  copies.staging.reset();
  copies.device.reset();
  CHECK(copies.machine.open() == Machine::kNothing);
}

TEST_CASE("a device that fails while a copy is checked is reported with CUDA's text", "[copies]") {
  Copies copies(CheckCopies::kYes);
  const Buffer there = copies.device->From(Pattern(9000, 3));
  copies.machine.Break(0);
  CHECK_THAT(copies.ToHost(there).second, Catch::Contains("cudaErrorIllegalAddress"));
}
