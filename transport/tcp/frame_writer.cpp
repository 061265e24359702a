#include "transport/tcp/frame_writer.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace troupe {
namespace {

std::span<const std::byte> BytesOf(const Buffer& buffer) {
  return {buffer.data(), buffer.num_bytes()};
}

}  // namespace

void FrameWriter::Put(const Frame& frame) { small_.push_back({frame, {}}); }

void FrameWriter::PutEarly(OutMessage message) {
  PutMessage(FrameKind::kEarly, std::move(message));
}

void FrameWriter::PutPieces(OutMessage message) {
  PutMessage(FrameKind::kPiece, std::move(message));
}

void FrameWriter::PutMessage(FrameKind kind, OutMessage message) {
  if (message.buffer.num_bytes() > kSmallBytes) {
    large_.push_back({kind, std::move(message), 0});
    return;
  }
  Frame frame;
  frame.kind = kind;
  frame.stream = message.label.stream;
  frame.sequence = message.label.sequence;
  frame.total = frame.num_bytes = message.buffer.num_bytes();
  small_.push_back({frame, std::move(message)});
}

bool FrameWriter::Form() {
  if (!small_.empty() && (large_.empty() || passed_ < kPieceBytes)) {
    FormSmall();
  } else if (!large_.empty()) {
    FormPiece();
  } else {
    return false;
  }
  return true;
}

void FrameWriter::FormSmall() {
  Small small = std::move(small_.front());
  small_.pop_front();
  passed_ += sizeof small.frame + small.frame.num_bytes;
  Formed formed;
  formed.head = small.frame;
  formed.last = small.frame.kind == FrameKind::kEarly || small.frame.kind == FrameKind::kPiece;
  if (formed.last) formed.body = BytesOf(small.message.buffer);
  formed.message = std::move(small.message);
  Finish(std::move(formed));
}

void FrameWriter::FormPiece() {
  passed_ = 0;
  Large& large = large_.front();
  const std::span<const std::byte> whole = BytesOf(large.message.buffer);
  Formed formed;
  formed.head.kind = large.kind;
  formed.head.stream = large.message.label.stream;
  formed.head.sequence = large.message.label.sequence;
  formed.head.offset = large.at;
  formed.head.total = whole.size();
  formed.head.num_bytes = std::min<std::size_t>(kPieceBytes, whole.size() - large.at);
  formed.body = whole.subspan(large.at, formed.head.num_bytes);
  large.at += formed.head.num_bytes;
  if (large.at == whole.size()) {
    formed.last = true;
    formed.message = std::move(large.message);
    large_.pop_front();
  }
  Finish(std::move(formed));
}

void FrameWriter::Finish(Formed formed) {
  formed.head.counter = ++counter_;
  formed.head.mac = key_.Sign(WirePurpose::kHeader, counter_, SignedPart(formed.head), {});
  if (verify_ == Verify::kPayload && !formed.body.empty()) {
    formed.tail = key_.Sign(WirePurpose::kPayload, counter_, formed.body, {});
    formed.tail_bytes = formed.tail.size();
  }
  formed_bytes_ += formed.size();
  formed_.push_back(std::move(formed));
}

std::size_t FrameWriter::Gather(std::span<iovec> space) {
  std::size_t used = 0;
  std::size_t skip = written_;
  const auto add = [&](std::span<const std::byte> bytes) {
    const std::size_t skipped = std::min(skip, bytes.size());
    skip -= skipped;
    bytes = bytes.subspan(skipped);
    if (!bytes.empty()) space[used++] = {const_cast<std::byte*>(bytes.data()), bytes.size()};
  };
  for (std::size_t i = 0; used + 3 <= space.size(); ++i) {
    if (i == formed_.size() && (formed_bytes_ - written_ >= kGatherBytes || !Form())) break;
    const Formed& formed = formed_[i];
    add(std::as_bytes(std::span(&formed.head, 1)));
    add(formed.body);
    add(std::span<const std::byte>(formed.tail).first(formed.tail_bytes));
  }
  return used;
}

void FrameWriter::Written(std::size_t num_bytes, const std::function<void(OutMessage)>& done) {
  written_ += num_bytes;
  while (!formed_.empty() && written_ >= formed_.front().size()) {
    Formed formed = std::move(formed_.front());
    formed_.pop_front();
    written_ -= formed.size();
    formed_bytes_ -= formed.size();
    if (formed.last) done(std::move(formed.message));
  }
}

}  // namespace troupe
