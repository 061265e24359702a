#include "transport/gpu/staged_plane.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "layout/mix_bits.hpp"

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
                     if (!error.empty() && abort != nullptr) {
                       abort->Raise("data plane: answering a pull from device " +
                                    std::to_string(device) + ": " + error);
                     }
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
          if (self->parts->options.abort != nullptr) {
            self->parts->options.abort->Raise("data plane: sending from device " +
                                              std::to_string(device) + " to process " +
                                              std::to_string(self->to) + ": " + error);
          }
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
  using Request = std::function<void(std::size_t piece, Reception reception)>;

  Incoming(std::shared_ptr<const Parts> with, Reception taken, Request how)
      : parts(std::move(with)),
        request(std::move(how)),
        num_pieces(parts->NumPieces(taken.destination)),
        whole(std::move(taken)) {}

  const std::shared_ptr<const Parts> parts;
  const Request request;
  const std::size_t num_pieces;

  std::mutex mutex;
  Reception whole;
  std::size_t num_started = 0;
  std::size_t num_done = 0;
  int num_copying = 0;  // pieces that a device may be writing
  Failure error;        // the first one
  bool reported = false;

  void Start() {
    const std::size_t num_parallel = parts->Direct(whole.destination) ? num_pieces : kInFlight;
    for (std::size_t i = 0; i < num_parallel; ++i) StartNext();
  }

  void StartNext() {
    std::size_t piece = 0;
    Buffer bytes;
    {
      const std::lock_guard lock(mutex);
      if (num_started == num_pieces || !error.empty()) return;
      piece = num_started++;
      bytes = parts->Piece(whole.destination, piece);
    }
    const auto self = shared_from_this();
    Reception reception{whole.from,
                        {},
                        bytes,
                        whole.what,
                        [self] { self->PieceDone({}); },
                        [self](const Failure& why) { self->PieceDone(why); }};
    if (!parts->Direct(bytes)) {
      try {
        reception.destination = parts->staging.Pinned(bytes.num_bytes(), bytes.device());
      } catch (const std::exception& why) {
        return PieceDone(whole.what + ": " + why.what());
      }
      reception.received = [self, pinned = reception.destination, bytes,
                            begin = piece * parts->options.piece_bytes] {
        self->PieceArrived(pinned, bytes, begin);
      };
    }
    request(piece, std::move(reception));
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
          self->PieceDone(why.empty() ? Failure() : self->whole.what + ": " + why);
        },
        begin);
  }

  /// Reports the end once: after all pieces, or after the first error once no device is writing.
  void PieceDone(const Failure& why) {
    bool over = false;
    Buffer destination;
    {
      const std::lock_guard lock(mutex);
      if (why.empty()) ++num_done;
      if (error.empty()) error = why;
      over = !reported && (num_done == num_pieces || (!error.empty() && num_copying == 0));
      if (over) destination = std::move(whole.destination);
      reported = reported || over;
    }
    if (!over) return StartNext();
    destination = Buffer();
    const auto received = std::exchange(whole.received, nullptr);
    const auto failed = std::exchange(whole.failed, nullptr);
    if (error.empty()) {  // no longer changes
      received();
    } else {
      failed(error);
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

void StagedPlane::Receive(Reception reception) {
  if (parts_->NumPieces(reception.destination) == 1 && parts_->Direct(reception.destination))
    return PlaneInFront::Receive(std::move(reception));
  const auto request = [parts = parts_, label = reception.label](std::size_t piece, Reception it) {
    it.label = LabelOfPiece(label, piece);
    parts->plane.Receive(std::move(it));
  };
  std::make_shared<Incoming>(parts_, std::move(reception), request)->Start();
}

void StagedPlane::Pull(std::uint64_t key, std::int64_t offset, Reception reception) {
  // The carrier cuts host memory into slices itself.
  if (parts_->Direct(reception.destination))
    return PlaneInFront::Pull(key, offset, std::move(reception));
  const auto request = [parts = parts_, key, offset](std::size_t piece, Reception it) {
    const auto begin = static_cast<std::int64_t>(piece * parts->options.piece_bytes);
    parts->carrier.Pull(key, offset + begin, std::move(it));
  };
  std::make_shared<Incoming>(parts_, std::move(reception), request)->Start();
}

}  // namespace troupe
