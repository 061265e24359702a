// What all messages between processes use: the fields of the structs in them (messages/wire.hpp),
// and the names of requests in texts.
#pragma once

#include <cstdint>
#include <tuple>

#include "layout/route.hpp"
#include "messages/wire.hpp"
#include "modules/held_files.hpp"
#include "modules/input_source.hpp"
#include "modules/stored_state.hpp"
#include "trace/unit_place.hpp"
#include "transport/failure.hpp"
#include "transport/row_exchange.hpp"
#include "transport/wait.hpp"

namespace troupe {

/// The name of a request in texts: a static member `kWords` of the message.
struct RequestWords {
  const char* request = nullptr;  ///< "activation"; null: the name of its C++ type
  const char* answer = nullptr;   ///< "gradient"; null: "answer to ..."
  WaitUnit unit = WaitUnit::kNone;
};

/// A base of messages that consist of their type alone.
struct NoFields {};
inline auto Fields(NoFields&) { return std::tie(); }
inline auto Fields(Failure& x) { return std::tie(x.kind, x.text, x.actors); }
inline auto Fields(UnitPlace& x) { return std::tie(x.step, x.number, x.window); }
inline auto Fields(Interval& x) { return std::tie(x.begin, x.end); }
inline auto Fields(RowRun& x) { return std::tie(x.sample, x.first, x.count, x.place); }
inline auto Fields(RowTable& x) { return std::tie(x.samples, x.rows, x.lengths, x.runs); }
inline auto Fields(FieldItems& x) { return std::tie(x.values, x.lengths); }
inline auto Fields(ReplacedItem& x) { return std::tie(x.train, x.source, x.row, x.file, x.line); }
inline auto Fields(Inputs& x) {
  return std::tie(x.table, x.num_tokens, x.tokens, x.labels, x.content, x.fields, x.positions,
                  x.newlines, x.expected, x.replaced);
}
inline auto Fields(DataDelay& x) { return std::tie(x.source, x.phase, x.process, x.ns); }
inline auto Fields(DataWait& x) { return std::tie(x.ns, x.longest_ns, x.delay); }
inline auto Fields(LossSums& x) {
  return std::tie(x.loss, x.tokens, x.correct, x.content_tokens, x.content_correct,
                  x.sequence_tokens, x.samples);
}
inline auto Fields(ForwardPass& x) {
  return std::tie(x.unit, x.train, x.loss_scale, x.inputs, x.data, x.rows, x.step,
                  x.first_microbatch, x.token_scale, x.sample_scale, x.next_backward);
}
inline auto Fields(ReducedGradients& x) { return std::tie(x.squared_norm, x.squared_norms); }
inline auto Fields(ForwardResult& x) { return std::tie(x.outputs, x.loss); }
inline auto Fields(BackwardPass& x) {
  return std::tie(x.unit, x.gradients, x.split_weights, x.last, x.next_backward);
}
inline auto Fields(BackwardResult& x) { return std::tie(x.gradients); }
inline auto Fields(UpdateStep& x) { return std::tie(x.step, x.clip_coefficient, x.schedule); }
inline auto Fields(TensorPiece& x) {
  return std::tie(x.name, x.global_shape, x.offsets, x.value, x.owner);
}
inline auto Fields(Round& x) {
  return std::tie(x.number, x.train, x.step, x.microbatches, x.loss_scale, x.token_scale,
                  x.sample_scale, x.place, x.group);
}
inline auto Fields(StoredTensor& x) { return std::tie(x.kind, x.name, x.shape, x.type, x.digest); }
inline auto Fields(StoredShard& x) {
  return std::tie(x.file, x.process, x.disk, x.bytes, x.sha256, x.header_sha256, x.tensors);
}
inline auto Fields(LoadedShard& x) { return std::tie(x.tensors, x.bytes_read, x.bytes_held); }
inline auto Fields(SavedShard& x) { return std::tie(x.rank, x.stage, x.stored); }
inline auto Fields(SaveOrder& x) { return std::tie(x.folder, x.step, x.many_disks, x.in_memory); }
inline auto Fields(LoadOrder& x) {
  return std::tie(x.folder, x.fresh, x.manifest_sum, x.in_memory);
}
inline auto Fields(HeldFile& x) { return std::tie(x.name, x.bytes); }
inline auto Fields(RowMove& x) {
  return std::tie(x.source, x.destination, x.source_rows, x.destination_rows);
}
inline auto Fields(ExchangePlan& x) { return std::tie(x.moves, x.rows_out, x.row_shape, x.dtype); }

}  // namespace troupe
