// Reads an event file of TensorBoard strictly: every byte, both checksums, known fields only.
#pragma once

#include <bit>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/trace/export/lint/proto_reader.hpp"

namespace troupe {

struct ReadEvent {
  double wall_s = 0.0;
  std::int64_t step = 0;
  std::string file_version;
  bool starts_session = false;
  std::map<std::string, float> scalars;
};

/// CRC-32C bit by bit, as its definition has it.
inline std::uint32_t SlowCrc32c(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (0x82F63B78U & (0U - (crc & 1U)));
  }
  return ~crc;
}

class EventReader {
 public:
  explicit EventReader(std::string_view file) : left_(file) {}

  /// Throws std::runtime_error for a file that is wrong anywhere.
  std::vector<ReadEvent> ReadAll() {
    std::vector<ReadEvent> events;
    while (!left_.empty()) events.push_back(Event(Record()));
    return events;
  }

 private:
  static void Require(bool holds, const char* what) {
    if (!holds) throw std::runtime_error(what);
  }
  std::string_view Take(std::size_t size) {
    Require(size <= left_.size(), "the file ends within a record");
    const std::string_view taken = left_.substr(0, size);
    left_.remove_prefix(size);
    return taken;
  }
  static std::uint64_t Number(std::string_view bytes) {
    std::uint64_t number = 0;
    for (std::size_t i = bytes.size(); i-- > 0;) {
      number = number << 8 | static_cast<unsigned char>(bytes[i]);
    }
    return number;
  }
  std::string_view Checked(std::string_view bytes) {
    const std::uint32_t crc = SlowCrc32c(bytes);
    const std::uint32_t masked = (crc >> 15 | crc << 17) + 0xA282EAD8U;
    Require(Number(Take(4)) == masked, "a checksum is wrong");
    return bytes;
  }
  std::string_view Record() {
    const std::uint64_t size = Number(Checked(Take(8)));
    return Checked(Take(size));
  }

  /// Calls `field(number, field)` for every field of a message.
  template <class OnField>
  static void ForEach(std::string_view message, OnField on_field) {
    ProtoReader reader(message);
    for (ProtoField field; reader.Next(field);) on_field(field);
    Require(!reader.broken(), "a message is broken");
  }
  static void Expect(const ProtoField& field, int wire) {
    Require(field.wire == wire, "a field has another wire type");
  }

  static ReadEvent Event(std::string_view record) {
    ReadEvent event;
    ForEach(record, [&event](const ProtoField& field) {
      const int kWires[8] = {-1, 1, 0, 2, -1, 2, -1, 2};
      Require(field.number <= 7 && kWires[field.number] >= 0, "an event has an unknown field");
      Expect(field, kWires[field.number]);
      if (field.number == 1) event.wall_s = std::bit_cast<double>(field.value);
      if (field.number == 2) event.step = static_cast<std::int64_t>(field.value);
      if (field.number == 3) event.file_version = field.bytes;
      if (field.number == 5) Summary(field.bytes, event);
      if (field.number == 7) Session(field.bytes, event);
    });
    return event;
  }
  static void Session(std::string_view session, ReadEvent& event) {
    ForEach(session, [&event](const ProtoField& field) {
      Require(field.number == 1 && field.wire == 0 && field.value == 1, "expected status START");
      event.starts_session = true;
    });
  }
  static void Summary(std::string_view summary, ReadEvent& event) {
    ForEach(summary, [&event](const ProtoField& value) {
      Require(value.number == 1, "a summary has an unknown field");
      Expect(value, 2);
      std::string tag;
      float number = 0.0F;
      ForEach(value.bytes, [&](const ProtoField& field) {
        Require(field.number == 1 || field.number == 2, "a value has an unknown field");
        Expect(field, field.number == 1 ? 2 : 5);
        if (field.number == 1) tag = field.bytes;
        if (field.number == 2)
          number = std::bit_cast<float>(static_cast<std::uint32_t>(field.value));
      });
      Require(!tag.empty(), "a value has no tag");
      Require(event.scalars.emplace(tag, number).second, "an event has a tag twice");
    });
  }

  std::string_view left_;
};

}  // namespace troupe
