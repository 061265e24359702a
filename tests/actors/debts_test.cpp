// What the base of all actors counts: requests without an answer, at both ends.
#include "actors/debts.hpp"

#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <catch2/catch.hpp>

#include "actors/actor_base.hpp"
#include "messages/round.hpp"
#include "messages/system.hpp"

namespace troupe {
namespace {

/// Answers activations when it gets DecideNow.
using Giver = Downstream::extend<caf::reacts_to<DecideNow>>;
struct GiverState {
  static constexpr const char* name = "giver";
  std::vector<Promise<Gradient>> open;
};
Giver::behavior_type RunGiver(ActorPointer<Giver, GiverState> self) {
  return {[self](const Activation&) -> caf::result<Gradient> {
            self->state.open.push_back(self->make_response_promise<Gradient>());
            return self->state.open.back();
          },
          [self](const DecideNow&) {
            for (auto& promise : self->state.open) promise.deliver(Gradient{});
          }};
}

/// Sends on what it gets.
using Asker = caf::typed_actor<caf::reacts_to<Activation>>;
struct AskerState {
  static constexpr const char* name = "asker";
};
Asker::behavior_type RunAsker(ActorPointer<Asker, AskerState> self, Downstream giver) {
  self->Expects([] { return ExpectedWaits{{.kind = KindOf<Input>(), .number = 4, .from = {}}}; });
  return {[=](const Activation& activation) {
    self->request(giver, caf::infinite, activation).then([](const Gradient&) {});
  }};
}

Debts DebtsOf(caf::scoped_actor& self, const caf::actor& actor) {
  Debts debts;
  self->request(caf::actor_cast<Debtor>(actor), caf::infinite, ReportDebts{})
      .receive([&](const Debts& got) { debts = got; },
               [](const caf::error& e) { FAIL(caf::to_string(e)); });
  return debts;
}

}  // namespace

TEST_CASE("a request counts at both ends until its answer arrives", "[actors]") {
  SystemConfig config(nullptr, false);
  caf::actor_system system(config);
  caf::scoped_actor self(system);
  const Giver giver = system.spawn(RunGiver);
  const Asker asker = system.spawn(RunAsker, Downstream(giver));
  self->send(asker, Activation{7, 0, {}, nullptr});
  self->send(asker, Activation{8, 0, {}, nullptr});
  const Debts waits = DebtsOf(self, caf::actor_cast<caf::actor>(asker));
  const Debts owes = DebtsOf(self, caf::actor_cast<caf::actor>(giver));
  CHECK(waits.received.empty());
  CHECK(owes.sent.empty());
  REQUIRE(waits.sent.size() == 2);
  REQUIRE(owes.received.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(waits.sent[i].to == giver.address());
    CHECK(waits.sent[i].number == static_cast<std::int64_t>(7 + i));
    CHECK(caf::actor_cast<caf::actor_addr>(owes.received[i].source()) == asker.address());
    CHECK(owes.received[i].id().request_id().integer_value() == waits.sent[i].request);
  }
  CHECK(waits.sent[0].request != waits.sent[1].request);

  ActorWaits text;
  AddInWords(
      waits,
      [](const caf::actor_addr&) {
        return ActorKey{0, 5};
      },
      text);
  std::vector<ActorWaits> all = {text, {"giver", "", false, {}, {}, {0, 5}}};
  NameActors(all);
  REQUIRE(all[0].waits.size() == 3);
  CHECK(ToString(all[0].waits[0]).find("the input of microbatch 4") == 0);
  CHECK(ToString(all[0].waits[2]) == "the gradient of microbatch 8 from giver");

  self->send(giver, DecideNow{});
  CHECK(DebtsOf(self, caf::actor_cast<caf::actor>(giver)).received.empty());
  CHECK(DebtsOf(self, caf::actor_cast<caf::actor>(asker)).sent.empty());
  self->send_exit(giver, caf::exit_reason::user_shutdown);
  self->send_exit(asker, caf::exit_reason::user_shutdown);
}

}  // namespace troupe
