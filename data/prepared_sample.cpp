#include "data/prepared_sample.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace troupe {
namespace {

/// Counts the bytes that a Writer would write.
class Counter {
 public:
  void Bytes(const void* /*data*/, std::size_t size) { size_ += size; }
  std::size_t size() const { return size_; }

 private:
  std::size_t size_ = 0;
};

class Writer {
 public:
  explicit Writer(std::byte* next) : next_(next) {}
  void Bytes(const void* data, std::size_t size) {
    if (size > 0) std::memcpy(next_, data, size);
    next_ += size;
  }

 private:
  std::byte* next_;
};

template <class Out>
void PutNumber(Out& out, std::int64_t number) {
  out.Bytes(&number, sizeof(number));
}

/// Writes a string, a vector or a span: its size, then its elements.
template <class Out, class Elements>
void PutAll(Out& out, const Elements& all) {
  static_assert(std::is_trivially_copyable_v<std::remove_cvref_t<decltype(*all.data())>>);
  PutNumber(out, std::ssize(all));
  out.Bytes(all.data(), all.size() * sizeof(*all.data()));
}

template <class Out>
void Put(Out& out, const PreparedSample& prepared) {
  const Sample& sample = prepared.sample;
  PutAll(out, prepared.id);
  PutAll(out, sample.tokens);
  PutAll(out, sample.labels);
  PutAll(out, sample.content);
  PutAll(out, sample.lengths);
  PutNumber(out, sample.num_uncut_tokens);
  for (const auto* places : {&sample.positions, &sample.newlines}) {
    PutNumber(out, std::ssize(*places));
    for (const auto& of_encoder : *places) PutAll(out, of_encoder);
  }
  PutNumber(out, std::ssize(prepared.items));
  for (const auto& items : prepared.items) {
    PutNumber(out, std::ssize(items));
    for (const PreparedItem& item : items) {
      PutNumber(out, item.length);
      PutAll(out, item.bytes);
    }
  }
  PutNumber(out, std::ssize(prepared.replaced));
  for (const ReplacedItem& item : prepared.replaced) {
    PutNumber(out, item.train ? 1 : 0);
    PutNumber(out, item.source);
    PutNumber(out, item.row);
    PutAll(out, item.file);
    PutAll(out, item.line);
  }
}

constexpr std::int64_t kMostItemLength = std::int64_t{1} << 31;

[[noreturn]] void Broken() { throw std::runtime_error("a prepared sample is malformed"); }

class FieldReader {
 public:
  explicit FieldReader(std::span<const std::uint8_t> rest) : rest_(rest) {}

  std::span<const std::uint8_t> Bytes(std::size_t size) {
    if (size > rest_.size()) Broken();
    const auto bytes = rest_.first(size);
    rest_ = rest_.subspan(size);
    return bytes;
  }
  std::int64_t Number() {
    std::int64_t number = 0;
    std::memcpy(&number, Bytes(sizeof(number)).data(), sizeof(number));
    return number;
  }
  /// Returns a number of things that take `each` bytes at least.
  std::size_t Count(std::size_t each) {
    const std::int64_t count = Number();
    if (count < 0 || static_cast<std::uint64_t>(count) > rest_.size() / each) Broken();
    return static_cast<std::size_t>(count);
  }
  template <class Elements>
  void All(Elements& all) {
    all.resize(Count(sizeof(*all.data())));
    const auto bytes = Bytes(all.size() * sizeof(*all.data()));
    if (!bytes.empty()) std::memcpy(all.data(), bytes.data(), bytes.size());
  }
  bool at_end() const { return rest_.empty(); }

 private:
  std::span<const std::uint8_t> rest_;
};

Sample ReadSample(FieldReader& in, std::size_t num_encoders) {
  Sample sample;
  in.All(sample.tokens);
  in.All(sample.labels);
  in.All(sample.content);
  in.All(sample.lengths);
  sample.num_uncut_tokens = in.Number();
  const std::int64_t num_tokens = std::ssize(sample.tokens);
  if (std::ssize(sample.labels) != num_tokens || std::ssize(sample.content) != num_tokens ||
      sample.lengths.size() != num_encoders) {
    Broken();
  }
  for (auto* places : {&sample.positions, &sample.newlines}) {
    if (in.Count(1) != num_encoders) Broken();
    for (std::size_t i = 0; i < num_encoders; ++i) {
      auto& of_encoder = places->emplace_back();
      in.All(of_encoder);
      const auto inside = [&](std::int64_t place) { return place >= -1 && place < num_tokens; };
      if (!std::ranges::all_of(of_encoder, inside)) Broken();
    }
  }
  return sample;
}

void RequireTokens(const Sample& sample, std::int64_t vocab) {
  const auto is_token = [&](std::int64_t id) { return id >= 0 && id < vocab; };
  const auto is_label = [&](std::int64_t id) { return id == kNoLabel || is_token(id); };
  const auto is_flag = [](std::uint8_t flag) { return flag <= 1; };
  if (!std::ranges::all_of(sample.tokens, is_token) ||
      !std::ranges::all_of(sample.labels, is_label) ||
      !std::ranges::all_of(sample.content, is_flag)) {
    Broken();
  }
}

std::vector<PreparedItem> ReadItems(FieldReader& in, const ItemFormat& format) {
  const std::size_t values = static_cast<std::size_t>(NumElements(format.row_shape));
  const std::size_t item_bytes = values * format.preprocessor->value_bytes();
  std::vector<PreparedItem> items(in.Count(2 * sizeof(std::int64_t)));
  for (PreparedItem& item : items) {
    item.length = in.Number();
    item.bytes = in.Bytes(in.Count(1));
    if (item.length < 0 || item.length > kMostItemLength) Broken();
    const bool fits = item.bytes.size() % item_bytes == 0 &&
                      item.bytes.size() / item_bytes == static_cast<std::size_t>(item.length);
    if (!fits && !item.bytes.empty()) Broken();
  }
  return items;
}

}  // namespace

PreparedItem PrepareItem(
    const ItemFormat& format, const ItemFile& file,
    const std::function<void(const std::runtime_error& error, bool has_length)>& failed) {
  PreparedItem item;
  try {
    item.length = format.preprocessor->LengthOf(file);
  } catch (const std::runtime_error& error) {
    failed(error, /*has_length=*/false);
    throw;
  }
  const auto values = static_cast<std::size_t>(item.length * NumElements(format.row_shape));
  try {
    item.owner = std::make_shared<const std::vector<std::uint8_t>>(
        format.preprocessor->Prepare(file, values));
    item.bytes = *item.owner;
  } catch (const std::runtime_error& error) {
    failed(error, /*has_length=*/true);
  }
  return item;
}

FieldItems Finished(const std::vector<PreparedItem>& items, const ItemFormat& format) {
  FieldItems result;
  for (const PreparedItem& item : items) result.lengths.push_back(item.length);
  const std::int64_t length =
      std::accumulate(result.lengths.begin(), result.lengths.end(), std::int64_t{0});
  Shape shape = {length};
  shape.insert(shape.end(), format.row_shape.begin(), format.row_shape.end());
  result.values = Buffer::Allocate(std::move(shape), DType::kFloat32);
  auto* next = result.values.as<float>();
  for (const PreparedItem& item : items) {
    const auto size = static_cast<std::size_t>(item.length * NumElements(format.row_shape));
    if (item.bytes.empty()) {
      std::fill_n(next, size, 0.0F);
    } else {
      format.preprocessor->Finish(item.bytes, {next, size});
    }
    next += size;
  }
  return result;
}

Buffer Encode(const PreparedSample& sample) {
  Counter counter;
  Put(counter, sample);
  Buffer buffer = Buffer::AllocateBytes(counter.size());
  Writer writer(buffer.data());
  Put(writer, sample);
  return buffer;
}

PreparedSample Decode(const Buffer& bytes, const SampleFormat& format, std::uint64_t fields) {
  FieldReader in({bytes.as<std::uint8_t>(), bytes.num_bytes()});
  PreparedSample prepared{.owner = bytes};
  in.All(prepared.id);
  prepared.sample = ReadSample(in, format.fields.size());
  RequireTokens(prepared.sample, format.tokenizer->size());
  if (in.Count(1) != format.items.size()) Broken();
  for (std::size_t i = 0; i < format.items.size(); ++i) {
    prepared.items.push_back(ReadItems(in, format.items[i]));
    std::int64_t length = 0;
    for (const PreparedItem& item : prepared.items[i]) length += item.length;
    const bool asked = (fields >> i & 1) != 0;
    if (length != (asked ? prepared.sample.lengths[i] : 0)) Broken();
  }
  prepared.replaced.resize(in.Count(5 * sizeof(std::int64_t)));
  for (ReplacedItem& item : prepared.replaced) {
    item.train = in.Number() != 0;
    item.source = static_cast<std::int32_t>(in.Number());
    item.row = in.Number();
    in.All(item.file);
    in.All(item.line);
  }
  if (!in.at_end()) Broken();
  return prepared;
}

}  // namespace troupe
