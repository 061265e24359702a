// The requests of one actor that are not answered yet: those that it has sent and those that it has
// received. The base of all actors keeps them (actor_base.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <variant>
#include <vector>

#include <caf/actor_addr.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/replies_to.hpp>
#include <caf/response_promise.hpp>
#include <caf/typed_actor.hpp>

#include "messages/request.hpp"
#include "trace/actor_id.hpp"
#include "transport/wait.hpp"

namespace troupe {

/// A request that the actor has sent.
struct SentRequest {
  std::uint64_t request = 0;
  caf::actor_addr to;
  RequestKind kind;
  std::int64_t number = 0;  ///< of its unit
  std::vector<int> ranks;   ///< the set of devices it goes to; empty: it is for its receiver alone
};

/// A message that an actor waits for without a separate request.
struct ExpectedWait {
  enum class What {
    kRequest,       ///< the request itself
    kRequestBytes,  ///< the bytes that the request has named
    kAnswerBytes,   ///< the bytes that its answer has named
    kTurn,          ///< the request that is first in the order of `rank`
  };
  What what = What::kRequest;
  RequestKind kind;
  std::int64_t number = 0;
  std::variant<ActorId, caf::actor_addr> from;
  int rank = -1;
  RequestUnit unit = kind.words.unit;
};
using ExpectedWaits = std::vector<ExpectedWait>;

/// All messages that an actor waits for or owes.
struct Debts {
  std::vector<SentRequest> sent;
  std::vector<caf::response_promise> received;
  ExpectedWaits expected;
};

/// Sent to any actor of the same process; its base answers.
struct ReportDebts {};
using Debtor = caf::typed_actor<caf::replies_to<ReportDebts>::with<Debts>>;

/// The process of the actor with `address`, and its number there.
using ActorKeyOf = std::function<ActorKey(const caf::actor_addr& address)>;

/// "gradient" of `sent`, with its unit; names the receiver by its key alone.
Wait InWords(const SentRequest& sent, const ActorKeyOf& key_of);
/// Adds `debts` to the wait list of their actor.
void AddInWords(const Debts& debts, const ActorKeyOf& key_of, ActorWaits& waits);

/// Names the actors that `all` know only by their keys.
void NameActors(std::vector<ActorWaits>& all);

}  // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::ReportDebts)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::Debts)
