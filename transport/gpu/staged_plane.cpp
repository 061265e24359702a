#include "transport/gpu/staged_plane.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "layout/random_bits.hpp"

namespace troupe {

Label LabelOfPiece(Label message, std::uint64_t piece) {
  if (piece == 0) return message;
  // Different for every piece of a stream, and for equal pieces of different streams.
  return {MixBits(message.stream + (piece - 1) * kMixStep), message.sequence};
}

ToHostForPulls MakeToHost(DeviceStaging& staging, std::shared_ptr<AbortSignal> abort) {
  return [&staging, abort = std::move(abort)](
             Buffer bytes, std::function<void(Buffer pinned, const std::string& error)> done) {
    const int device = bytes.device();
    staging.ToHost(std::move(bytes),
                   [=, done = std::move(done)](Buffer pinned, const std::string& error) {
                     if (!error.empty() && abort != nullptr)
                       abort->Raise("data plane: answering a pull from device " +
                                    std::to_string(device) + ": " + error);
                     done(std::move(pinned), error);
                   });
  };
}

struct StagedPlane::Parts {
  DataPlane& plane;
  TensorCarrier& carrier;
  DeviceStaging& staging;
  Options options;

  std::size_t NumPieces(const Buffer& buffer) const {
    const std::size_t bytes = buffer.num_bytes();
    return std::max<std::size_t>(1, (bytes + options.piece_bytes - 1) / options.piece_bytes);
  }
  Buffer Piece(const Buffer& buffer, std::size_t piece) const {
    const std::size_t begin = piece * options.piece_bytes;
    return BytesOf(buffer, begin, std::min(options.piece_bytes, buffer.num_bytes() - begin));
  }
  bool Direct(const Buffer& buffer) const {
    return buffer.on_host() || (options.reads_device_memory && buffer.parts().empty());
  }
};

/// An outgoing message.
struct StagedPlane::Outgoing : std::enable_shared_from_this<Outgoing> {
  std::shared_ptr<const Parts> parts;
  ProcessId to = 0;
  Label label;
  std::function<void()> sent;
  std::size_t num_pieces = 0;

  std::mutex mutex;
  Buffer buffer;
  std::size_t num_started = 0;
  std::size_t num_sent = 0;

  void StartNext() {
    std::size_t piece = 0;
    Buffer bytes;
    {
      const std::lock_guard lock(mutex);
      if (num_started == num_pieces) return;
      piece = num_started++;
      bytes = parts->Piece(buffer, piece);
    }
    if (parts->Direct(bytes)) return SendPiece(piece, std::move(bytes));
    const int device = bytes.device();
    parts->staging.ToHost(
        std::move(bytes),
        [self = shared_from_this(), piece, device](Buffer pinned, const std::string& error) {
          if (error.empty()) return self->SendPiece(piece, std::move(pinned));
          // The receiver is waiting, and a send cannot report an error.
          if (self->parts->options.abort != nullptr)
            self->parts->options.abort->Raise("data plane: sending from device " +
                                              std::to_string(device) + " to process " +
                                              std::to_string(self->to) + ": " + error);
        },
        piece * parts->options.piece_bytes);
  }

  void SendPiece(std::size_t piece, Buffer bytes) {
    parts->plane.Send(to, LabelOfPiece(label, piece), std::move(bytes),
                      [self = shared_from_this()] { self->PieceSent(); });
  }

  void PieceSent() {
    Buffer whole;
    {
      const std::lock_guard lock(mutex);
      if (++num_sent == num_pieces) whole = std::move(buffer);
    }
    if (!whole.defined()) return StartNext();
    whole = Buffer();  // before `sent`, which may look at its use_count()
    if (sent) sent();
  }
};

/// An incoming message, received or pulled.
struct StagedPlane::Incoming : std::enable_shared_from_this<Incoming> {
  /// Requests one piece from the wrapped plane.
  using Request = std::function<void(std::size_t piece, Buffer into, std::function<void()> received,
                                     OnFailure failed)>;

  std::shared_ptr<const Parts> parts;
  std::string what;
  Request request;
  std::size_t num_pieces = 0;
  std::function<void()> received;
  OnFailure failed;

  std::mutex mutex;
  Buffer destination;
  std::size_t num_started = 0;
  std::size_t num_done = 0;
  int num_copying = 0;  // pieces that a device may be writing
  Failure error;        // the first one
  bool reported = false;

  void StartNext() {
    std::size_t piece = 0;
    Buffer bytes;
    {
      const std::lock_guard lock(mutex);
      if (num_started == num_pieces || !error.empty()) return;
      piece = num_started++;
      bytes = parts->Piece(destination, piece);
    }
    const auto self = shared_from_this();
    const auto bad = [self](const Failure& why) { self->PieceDone(why); };
    if (parts->Direct(bytes))
      return request(
          piece, std::move(bytes), [self] { self->PieceDone({}); }, bad);
    Buffer pinned;
    try {
      pinned = parts->staging.Pinned(bytes.num_bytes(), bytes.device());
    } catch (const std::exception& why) {
      return PieceDone(what + ": " + why.what());
    }
    const std::size_t begin = piece * parts->options.piece_bytes;
    request(
        piece, pinned, [self, pinned, bytes, begin] { self->PieceArrived(pinned, bytes, begin); },
        bad);
  }

  void PieceArrived(const Buffer& pinned, const Buffer& bytes, std::size_t begin) {
    {
      const std::lock_guard lock(mutex);
      if (!error.empty()) return;  // nothing may be written any more
      ++num_copying;
    }
    parts->staging.ToDevice(
        pinned, bytes,
        [self = shared_from_this()](const std::string& why) {
          {
            const std::lock_guard lock(self->mutex);
            --self->num_copying;
          }
          self->PieceDone(why.empty() ? Failure() : self->what + ": " + why);
        },
        begin);
  }

  /// Reports the end once: after all pieces, or after the first error once no device is writing.
  void PieceDone(const Failure& why) {
    bool over = false;
    Buffer whole;
    {
      const std::lock_guard lock(mutex);
      if (why.empty()) ++num_done;
      if (error.empty()) error = why;
      over = !reported && (num_done == num_pieces || (!error.empty() && num_copying == 0));
      if (over) whole = std::move(destination);
      reported = reported || over;
    }
    if (!over) return StartNext();
    whole = Buffer();
    const auto good = std::exchange(received, nullptr);
    const auto bad = std::exchange(failed, nullptr);
    if (error.empty()) {  // no longer changes
      good();
    } else {
      bad(error);
    }
  }
};

StagedPlane::StagedPlane(DataPlane& plane, TensorCarrier& carrier, DeviceStaging& staging,
                         Options options)
    : PlaneInFront(plane, carrier),
      parts_(std::make_shared<const Parts>(Parts{plane, carrier, staging, std::move(options)})) {}

StagedPlane::~StagedPlane() = default;

std::string StagedPlane::Describe(const std::string& plane) const {
  if (parts_->options.reads_device_memory) return plane + " reads device memory itself";
  const std::size_t bytes = parts_->options.piece_bytes;
  const bool whole = bytes % (std::size_t{1} << 20) == 0;
  return plane + ": device memory through pinned chunks of " +
         (whole ? std::to_string(bytes >> 20) + " MiB" : std::to_string(bytes) + " bytes") +
         (parts_->staging.checks_copies() ? ", copies checked" : "");
}

void StagedPlane::Send(ProcessId to, Label label, Buffer buffer, std::function<void()> sent) {
  const std::size_t num_pieces = parts_->NumPieces(buffer);
  const bool direct = parts_->Direct(buffer);
  if (num_pieces == 1 && direct)
    return PlaneInFront::Send(to, label, std::move(buffer), std::move(sent));
  const auto message = std::make_shared<Outgoing>();
  message->parts = parts_;
  message->to = to;
  message->label = label;
  message->buffer = std::move(buffer);
  message->sent = std::move(sent);
  message->num_pieces = num_pieces;
  const std::size_t num_parallel = direct ? num_pieces : kInFlight;
  for (std::size_t i = 0; i < num_parallel; ++i) message->StartNext();
}

void StagedPlane::Receive(ProcessId from, Label label, Buffer destination, std::string what,
                          std::function<void()> received, OnFailure failed) {
  const std::size_t num_pieces = parts_->NumPieces(destination);
  const bool direct = parts_->Direct(destination);
  if (num_pieces == 1 && direct)
    return PlaneInFront::Receive(from, label, std::move(destination), std::move(what),
                                 std::move(received), std::move(failed));
  const auto message = std::make_shared<Incoming>();
  message->parts = parts_;
  message->what = what;
  message->destination = std::move(destination);
  message->received = std::move(received);
  message->failed = std::move(failed);
  message->num_pieces = num_pieces;
  message->request = [parts = parts_, from, label, what](std::size_t piece, Buffer into, auto good,
                                                         auto bad) {
    parts->plane.Receive(from, LabelOfPiece(label, piece), std::move(into), what, std::move(good),
                         std::move(bad));
  };
  const std::size_t num_parallel = direct ? num_pieces : kInFlight;
  for (std::size_t i = 0; i < num_parallel; ++i) message->StartNext();
}

void StagedPlane::Pull(ProcessId home, std::uint64_t key, std::int64_t offset, Buffer destination,
                       std::string what, std::function<void()> received, OnFailure failed) {
  // The carrier cuts host memory into slices itself.
  if (parts_->Direct(destination))
    return PlaneInFront::Pull(home, key, offset, std::move(destination), std::move(what),
                              std::move(received), std::move(failed));
  const auto message = std::make_shared<Incoming>();
  message->parts = parts_;
  message->what = what;
  message->num_pieces = parts_->NumPieces(destination);
  message->destination = std::move(destination);
  message->received = std::move(received);
  message->failed = std::move(failed);
  message->request = [parts = parts_, home, key, offset, what](std::size_t piece, Buffer into,
                                                               auto good, auto bad) {
    const auto begin = static_cast<std::int64_t>(piece * parts->options.piece_bytes);
    parts->carrier.Pull(home, key, offset + begin, std::move(into), what, std::move(good),
                        std::move(bad));
  };
  for (int i = 0; i < kInFlight; ++i) message->StartNext();
}

}  // namespace troupe
