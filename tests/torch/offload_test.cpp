// A shard whose state leaves its device between a forward and its backward.
#include <future>
#include <malloc.h>

#include <catch2/catch.hpp>

#include "gpu/kernels/bfloat16.hpp"
#include "modules/memory_meter.hpp"
#include "tests/torch/job.hpp"

namespace troupe {
namespace {

/// An encoder of 53,000 parameters, so that each of its flat tensors has pages of its own.
Config OffloadingConfig(Offload what, Precision precision) {
  Config config = SmallConfig();
  config.run.precision = precision;
  ModuleConfig& vision = ModuleOf(config, "vision");
  vision.offload = what;
  auto& vit = vision.As<VitConfig>();
  vit.hidden = 64;
  vit.mlp_hidden = 128;
  return config;
}

/// Waits for the move that `begin` begins; its error.
template <class Begin>
std::string Moved(Begin begin) {
  std::promise<WorkTimes> moved;
  begin([&](const WorkTimes& times) { moved.set_value(times); });
  const WorkTimes times = moved.get_future().get();
  CHECK(times.begin_ns <= times.end_ns);
  return times.error;
}
void Leave(StageProgram& program) {
  CHECK(Moved([&](auto done) { program.Offload(done); }) == "");
}
void Return(StageProgram& program, bool moments) {
  CHECK(Moved([&](auto done) { program.Restore(moments, done); }) == "");
}

struct Encoder {
  Config config;
  Job job;
  StageProgram& program;
  std::shared_ptr<const Inputs> data;

  explicit Encoder(Offload what, Precision precision = Precision::kFloat64)
      : config(OffloadingConfig(what, precision)),
        job(config),
        program(job.Program("vision")),
        data(std::make_shared<Inputs>(MakeInputs(config, {1, 0, 2, 1}, 1))) {}

  Buffer Forward(std::int64_t unit) {
    return program.Forward({.unit = unit, .inputs = {}, .data = data}).outputs.at(0);
  }
  /// The gradient is a function of the rows, so that every unit has its own.
  void Backward(std::int64_t unit, const Buffer& rows) {
    Buffer gradient = Buffer::Allocate(rows.shape(), rows.dtype());
    const bool is_short = rows.dtype() == DType::kBFloat16;
    for (std::int64_t i = 0; i < rows.num_elements(); ++i) {
      if (is_short) {
        gradient.as<BFloat16>()[i] = BFloat16(static_cast<float>(i % 7 + unit));
      } else {
        gradient.as<double>()[i] = rows.as<double>()[i] * 0.1 + static_cast<double>(i % 7 + unit);
      }
    }
    program.Backward({.unit = unit, .gradients = {gradient}});
  }
};

constexpr TensorKind kKinds[] = {TensorKind::kParameter, TensorKind::kGradient,
                                 TensorKind::kFirstMoment, TensorKind::kSecondMoment};

/// Two steps of two windows each; what is away and when it returns does not matter to the bits.
std::vector<std::map<std::string, std::vector<double>>> TwoSteps(Offload what,
                                                                 Precision precision) {
  Encoder encoder(what, precision);
  std::vector<std::map<std::string, std::vector<double>>> seen;
  std::int64_t unit = 0;
  for (int step = 1; step <= 2; ++step) {
    for (const bool last : {false, true}) {
      const Buffer rows = encoder.Forward(unit);
      Leave(encoder.program);
      Return(encoder.program, last);
      encoder.Backward(unit++, rows);
    }
    encoder.program.ReduceGradients();
    for (const bool updated : {false, true}) {
      if (updated) encoder.program.Update({.step = step});
      for (const TensorKind kind : kKinds) seen.push_back(encoder.job.Tensors(kind));
    }
  }
  return seen;
}

}  // namespace

TEST_CASE("a shard whose state was away computes the same bits", "[torch]") {
  // In bfloat16 the masters of what computes stay away until the update.
  const Precision precision = GENERATE(Precision::kFloat64, Precision::kBFloat16);
  const auto without = TwoSteps(Offload::kNone, precision);
  CHECK(without[0] != without[4]);  // parameters before and after an update
  CHECK(without[1] != without[9]);  // gradients of two steps
  CHECK((TwoSteps(Offload::kParameters, precision) == without));
  CHECK((TwoSteps(Offload::kState, precision) == without));
}

TEST_CASE("a state that is away takes no memory of its device", "[torch]") {
  const auto allocated = [] {
    const auto info = mallinfo2();
    return static_cast<double>(info.uordblks + info.hblkhd);
  };
  const Offload what = GENERATE(Offload::kParameters, Offload::kState);
  Encoder encoder(what);
  const std::size_t all = encoder.program.state_bytes();
  REQUIRE(all > 4 * (300 << 10));
  const std::size_t left = what == Offload::kState ? 0 : all / 4 * 3;
  std::int64_t unit = 0;
  const bool counts = allocated() > 0;  // a sanitizer's allocator does not
  const auto window = [&](bool look) {
    look = look && counts;
    const Buffer rows = encoder.Forward(unit);
    const double before = allocated();
    Leave(encoder.program);
    CHECK(encoder.program.state_bytes() == left);
    if (look) CHECK(before - allocated() == Approx(all - left).epsilon(0.02));
    Return(encoder.program, true);
    encoder.program.Tensors(TensorKind::kFirstMoment);  // waits for what comes behind
    CHECK(encoder.program.state_bytes() == all);
    if (look) CHECK(allocated() == Approx(before).epsilon(0.001));
    encoder.Backward(unit++, rows);
  };
  window(false);  // makes the memory next to the device
  CHECK(SideMemoryBytes() == static_cast<std::int64_t>(all - left));
  window(true);
  window(true);
}

TEST_CASE("the memory next to a device is given back with its shard", "[torch]") {
  REQUIRE(SideMemoryBytes() == 0);
  {
    Encoder encoder(Offload::kState);
    encoder.Forward(0);
    Leave(encoder.program);
    CHECK(SideMemoryBytes() > 0);
  }
  CHECK(SideMemoryBytes() == 0);
}

TEST_CASE("an access to a state that is offloaded is an error", "[torch]") {
  Encoder encoder(Offload::kState);
  StageProgram& program = encoder.program;
  const Buffer rows = encoder.Forward(0);
  const std::string away = "vision.s0 dp0 rank 0: ";
  const auto text = [](auto touch) -> std::string {
    try {
      touch();
    } catch (const std::logic_error& e) {
      return e.what();
    }
    return "nothing was thrown";
  };
  const auto ignore = [](const WorkTimes&) {};
  CHECK(text([&] { program.Restore(true, ignore); }) ==
        away + "restore: expected its state to be away from its device, it is here");
  Leave(program);
  const std::string expected = ": expected its state to be here, it is away from its device";
  CHECK(text([&] { encoder.Forward(1); }) == away + "forward" + expected);
  CHECK(text([&] { encoder.Backward(0, rows); }) == away + "backward" + expected);
  CHECK(text([&] { program.Offload(ignore); }) == away + "offload" + expected);
  CHECK(text([&] { program.ReduceGradients(); }) != "nothing was thrown");
  for (const TensorKind kind : kKinds) {
    CHECK(text([&] { program.Tensors(kind); }) == away + "look at its tensors" + expected);
  }
  Return(program, false);
  encoder.Backward(0, rows);
  program.Tensors(TensorKind::kGradient);
  const std::string moments = ": expected its moments to be here, they are away from its device";
  CHECK(text([&] { program.Update({.step = 1}); }) == away + "optimizer step" + moments);
  CHECK(text([&] { program.Tensors(TensorKind::kFirstMoment); }) ==
        away + "look at its tensors" + moments);
  CHECK(text([&] { program.SetTensors(TensorKind::kSecondMoment, {}); }) ==
        away + "change of tensors" + moments);
}

TEST_CASE("what is set while all is here is what returns", "[torch]") {
  Encoder encoder(Offload::kParameters);
  encoder.Backward(0, [&] {
    const Buffer rows = encoder.Forward(0);
    Leave(encoder.program);
    Return(encoder.program, true);
    return rows;
  }());
  std::vector<TensorPiece> pieces = encoder.program.Tensors(TensorKind::kParameter);
  for (TensorPiece& piece : pieces) {
    Buffer value = Buffer::Allocate(piece.value.shape(), piece.value.dtype());
    for (std::int64_t i = 0; i < value.num_elements(); ++i) {
      value.as<double>()[i] = 0.25 * piece.value.as<double>()[i] + 1e-3;
    }
    piece.value = value;
  }
  encoder.program.SetTensors(TensorKind::kParameter, pieces);
  const auto set = encoder.job.Tensors(TensorKind::kParameter);
  encoder.Forward(1);
  Leave(encoder.program);
  Return(encoder.program, true);
  CHECK((encoder.job.Tensors(TensorKind::kParameter) == set));
}

TEST_CASE("of bfloat16 the masters are set and looked at, which are away when what computes is not",
          "[torch]") {
  Encoder encoder(Offload::kState, Precision::kBFloat16);
  const auto window = [&](std::int64_t unit, bool last) {
    const Buffer rows = encoder.Forward(unit);
    Leave(encoder.program);
    Return(encoder.program, last);
    encoder.Backward(unit, rows);
  };
  window(0, false);
  CHECK_THROWS_WITH(encoder.program.Tensors(TensorKind::kParameter),
                    Catch::Contains("expected its moments to be here"));
  window(1, true);
  std::vector<TensorPiece> pieces = encoder.program.Tensors(TensorKind::kParameter);
  for (TensorPiece& piece : pieces) {
    const Buffer value = Buffer::Allocate(piece.value.shape(), piece.value.dtype());
    for (std::int64_t i = 0; i < value.num_elements(); ++i) {
      value.as<float>()[i] = 0.25F * piece.value.as<float>()[i] + 1e-3F;
    }
    piece.value = value;
  }
  encoder.program.SetTensors(TensorKind::kParameter, pieces);
  const auto set = encoder.job.Tensors(TensorKind::kParameter);
  window(2, true);
  CHECK((encoder.job.Tensors(TensorKind::kParameter) == set));
}

TEST_CASE("a shard may end while its state is on its way", "[torch]") {
  for (int i = 0; i < 20; ++i) {
    Encoder encoder(Offload::kState);
    encoder.Forward(0);
    const auto moved = std::make_shared<std::promise<void>>();
    encoder.program.Offload([moved](const WorkTimes&) { moved->set_value(); });
    if (i % 2 == 0) continue;
    moved->get_future().wait();
    encoder.program.Restore(true, [](const WorkTimes&) {});
  }
  SUCCEED();
}

}  // namespace troupe
