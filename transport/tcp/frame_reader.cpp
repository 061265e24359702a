#include "transport/tcp/frame_reader.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace troupe {

FrameReader::FrameReader(WireKey key, Verify verify, FrameTarget& target)
    : key_(std::move(key)), verify_(verify), target_(target), staging_(kStagingBytes) {}

std::array<iovec, 2> FrameReader::Space() {
  std::memmove(staging_.data(), staging_.data() + begin_, end_ - begin_);
  end_ -= std::exchange(begin_, 0);
  std::size_t room = staging_.size() - end_;
  const std::span<std::byte> direct =
      state_ == State::kPayload ? payload_.subspan(filled_) : std::span<std::byte>();
  // After a large piece only the next header, so that the payload after it is also read in place.
  if (direct.size() >= staging_.size())
    room = sizeof(Frame) + (verify_ == Verify::kPayload ? sizeof(WireMac) : 0);
  return {iovec{direct.data(), direct.size()}, iovec{staging_.data() + end_, room}};
}

void FrameReader::Filled(std::size_t num_bytes) {
  if (state_ == State::kPayload) {
    const std::size_t direct = std::min(num_bytes, payload_.size() - filled_);
    filled_ += direct;
    num_bytes -= direct;
  }
  end_ += num_bytes;
  Parse();
}

std::span<const std::byte> FrameReader::staged() const {
  return std::span<const std::byte>(staging_).subspan(begin_, end_ - begin_);
}

void FrameReader::Parse() {
  for (bool moved = true; moved;) {
    switch (state_) {
      case State::kHeader:
        moved = ParseHeader();
        break;
      case State::kPayload:
        moved = ParsePayload();
        break;
      case State::kTail:
        moved = ParseTail();
        break;
    }
  }
}

bool FrameReader::ParseHeader() {
  if (staged().size() < sizeof frame_) return false;
  std::memcpy(&frame_, staged().data(), sizeof frame_);
  begin_ += sizeof frame_;
  CheckFrame(frame_, ++counter_, key_);
  payload_ = target_.BeginFrame(frame_);
  filled_ = 0;
  state_ = State::kPayload;
  return true;
}

bool FrameReader::ParsePayload() {
  const std::size_t size = std::min(staged().size(), payload_.size() - filled_);
  if (size > 0) std::memcpy(payload_.data() + filled_, staged().data(), size);
  begin_ += size;
  filled_ += size;
  if (filled_ < payload_.size()) return false;
  if (verify_ == Verify::kPayload && !payload_.empty()) {
    state_ = State::kTail;
    return true;
  }
  state_ = State::kHeader;
  target_.EndFrame(frame_);
  return true;
}

bool FrameReader::ParseTail() {
  WireMac mac;
  if (staged().size() < mac.size()) return false;
  std::memcpy(mac.data(), staged().data(), mac.size());
  begin_ += mac.size();
  state_ = State::kHeader;
  if (key_.Verify(mac, WirePurpose::kPayload, counter_, payload_, {})) {
    target_.EndFrame(frame_);
  } else {
    target_.SpoiledFrame(frame_);
  }
  return true;
}

}  // namespace troupe
