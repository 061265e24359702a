// The requests of one actor that are not answered yet: those that it has sent and those that it has
// received. The base of all actors counts them (actor_base.hpp), so that no actor has to.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <variant>
#include <vector>

#include <caf/actor_addr.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/replies_to.hpp>
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
  std::vector<int> ranks;   ///< the devices it is for together; empty: it is for its receiver
};

/// A request that the actor has received.
struct ReceivedRequest {
  std::uint64_t request = 0;
  caf::actor_addr from;
};

/// What an actor waits for without having asked for it.
struct ExpectedWait {
  enum class What {
    kRequest,       ///< the request itself
    kRequestBytes,  ///< those that the request has named
    kAnswerBytes,   ///< those that its answer has named
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

/// All that an actor waits for and owes.
struct Debts {
  std::vector<SentRequest> sent;
  std::vector<ReceivedRequest> received;
  ExpectedWaits expected;
};

/// Asks an actor of the same process, whatever its interface: its base answers.
struct ReportDebts {};
using Debtor = caf::typed_actor<caf::replies_to<ReportDebts>::with<Debts>>;

/// Who has `address`: its process and number there.
using KeyOf = std::function<ActorKey(const caf::actor_addr& address)>;

/// "gradient" of `sent`, with its unit; `whom` is left to `key_of`.
Wait InWords(const SentRequest& sent, const KeyOf& key_of);
/// Fills in what the actor waits for and owes.
void AddInWords(const Debts& debts, const KeyOf& key_of, ActorWaits& waits);

/// Gives the actors that are known only by their keys the names that `all` have.
void NameActors(std::vector<ActorWaits>& all);

}  // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::ReportDebts)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::Debts)
