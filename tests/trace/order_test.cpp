#include "trace/order.hpp"

#include <catch2/catch.hpp>

namespace troupe {
namespace {

/// Records of one device, in begin order unless times are changed.
class Device {
 public:
  Device(std::int32_t stage, std::int32_t dp, std::int32_t rank)
      : stage_(stage), dp_(dp), rank_(rank) {}

  Device& Ran(WorkKind kind, std::int64_t unit, std::int64_t round = 5) {
    PassRecord record;
    record.unit = unit;
    record.round = round;
    record.begin_ns = 10 * static_cast<std::int64_t>(records_.size());
    record.end_ns = record.begin_ns + 10;
    record.stage = stage_;
    record.dp = dp_;
    record.rank = rank_;
    record.kind = kind;
    records_.push_back(record);
    return *this;
  }

  const std::vector<PassRecord>& records() const { return records_; }

 private:
  std::int32_t stage_;
  std::int32_t dp_;
  std::int32_t rank_;
  std::vector<PassRecord> records_;
};

std::vector<PassRecord> All(const std::vector<Device>& devices) {
  std::vector<PassRecord> all;
  for (const Device& device : devices) {
    all.insert(all.end(), device.records().begin(), device.records().end());
  }
  return all;
}

constexpr WorkKind kF = WorkKind::kForward;
constexpr WorkKind kB = WorkKind::kBackward;

TEST_CASE("an order is written with units counted from the round's first", "[trace]") {
  const Device device = Device(0, 0, 3).Ran(kF, 40).Ran(kF, 41).Ran(kB, 40).Ran(kF, 42).Ran(kB, 41);
  CHECK(PassOrders(device.records(), 5) == std::vector<PassOrder>{{0, 0, 3, "F0 F1 B0 F2 B1"}});
}

TEST_CASE("an order follows the begin times, not the order of the records", "[trace]") {
  std::vector<PassRecord> records = Device(0, 0, 0).Ran(kF, 0).Ran(kF, 1).Ran(kB, 0).records();
  std::swap(records[0], records[2]);
  CHECK(PassOrders(records, 5).front().text == "F0 F1 B0");
}

TEST_CASE("passes that begin together stay in the order of the records", "[trace]") {
  std::vector<PassRecord> records = Device(0, 0, 0).Ran(kF, 0).Ran(kB, 0).Ran(kF, 1).records();
  for (PassRecord& record : records) record.begin_ns = 7;
  CHECK(PassOrders(records, 5).front().text == "F0 B0 F1");
}

TEST_CASE("other rounds and other work are left out", "[trace]") {
  const Device device = Device(1, 0, 0)
                            .Ran(kF, 3, 4)
                            .Ran(WorkKind::kExchange, 0)
                            .Ran(kF, 4)
                            .Ran(kB, 4)
                            .Ran(WorkKind::kReduce, 0)
                            .Ran(WorkKind::kUpdate, 0)
                            .Ran(kF, 5, 6);
  CHECK(PassOrders(device.records(), 5) == std::vector<PassOrder>{{1, 0, 0, "F0 B0"}});
  CHECK(PassOrders(device.records(), 7).empty());
}

TEST_CASE("orders come by stage, replica and rank, and share the stage's first unit", "[trace]") {
  // The rank that has lost its first record still counts from the stage's first unit.
  const std::vector<PassRecord> records =
      All({Device(1, 0, 6).Ran(kF, 8), Device(0, 1, 2).Ran(kF, 21).Ran(kB, 20),
           Device(0, 0, 5).Ran(kF, 20).Ran(kB, 20), Device(0, 0, 4).Ran(kF, 20).Ran(kB, 20)});
  CHECK(PassOrders(records, 5) ==
        std::vector<PassOrder>{
            {0, 0, 4, "F0 B0"}, {0, 0, 5, "F0 B0"}, {0, 1, 2, "F1 B0"}, {1, 0, 6, "F0"}});
}

}  // namespace
TEST_CASE("the weights' part of a backward is a pass of its own in an order", "[trace]") {
  Device device(0, 0, 3);
  device.Ran(WorkKind::kForward, 8).Ran(WorkKind::kBackward, 8).Ran(WorkKind::kWeight, 8);
  const auto orders = PassOrders(device.records(), 5);
  REQUIRE(orders.size() == 1);
  CHECK(orders.front().text == "F0 B0 W0");
}

}  // namespace troupe
