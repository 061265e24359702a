// The kernels on a device against the plain loops. Compiled where nvcc is, run where a device is,
// and once more by tests/gpu/simt, which plays the device and the threads of the kernels.
#ifdef TROUPE_HAS_CUDA
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "gpu/check.hpp"
#include "gpu/device.hpp"
#include "gpu/kernels/bfloat16.hpp"
#include "gpu/kernels/device.hpp"
#include "gpu/kernels/rms_norm.hpp"
#include "gpu/kernels/rows.hpp"
#include "gpu/stream.hpp"
#include "tests/gpu/memory_pool.hpp"

namespace troupe::gpu {
namespace {

struct OnDevice {
  Stream stream{0};
  MemoryPool pool{0};

  template <class T>
  std::shared_ptr<void> Copy(const std::vector<T>& values) {
    auto there = pool.Allocate(values.size() * sizeof(T), stream);
    if (!values.empty()) {
      TROUPE_CUDA(cudaMemcpyAsync(there.get(), values.data(), values.size() * sizeof(T),
                                  cudaMemcpyHostToDevice, stream.get()));
    }
    return there;
  }
  template <class T>
  std::vector<T> Read(const std::shared_ptr<void>& there, std::size_t count) {
    std::vector<T> values(count);
    if (count > 0) {
      TROUPE_CUDA(cudaMemcpyAsync(values.data(), there.get(), count * sizeof(T),
                                  cudaMemcpyDeviceToHost, stream.get()));
    }
    stream.Synchronize();
    return values;
  }
};

std::vector<std::byte> RandomBytes(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(count);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

std::byte* AsBytes(const std::shared_ptr<void>& there) {
  return static_cast<std::byte*>(there.get());
}

}  // namespace

TEST_CASE("a machine without a device has none, and says no more", "[gpu-kernels]") {
  CHECK(NumDevices() >= 0);
}

TEST_CASE_METHOD(OnDevice, "rows move on a device as in the plain loops", "[gpu]") {
  // Widths that are 16, 4 and 1 byte wide words, and that several blocks share, with words for all
  // of them and for some; no rows; as many as there are.
  const auto row_bytes = GENERATE(as<std::size_t>(), 16, 48, 4, 20, 2, 7, 4096, 9008, 777);
  const auto num_rows = GENERATE(as<std::int64_t>(), 0, 1, 37, 1000);
  CAPTURE(row_bytes, num_rows);
  std::vector<std::int64_t> index(1000);
  std::iota(index.begin(), index.end(), 0);
  std::shuffle(index.begin(), index.end(), std::mt19937(5));
  index.resize(static_cast<std::size_t>(num_rows));
  const auto count = static_cast<std::size_t>(num_rows);
  auto whole = RandomBytes(1000 * row_bytes, 1);
  const auto some = RandomBytes(count * row_bytes, 2);
  const auto table = Copy(index);

  std::vector<std::byte> expected(count * row_bytes);
  troupe::GatherRows(whole.data(), index.data(), num_rows, row_bytes, expected.data());
  const auto there = Copy(whole);
  auto got = Copy(expected);
  GatherRows(stream, AsBytes(there), static_cast<std::int64_t*>(table.get()), num_rows, row_bytes,
             AsBytes(got));
  CHECK(Read<std::byte>(got, expected.size()) == expected);

  troupe::ScatterRows(some.data(), index.data(), num_rows, row_bytes, whole.data());
  const auto pieces = Copy(some);
  ScatterRows(stream, AsBytes(pieces), static_cast<std::int64_t*>(table.get()), num_rows, row_bytes,
              AsBytes(there));
  CHECK(Read<std::byte>(there, whole.size()) == whole);

  troupe::TakeRows(whole.data(), index.data(), num_rows, row_bytes, expected.data());
  TakeRows(stream, AsBytes(there), static_cast<std::int64_t*>(table.get()), num_rows, row_bytes,
           AsBytes(got));
  CHECK(Read<std::byte>(got, expected.size()) == expected);
  CHECK(Read<std::byte>(there, whole.size()) == whole);

  if (row_bytes % 4 != 0) return;
  std::vector<std::uint64_t> sums(1000);
  troupe::RowChecksums(whole.data(), 1000, row_bytes, sums.data());
  const auto on_device = Copy(sums);
  RowChecksums(stream, AsBytes(there), 1000, row_bytes,
               static_cast<std::uint64_t*>(on_device.get()));
  CHECK(Read<std::uint64_t>(on_device, 1000) == sums);
}

TEST_CASE_METHOD(OnDevice, "slices lie where they are sent on a device", "[gpu]") {
  const auto unit =
      GENERATE(as<std::size_t>(), 16, 4, 1);  // what places and sizes are multiples of
  std::mt19937 random(11);
  const auto whole = RandomBytes(1 << 20, 3);
  std::vector<std::byte> expected(whole.size());
  const auto from = Copy(whole);
  const auto to = Copy(expected);
  Slices here;
  Slices there;
  std::size_t at = 0;
  while (here.count < Slices::kMost) {
    const std::size_t bytes = here.count == 5 ? 300'000 / unit * unit : random() % 300 * unit;
    const std::size_t begin = random() % ((whole.size() - bytes) / unit) * unit;
    here.Add(whole.data() + begin, bytes, expected.data() + at);
    there.Add(AsBytes(from) + begin, bytes, AsBytes(to) + at);
    at += bytes;
  }
  troupe::GatherSlices(here);
  GatherSlices(stream, there);
  GatherSlices(stream, Slices{});
  CHECK(Read<std::byte>(to, expected.size()) == expected);
}

TEST_CASE_METHOD(OnDevice, "AdamW on a device is the plain loop to rounding", "[gpu]") {
  const auto count = GENERATE(as<std::size_t>(), 0, 1, 3, 4, 1027, 100'000);
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  const auto draw = [&] {
    std::vector<float> values(count);
    for (float& value : values) value = normal(random);
    return values;
  };
  const auto gradient = draw();
  auto value = draw();
  auto first = draw();
  auto second = draw();
  for (float& s : second) s *= s;
  const AdamWStep step{
      .learning_rate = 1e-2, .weight_decay = 0.1, .gradient_scale = 0.5, .step = 7};
  const auto g = Copy(gradient);
  const auto v = Copy(value);
  const auto m = Copy(first);
  const auto s = Copy(second);
  const auto rounded = pool.Allocate(count * 2 + 2, stream);
  // A part that begins in the middle of a vector: what is before it is updated on its own.
  const auto skipped = std::min(count, GENERATE(as<std::size_t>(), 0, 1, 4));
  const auto update = [&](std::size_t begin, std::size_t end) {
    ApplyAdamW(stream, step, static_cast<std::int64_t>(end - begin),
               static_cast<float*>(g.get()) + begin, static_cast<float*>(v.get()) + begin,
               static_cast<float*>(m.get()) + begin, static_cast<float*>(s.get()) + begin,
               static_cast<std::uint16_t*>(rounded.get()) + begin);
  };
  update(0, skipped);
  update(skipped, count);
  troupe::ApplyAdamW(step, static_cast<std::int64_t>(count), gradient.data(), value.data(),
                     first.data(), second.data());
  const auto got = Read<float>(v, count);
  const auto bf16 = Read<std::uint16_t>(rounded, count);
  for (std::size_t i = 0; i < count; ++i) {
    REQUIRE(got[i] == Approx(value[i]).epsilon(1e-5).margin(1e-6));
    std::uint32_t bits = static_cast<std::uint32_t>(bf16[i]) << 16U;
    float widened = 0.0F;
    std::memcpy(&widened, &bits, sizeof widened);
    REQUIRE(widened == Approx(got[i]).epsilon(1.0 / 256));
  }
}

TEST_CASE_METHOD(OnDevice, "norms on a device are the plain loops to rounding", "[gpu]") {
  const bool is_short = GENERATE(false, true);
  const auto hidden = GENERATE(as<std::size_t>(), 3, 7, 64, 520, 2048);
  const auto num_rows = GENERATE(as<std::size_t>(), 0, 1, 5, 600);
  const std::size_t skipped = GENERATE(as<std::size_t>(), 0, 3);  // numbers before the first
  const bool trains = GENERATE(true, false);
  if (num_rows > 5 && hidden > 64 && (skipped > 0 || !trains)) return;  // for the sake of time
  CAPTURE(is_short, hidden, num_rows, skipped, trains);
  std::mt19937 random(static_cast<unsigned>(hidden + num_rows));
  std::normal_distribution<float> normal;
  const std::size_t count = num_rows * hidden;
  // What a device holds of these, as floats and as it lies there.
  const auto draw = [&](std::vector<float>& values, std::size_t size) {
    values.resize(size);
    std::vector<std::uint16_t> rounded(skipped + size);
    std::vector<float> plain(skipped + size);
    for (std::size_t i = 0; i < size; ++i) {
      values[i] = 3.0F * normal(random);
      if (is_short) values[i] = static_cast<float>(BFloat16(values[i]));
      rounded[skipped + i] = BFloat16(values[i]).bits;
      plain[skipped + i] = values[i];
    }
    return is_short ? Copy(rounded) : Copy(plain);
  };
  const std::size_t size = is_short ? 2 : 4;
  std::vector<float> x, gradient;
  const auto x_there = draw(x, count);
  const auto gradient_there = draw(gradient, count);
  std::vector<float> weight(hidden), weight_gradient(hidden, 0.25F);
  for (float& w : weight) w = 1.0F + 0.3F * normal(random);
  const auto weight_there = Copy(weight);
  const auto weight_gradient_there = Copy(weight_gradient);
  std::vector<float> y(count), rstd(num_rows), x_gradient(count);
  troupe::RmsNormRows(x.data(), weight.data(), static_cast<std::int64_t>(num_rows),
                      static_cast<std::int64_t>(hidden), 1e-5, y.data(), rstd.data());
  troupe::RmsNormGradient(gradient.data(), x.data(), weight.data(), rstd.data(),
                          static_cast<std::int64_t>(num_rows), static_cast<std::int64_t>(hidden),
                          x_gradient.data(), trains ? weight_gradient.data() : nullptr);

  const auto rstd_there = pool.Allocate(num_rows * 4 + 4, stream);
  const auto y_there = pool.Allocate((skipped + count) * size + 1, stream);
  const auto x_gradient_there = pool.Allocate((skipped + count) * size + 1, stream);
  const auto spare = pool.Allocate(
      static_cast<std::size_t>(SpareOfRmsNorm(static_cast<std::int64_t>(hidden))) * 4, stream);
  const auto at = [&](const auto& there) { return AsBytes(there) + skipped * size; };
  const Row row = is_short ? Row::kBFloat16 : Row::kFloat32;
  RmsNorm(stream, row, at(x_there), static_cast<float*>(weight_there.get()),
          static_cast<std::int64_t>(num_rows), static_cast<std::int64_t>(hidden), 1e-5, at(y_there),
          static_cast<float*>(rstd_there.get()));
  RmsNormGradient(stream, row, at(gradient_there), at(x_there),
                  static_cast<float*>(weight_there.get()), static_cast<float*>(rstd_there.get()),
                  static_cast<std::int64_t>(num_rows), static_cast<std::int64_t>(hidden),
                  at(x_gradient_there),
                  trains ? static_cast<float*>(weight_gradient_there.get()) : nullptr,
                  static_cast<float*>(spare.get()));
  const auto read = [&](const std::shared_ptr<void>& there) {
    if (!is_short) return Read<float>(there, skipped + count);
    std::vector<float> floats;
    for (const std::uint16_t bits : Read<std::uint16_t>(there, skipped + count)) {
      BFloat16 value;
      value.bits = bits;
      floats.push_back(static_cast<float>(value));
    }
    return floats;
  };
  const auto farthest = [&](const std::vector<float>& got, const std::vector<float>& expected,
                            std::size_t from) {
    float most = 0.0F;
    float largest = 1e-6F;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      most = std::max(most, std::abs(got[from + i] - expected[i]));
      largest = std::max(largest, std::abs(expected[i]));
    }
    return most / largest;
  };
  const float rounding = is_short ? 1.0F / 256 : 2e-6F;
  CHECK(farthest(read(y_there), y, skipped) < rounding);
  CHECK(farthest(read(x_gradient_there), x_gradient, skipped) < rounding);
  CHECK(farthest(Read<float>(weight_gradient_there, hidden), weight_gradient, 0) < 1e-5F);
}

/// Numbers, as floats and as a device holds them.
struct Drawn {
  std::vector<float> values;
  std::shared_ptr<void> there;
};

struct RowsOnDevice : OnDevice {
  bool is_short = false;
  std::mt19937 random{3};

  Drawn Draw(std::size_t count) {
    std::normal_distribution<float> normal;
    Drawn drawn;
    std::vector<std::uint16_t> rounded;
    for (std::size_t i = 0; i < count; ++i) {
      const float value = 2.0F * normal(random);
      rounded.push_back(BFloat16(value).bits);
      drawn.values.push_back(is_short ? static_cast<float>(BFloat16(value)) : value);
    }
    drawn.there = is_short ? Copy(rounded) : Copy(drawn.values);
    return drawn;
  }
  std::vector<float> ReadRows(const std::shared_ptr<void>& there, std::size_t count) {
    if (!is_short) return Read<float>(there, count);
    std::vector<float> floats;
    for (const std::uint16_t bits : Read<std::uint16_t>(there, count)) {
      BFloat16 value;
      value.bits = bits;
      floats.push_back(static_cast<float>(value));
    }
    return floats;
  }
  std::size_t size() const { return is_short ? 2 : 4; }
  Row row() const { return is_short ? Row::kBFloat16 : Row::kFloat32; }
  void CheckRows(const std::shared_ptr<void>& there, const std::vector<float>& expected) {
    const std::vector<float> got = ReadRows(there, expected.size());
    const float rounding = is_short ? 1.0F / 128 : 1e-5F;
    std::size_t far = 0;
    std::string first;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (std::abs(got[i] - expected[i]) <= rounding * std::abs(expected[i]) + 1e-5F) continue;
      if (far++ > 0) continue;
      first = "number " + std::to_string(i) + " is " + std::to_string(got[i]) + ", expected " +
              std::to_string(expected[i]);
    }
    INFO(first);
    CHECK(far == 0);
  }
};

TEST_CASE_METHOD(RowsOnDevice, "SwiGLU on a device is the plain loop to rounding", "[gpu]") {
  is_short = GENERATE(false, true);
  const auto width = GENERATE(as<std::size_t>(), 1, 12, 64, 2056);
  const auto num_rows = GENERATE(as<std::size_t>(), 0, 1, 37);
  CAPTURE(is_short, width, num_rows);
  const std::size_t count = num_rows * width;
  const Drawn x = Draw(2 * count);
  const Drawn gradient = Draw(count);
  std::vector<float> y(count), x_gradient(2 * count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = i / width * 2 * width + i % width;
    const double gate = x.values[at];
    const double up = x.values[at + width];
    const double sigmoid = 1.0 / (1.0 + std::exp(-gate));
    y[i] = static_cast<float>(gate * sigmoid * up);
    x_gradient[at] =
        static_cast<float>(gradient.values[i] * up * (sigmoid + gate * sigmoid * (1.0 - sigmoid)));
    x_gradient[at + width] = static_cast<float>(gradient.values[i] * gate * sigmoid);
  }
  const auto y_there = pool.Allocate(count * size() + 1, stream);
  const auto x_gradient_there = pool.Allocate(2 * count * size() + 1, stream);
  SwiGlu(stream, row(), x.there.get(), static_cast<std::int64_t>(num_rows),
         static_cast<std::int64_t>(width), y_there.get());
  SwiGluGradient(stream, row(), gradient.there.get(), x.there.get(),
                 static_cast<std::int64_t>(num_rows), static_cast<std::int64_t>(width),
                 x_gradient_there.get());
  CheckRows(y_there, y);
  CheckRows(x_gradient_there, x_gradient);
}

TEST_CASE_METHOD(RowsOnDevice, "heads turn on a device as in the plain loop, to rounding",
                 "[gpu]") {
  is_short = GENERATE(false, true);
  const auto head_dim = GENERATE(as<std::size_t>(), 2, 6, 16, 64, 520);
  const auto heads = GENERATE(as<std::size_t>(), 1, 3, 40);
  const double direction = GENERATE(1.0, -1.0);
  CAPTURE(is_short, head_dim, heads, direction);
  const std::size_t sequences = 2, length = head_dim > 64 ? 3 : 7, half = head_dim / 2;
  // From rows with more heads than are turned, to heads of one token after the other.
  const std::size_t width = (heads + 2) * head_dim;
  const Drawn rows = Draw(sequences * length * width);
  std::vector<float> cosine(length * half), sine(length * half);
  for (std::size_t i = 0; i < cosine.size(); ++i) {
    cosine[i] = std::cos(0.37F * static_cast<float>(i));
    sine[i] = std::sin(0.37F * static_cast<float>(i));
  }
  std::vector<float> expected(sequences * heads * length * head_dim);
  for (std::size_t s = 0; s < sequences; ++s) {
    for (std::size_t t = 0; t < length; ++t) {
      for (std::size_t h = 0; h < heads; ++h) {
        for (std::size_t i = 0; i < half; ++i) {
          const std::size_t from = (s * length + t) * width + (h + 1) * head_dim + i;
          const std::size_t to = ((s * heads + h) * length + t) * head_dim + i;
          const auto turn = sine[t * half + i] * static_cast<float>(direction);
          const float a = rows.values[from], b = rows.values[from + half];
          expected[to] = a * cosine[t * half + i] - b * turn;
          expected[to + half] = b * cosine[t * half + i] + a * turn;
        }
      }
    }
  }
  const auto there = pool.Allocate(expected.size() * size(), stream);
  const auto cosine_there = Copy(cosine);
  const auto sine_there = Copy(sine);
  const auto n = [](std::size_t number) { return static_cast<std::int64_t>(number); };
  TurnHeads(stream, row(),
            {AsBytes(rows.there) + head_dim * size(), n(length * width), n(width), n(head_dim)},
            {there.get(), n(heads * length * head_dim), n(head_dim), n(length * head_dim)},
            {n(sequences), n(length), n(heads), n(head_dim)},
            static_cast<const float*>(cosine_there.get()),
            static_cast<const float*>(sine_there.get()), direction);
  CheckRows(there, expected);
}

TEST_CASE_METHOD(OnDevice, "work that is queued before a callback has run when it is called",
                 "[gpu]") {
  const auto there = Copy(std::vector<int>(1 << 20, 7));
  std::vector<int> back(1 << 20);
  std::atomic<bool> told = false;
  TROUPE_CUDA(cudaMemcpyAsync(back.data(), there.get(), back.size() * sizeof(int),
                              cudaMemcpyDeviceToHost, stream.get()));
  stream.OnOutcome([&](const std::string&) { told = back.back() == 7; });
  stream.Synchronize();
  CHECK(told);
}

}  // namespace troupe::gpu
#endif
