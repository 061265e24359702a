#include "transport/spanning_exchange.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "transport/collective_arguments.hpp"

namespace troupe {
namespace {

constexpr auto kCallBytes = static_cast<std::int64_t>(sizeof(ExchangedCall));

/// A separate stream for the data of a call. Members whose calls differ, or that disagree on
/// `message_bytes`, never match each other's data, whatever its size.
std::uint64_t DataStream(std::uint64_t stream, const GroupCall& call, std::uint64_t message_bytes) {
  const ExchangedCall key{call, message_bytes, 0};
  std::string bytes(sizeof(stream) + sizeof(key), '\0');
  std::memcpy(bytes.data(), &stream, sizeof(stream));
  std::memcpy(bytes.data() + sizeof(stream), &key, sizeof(key));
  return StreamOf(bytes);
}

}  // namespace

SpanningExchange::SpanningExchange(std::shared_ptr<const SpanningGroup> group, int member)
    : group_(std::move(group)),
      member_(member),
      messages_(std::make_shared<OpenMessages>(
          group_, member, [this](std::size_t peer) { ThrowDifference(peer); })),
      calls_(Buffer::Allocate({group_->size(), kCallBytes}, DType::kUInt8)) {
  subscription_ =
      group_->abort->Subscribe([messages = messages_](const Failure&) { messages->Wake(); });
}

void SpanningExchange::Begin(const GroupCall& call, std::uint64_t number) {
  call_ = call;
  number_ = number;
  data_stream_ = DataStream(group_->stream, call, 0);
  peers_.clear();
  messages_->Begin(NameOf(call.operation) + (" " + std::to_string(number)));
}

std::uint64_t SpanningExchange::PairOf(int from, int to) const {
  return static_cast<std::uint64_t>(from) * static_cast<std::uint64_t>(group_->size()) +
         static_cast<std::uint64_t>(to);
}

Label SpanningExchange::CallLabel(int from, int to) const {
  const std::uint64_t pair = PairOf(from, to);
  return {group_->stream, SequenceOf(number_, pair)};
}

void SpanningExchange::MeetLeaders() {
  for (std::size_t party = 0; party < num_parties(); ++party)
    if (party != group_->self) peers_.push_back({leader(party), {call_}});
  ReceiveCalls();
}

void SpanningExchange::ReceiveCalls() {
  const auto num_peers = static_cast<std::int64_t>(peers_.size());
  const Buffer expected = Buffer::Allocate({num_peers, kCallBytes}, DType::kUInt8);
  const OpenMessages::Batch batch = messages_->NewBatch();
  for (std::int64_t i = 0; i < num_peers; ++i) {
    const Peer& peer = peers_[static_cast<std::size_t>(i)];
    ExchangedCall theirs = peer.mine;
    std::swap(theirs.send_bytes, theirs.receive_bytes);
    std::memcpy(expected.Rows(i, i + 1).data(), &theirs, sizeof(theirs));
    messages_->ReceiveExpected(batch, peer.member, CallLabel(peer.member, member_),
                               calls_.Rows(i, i + 1), expected.Rows(i, i + 1));
  }
}

void SpanningExchange::SendCalls() {
  for (const Peer& peer : peers_) {
    messages_->Send(peer.member, CallLabel(member_, peer.member),
                    reinterpret_cast<const std::byte*>(&peer.mine), sizeof(peer.mine));
  }
}

void SpanningExchange::ThrowDifference(std::size_t index) const {
  const auto& [member, mine] = peers_[index];
  ExchangedCall theirs;
  std::memcpy(&theirs, calls_.data() + index * sizeof(theirs), sizeof(theirs));
  if (mine.call != theirs.call) {
    throw std::logic_error(group_->Prefix() +
                           (member_ < member
                                ? DifferenceError(member_, mine.call, member, theirs.call)
                                : DifferenceError(member, theirs.call, member_, mine.call)));
  }
  const std::string incoming = PieceError(member, theirs.send_bytes, member_, mine.receive_bytes);
  throw std::invalid_argument(
      group_->Prefix() + (incoming.empty()
                              ? PieceError(member_, mine.send_bytes, member, theirs.receive_bytes)
                              : incoming));
}

void SpanningExchange::Barrier() {
  MeetLeaders();
  SendCalls();
  messages_->WaitForAll();
}

void SpanningExchange::Broadcast(std::byte* data, std::size_t num_bytes, std::size_t root) {
  MeetLeaders();
  const OpenMessages::Batch batch = messages_->NewBatch();
  if (root != group_->self)
    messages_->Receive(batch, leader(root), DataLabel(0), Buffer::WrapBytes(data, num_bytes));
  SendCalls();
  if (root == group_->self)
    for (const Peer& peer : peers_) messages_->Send(peer.member, DataLabel(0), data, num_bytes);
  messages_->WaitForAll();
}

void SpanningExchange::AllGather(std::byte* output, std::size_t num_bytes) {
  MeetLeaders();
  const OpenMessages::Batch batch = messages_->NewBatch();
  const auto start = [&](const MemberRun& run) {
    return output + static_cast<std::size_t>(run.first) * num_bytes;
  };
  const auto size = [&](const MemberRun& run) {
    return static_cast<std::size_t>(run.count) * num_bytes;
  };
  const auto label = [&](const MemberRun& run) {
    return DataLabel(static_cast<std::uint64_t>(run.first));
  };
  for (std::size_t party = 0; party < num_parties(); ++party) {
    if (party == group_->self) continue;
    for (const MemberRun& run : group_->parties[party].runs) {
      messages_->Receive(batch, leader(party), label(run),
                         Buffer::WrapBytes(start(run), size(run)));
    }
  }
  SendCalls();
  for (const Peer& peer : peers_) {
    for (const MemberRun& run : group_->own().runs)
      messages_->Send(peer.member, label(run), start(run), size(run));
  }
  messages_->WaitForAll();
}

void SpanningExchange::AllToAll(const Collective& mine) {
  const std::byte* input = mine.input;
  std::byte* output = mine.output;
  const auto label = [&](int from, int to, std::size_t num_bytes) {
    const std::uint64_t pair = PairOf(from, to);
    return Label{DataStream(group_->stream, call_, num_bytes), SequenceOf(number_, pair)};
  };
  const auto remote = [&](int member) { return group_->home(member) != group_->own().process; };
  for (int member = 0; member < group_->size(); ++member) {
    if (!remote(member)) continue;
    const auto index = static_cast<std::size_t>(member);
    peers_.push_back({member, {call_, mine.send_bytes[index], mine.receive_bytes[index]}});
  }
  ReceiveCalls();
  const OpenMessages::Batch batch = messages_->NewBatch();
  for (int member = 0; member < group_->size(); ++member) {
    const std::size_t num_bytes = mine.receive_bytes[static_cast<std::size_t>(member)];
    if (remote(member)) {
      messages_->Receive(batch, member, label(member, member_, num_bytes),
                         Buffer::WrapBytes(output, num_bytes));
    }
    output += num_bytes;
  }
  SendCalls();
  for (int member = 0; member < group_->size(); ++member) {
    const std::size_t num_bytes = mine.send_bytes[static_cast<std::size_t>(member)];
    if (remote(member))
      messages_->Send(member, label(member_, member, num_bytes), input, num_bytes);
    input += num_bytes;
  }
  messages_->WaitForAll();
}

}  // namespace troupe
