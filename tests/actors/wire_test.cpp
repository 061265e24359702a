// Messages as bytes and back.
#include <cmath>
#include <limits>

#include <caf/actor_system.hpp>
#include <caf/binary_deserializer.hpp>
#include <caf/binary_serializer.hpp>
#include <catch2/catch.hpp>

#include "actors/actor_base.hpp"
#include "messages/facts.hpp"
#include "messages/list.hpp"
#include "messages/system.hpp"

namespace troupe {
namespace {

/// One process that writes and reads for itself.
struct WireFixture {
  std::shared_ptr<TensorStore> tensors = std::make_shared<TensorStore>(nullptr);
  SystemConfig config{tensors, false};
  caf::actor_system system{config};
  caf::scoped_execution_unit unit{&system};

  template <class T>
  std::vector<char> Write(T message) {
    std::vector<char> bytes;
    caf::binary_serializer sink(&unit, bytes);
    REQUIRE(!sink(message));
    return bytes;
  }
  template <class T>
  caf::error Read(const std::vector<char>& bytes, T& message) {
    caf::binary_deserializer source(&unit, bytes);
    return source(message);
  }
  template <class T>
  T RoundTrip(const T& message) {
    T read;
    REQUIRE(!Read(Write(message), read));
    return read;
  }
};

}  // namespace

TEST_CASE_METHOD(WireFixture, "numbers travel bit for bit, those that are none included",
                 "[messages]") {
  for (const double value :
       {0.0, -0.0, 1.0 / 3.0, std::numeric_limits<double>::infinity(),
        -std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN(),
        std::numeric_limits<double>::denorm_min()}) {
    const SquaredNorm read =
        RoundTrip(SquaredNorm{7, value, {{"language", 3.5}, {"vision", 0.25}}});
    CHECK(std::bit_cast<std::uint64_t>(read.value) == std::bit_cast<std::uint64_t>(value));
    CHECK(read.round == 7);
    CHECK(read.parts == std::map<std::string, double>{{"language", 3.5}, {"vision", 0.25}});
  }
}

TEST_CASE_METHOD(WireFixture, "every message that may cross processes is written and read",
                 "[messages]") {
  const auto check = [this]<class Message>() {
    Message read;
    const std::vector<char> bytes = Write(Message{});
    INFO(MessageName(&typeid(Message)));
    CHECK(!Read(bytes, read));
    CHECK(Write(read) == bytes);
  };
  decltype(WorkMessages() + NodeMessages())::ForEach(check);
}

TEST_CASE("the error that answers a request of another process keeps the kind of its failure",
          "[messages]") {
  SystemConfig config(std::make_shared<TensorStore>(nullptr), true);
  caf::actor_system system(config);
  caf::scoped_execution_unit unit(&system);
  const Failure failure("lost n2: its process ended", FailureKind::kLost, {"language.s0"});
  caf::error sent = MakeFailure(failure);
  std::vector<char> bytes;
  caf::binary_serializer sink(&unit, bytes);
  REQUIRE(!sink(sent));
  caf::error read;
  caf::binary_deserializer source(&unit, bytes);
  REQUIRE(!source(read));
  CHECK(FailureOf(read) == failure);
}

TEST_CASE_METHOD(WireFixture, "a buffer travels as a reference and comes home as itself",
                 "[messages]") {
  const Buffer whole = Buffer::Zeros({6, 2}, DType::kFloat32);
  Activation activation{3, 1, {whole.Rows(2, 5), Buffer()}, nullptr};
  auto rows = std::make_shared<RowTable>();
  rows->samples = {4, 5};
  rows->rows = {0, 3};
  rows->lengths = {7, 9};
  rows->runs = {{5, 2, 1, 6}, {5, 4, 2, -1}};
  activation.rows = rows;
  activation.place = {39, 1, true};
  const Activation read = RoundTrip(activation);
  CHECK(read.unit == 3);
  CHECK(read.link == 1);
  CHECK(read.place == UnitPlace{39, 1, true});
  REQUIRE(read.shards.size() == 2);
  CHECK(read.shards[0].data() == whole.Rows(2, 5).data());
  CHECK(read.shards[0].shape() == Shape{3, 2});
  CHECK(!read.shards[1].defined());
  CHECK(*read.rows == *rows);
}

TEST_CASE_METHOD(WireFixture, "commands for a set travel with everything in them", "[messages]") {
  auto data = std::make_shared<Inputs>();
  data->num_tokens = 12;
  data->tokens = Buffer::Zeros({2, 6}, DType::kInt64);
  data->fields["vision"] = {Buffer::Zeros({3, 4, 4}, DType::kFloat32), {2, 1}};
  data->expected["vision"] = {{0, 1}, {4, 0}};
  const auto rows = std::make_shared<const RowTable>(RowTable{{7}, {3}});
  ToSet<RunForward> set;
  set.parts.emplace_back(5, RunForward{2, 9, {17, true, 0.25, {data->tokens}, data, rows, 4, 6}});
  const auto read = RoundTrip(set);
  REQUIRE(read.parts.size() == 1);
  CHECK(read.parts[0].first == 5);
  const RunForward& run = read.parts[0].second;
  CHECK(run.stage == 2);
  CHECK(run.pass.unit == 17);
  CHECK(run.pass.loss_scale == 0.25);
  CHECK(*run.pass.rows == *rows);
  CHECK(run.pass.step == 4);
  CHECK(run.pass.first_microbatch == 6);
  CHECK(run.pass.inputs.at(0).data() == data->tokens.data());
  CHECK(run.pass.data->fields.at("vision").values.data() == data->fields["vision"].values.data());
  CHECK(run.pass.data->fields.at("vision").lengths == std::vector<std::int64_t>{2, 1});
  CHECK(run.pass.data->expected.at("vision") == data->expected["vision"]);
}

TEST_CASE_METHOD(WireFixture, "a backward travels with whether it is split, and so its weights",
                 "[messages]") {
  for (const bool split : {false, true}) {
    const auto read = RoundTrip(RunBackward{2, 9, {17, {}, split, !split}});
    CHECK(read.pass.unit == 17);
    CHECK(read.pass.split_weights == split);
    CHECK(read.pass.last == !split);
  }
  ToSet<RunBackwardWeights> set;
  set.parts.emplace_back(5, RunBackwardWeights{2, 9, 17});
  const auto read = RoundTrip(set);
  REQUIRE(read.parts.size() == 1);
  CHECK(read.parts[0].first == 5);
  CHECK(read.parts[0].second.stage == 2);
  CHECK(read.parts[0].second.round == 9);
  CHECK(read.parts[0].second.unit == 17);
}

TEST_CASE_METHOD(WireFixture, "bytes that are cut short or lie about their length are refused",
                 "[messages]") {
  const auto bytes = Write(JobFailed{"stage language.s0 dp0: something went wrong"});
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    JobFailed read;
    CHECK(Read({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length)}, read));
  }
  Waits waits;
  CHECK(Read(std::vector<char>(12, '\xff'), waits));  // a list of 2^64 - 1 lines
}

}  // namespace troupe
