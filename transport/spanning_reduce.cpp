// The reductions between processes: every party sums its slice and, for an all-reduce, sends the
// sums to the others. The volume is that of a ring, without its hops.
#include <algorithm>
#include <cstring>
#include <utility>

#include "layout/sum_segments.hpp"
#include "transport/collective_arguments.hpp"
#include "transport/reduce.hpp"
#include "transport/spanning_exchange.hpp"

namespace troupe {
namespace {

enum Phase : std::uint64_t { kAddend = 0, kSum = 1, kNumPhases = 2 };

}  // namespace

std::vector<ByteRange> CutIntoLines(std::size_t num_bytes, std::size_t num_parts) {
  const auto cut = [&](std::size_t part) {
    return BeginOfPart(num_bytes, kCacheLineBytes, part, num_parts);
  };
  std::vector<ByteRange> parts;
  for (std::size_t part = 0; part < num_parts; ++part) parts.push_back({cut(part), cut(part + 1)});
  return parts;
}

/// The arriving segments of this party's slice.
class SpanningExchange::Segments {
 public:
  Segments(SpanningExchange& exchange, std::size_t slice_bytes)
      : exchange_(exchange),
        slice_bytes_(slice_bytes),
        count_((slice_bytes + kSumSegmentBytes - 1) / kSumSegmentBytes),
        room_((std::min(slice_bytes, kSumSegmentBytes) + kCacheLineBytes - 1) / kCacheLineBytes *
              kCacheLineBytes) {
    const std::size_t needed =
        std::min(count_, kSumSegmentsInFlight) * exchange.num_parties() * room_;
    if (!exchange.staging_.defined() || exchange.staging_.num_bytes() < needed)
      exchange.staging_ = Buffer::AllocateBytes(needed);
    for (std::size_t segment = 0; segment < std::min(count_, kSumSegmentsInFlight); ++segment)
      Post(segment);
  }

  std::size_t count() const { return count_; }
  ByteRange range(std::size_t segment) const {
    const std::size_t begin = segment * kSumSegmentBytes;
    return {begin, std::min(slice_bytes_, begin + kSumSegmentBytes)};
  }
  /// The staging memory for party `party`'s part of a segment.
  std::byte* place(std::size_t segment, std::size_t party) const {
    const std::size_t slot = segment % kSumSegmentsInFlight * exchange_.num_parties() + party;
    return exchange_.staging_.data() + slot * room_;
  }
  void Wait(std::size_t segment) { exchange_.messages_->Wait(batches_[segment]); }
  /// Frees the staging memory of a segment and posts the receive of a later one there.
  void Release(std::size_t segment) {
    if (segment + kSumSegmentsInFlight < count_) Post(segment + kSumSegmentsInFlight);
  }

 private:
  void Post(std::size_t segment) {
    batches_.push_back(exchange_.messages_->NewBatch());
    const std::size_t num_bytes = range(segment).size();
    for (std::size_t party = 0; party < exchange_.num_parties(); ++party) {
      if (party == exchange_.group_->self) continue;
      const std::byte* const base = exchange_.staging_.data();
      const auto begin = static_cast<std::int64_t>(place(segment, party) - base);
      exchange_.messages_->Receive(
          batches_.back(), exchange_.leader(party),
          exchange_.DataLabel(segment * kNumPhases + kAddend),
          exchange_.staging_.Rows(begin, begin + static_cast<std::int64_t>(num_bytes)));
    }
  }

  SpanningExchange& exchange_;
  const std::size_t slice_bytes_;
  const std::size_t count_;
  const std::size_t room_;                    // bytes of staging for one party's part of a segment
  std::vector<OpenMessages::Batch> batches_;  // by segment
};

void SpanningExchange::AllReduce(std::byte* data, std::int64_t count, DType dtype, ReduceOp op) {
  const std::size_t num_bytes = static_cast<std::size_t>(count) * SizeOf(dtype);
  if (num_bytes <= kSmallBytes) return AllReduceSmall(data, count, dtype, op);
  const std::vector<ByteRange> slices = CutIntoLines(num_bytes, num_parties());
  ReduceSlices({data, slices, dtype, op, data + slices[group_->self].begin, true});
}

void SpanningExchange::ReduceScatter(const std::byte* input, const std::vector<ByteRange>& slices,
                                     DType dtype, ReduceOp op, std::byte* output) {
  ReduceSlices({input, slices, dtype, op, output, false});
}

void SpanningExchange::AllReduceSmall(std::byte* data, std::int64_t count, DType dtype,
                                      ReduceOp op) {
  const std::size_t num_bytes = static_cast<std::size_t>(count) * SizeOf(dtype);
  MeetLeaders();
  const OpenMessages::Batch batch = messages_->NewBatch();
  const Buffer addends = Buffer::Allocate({static_cast<std::int64_t>(num_parties()), count}, dtype);
  std::vector<const std::byte*> sources;
  for (std::size_t party = 0; party < num_parties(); ++party) {
    const auto row = static_cast<std::int64_t>(party);
    const Buffer addend = addends.Rows(row, row + 1);
    sources.push_back(addend.data());
    if (party != group_->self) {
      messages_->Receive(batch, leader(party), DataLabel(0), addend);
    } else if (num_bytes > 0) {
      std::memcpy(addend.data(), data, num_bytes);
    }
  }
  SendCalls();
  for (const Peer& peer : peers_) messages_->Send(peer.member, DataLabel(0), data, num_bytes);
  messages_->WaitForAll();
  Reduce(sources, count, dtype, op, data);
}

void SpanningExchange::ReduceSlices(const Reduction& reduction) {
  const ByteRange own = reduction.slices[group_->self];
  MeetLeaders();
  Segments segments(*this, own.size());
  const OpenMessages::Batch shared = messages_->NewBatch();

  SendCalls();
  for (std::size_t party = 0; party < num_parties(); ++party) {
    const ByteRange slice = reduction.slices[party];
    if (party == group_->self) continue;
    for (std::size_t begin = slice.begin, segment = 0; begin < slice.end;
         begin += kSumSegmentBytes, ++segment) {
      const std::size_t num_bytes = std::min(kSumSegmentBytes, slice.end - begin);
      const Label addend = DataLabel(segment * kNumPhases + kAddend);
      if (reduction.share) {
        // `input` is the caller's data; the sums of this segment are received into the same place.
        messages_->SendThenReceive(shared, leader(party), addend,
                                   DataLabel(segment * kNumPhases + kSum),
                                   const_cast<std::byte*>(reduction.input) + begin, num_bytes);
      } else {
        messages_->Send(leader(party), addend, reduction.input + begin, num_bytes);
      }
    }
  }

  for (std::size_t segment = 0; segment < segments.count(); ++segment) {
    const ByteRange range = segments.range(segment);
    segments.Wait(segment);
    std::vector<const std::byte*> sources;
    for (std::size_t party = 0; party < num_parties(); ++party) {
      sources.push_back(party == group_->self ? reduction.input + own.begin + range.begin
                                              : segments.place(segment, party));
    }
    std::byte* const output = reduction.output + range.begin;
    const auto count = static_cast<std::int64_t>(range.size() / SizeOf(reduction.dtype));
    ReduceOver(std::move(sources), count, reduction.dtype, reduction.op, output);
    segments.Release(segment);
    if (!reduction.share) continue;
    for (const Peer& peer : peers_)
      messages_->Send(peer.member, DataLabel(segment * kNumPhases + kSum), output, range.size());
  }
  messages_->WaitForAll();
}

}  // namespace troupe
