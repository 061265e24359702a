#include "actors/connections.hpp"

#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include <caf/atom.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/io/basp_broker.hpp>
#include <caf/io/doorman.hpp>
#include <caf/io/middleman.hpp>
#include <caf/io/network/multiplexer.hpp>
#include <caf/io/scribe.hpp>
#include <caf/send.hpp>

#include "actors/actor_base.hpp"
#include "transport/awaited.hpp"

namespace troupe {
namespace {

/// The port under which CAF publishes our Node. It is not a port of the machine: nothing listens.
constexpr std::uint16_t kDoorNumber = 1;

caf::actor BrokerOf(caf::actor_system& system) {
  return system.middleman().named_broker<caf::io::basp_broker>(caf::atom("BASP"));
}

}  // namespace

/// To CAF, a port on which connections arrive; they are admitted by hand.
class Connections::Door : public caf::io::doorman {
 public:
  explicit Door(caf::io::network::multiplexer& backend)
      : caf::io::doorman(caf::io::accept_handle::from_int(std::int64_t{1} << 40)),
        backend_(backend) {}

  /// On the thread of the network.
  void Admit(int fd) {
    if (parent() == nullptr) return;  // the system is shutting down
    auto scribe = backend_.new_scribe(fd);
    const auto handle = scribe->hdl();
    parent()->add_scribe(std::move(scribe));
    caf::io::doorman::new_connection(&backend_, handle);
  }

  bool new_connection() override { return true; }
  std::uint16_t port() const override { return kDoorNumber; }
  std::string addr() const override { return "troupe"; }
  void launch() override {}
  void graceful_shutdown() override { detach(&backend_, false); }
  void add_to_loop() override {}
  void remove_from_loop() override {}

 private:
  caf::io::network::multiplexer& backend_;
};

Connections::Connections(caf::actor_system& system, const Node& node) : system_(system) {
  auto door = caf::make_counted<Door>(system.middleman().backend());
  door_ = std::shared_ptr<void>(door.get(), [door](void*) {});
  caf::anon_send(BrokerOf(system), caf::publish_atom::value, caf::io::doorman_ptr(door),
                 kDoorNumber, caf::actor_cast<caf::strong_actor_ptr>(node),
                 std::set<std::string>());
}

void Connections::Accept(Socket socket) {
  const caf::intrusive_ptr<Door> door(static_cast<Door*>(door_.get()));
  // The broker gets the door by a message; a function posted from here runs after it.
  system_.middleman().backend().post([door, fd = socket.Release()] { door->Admit(fd); });
}

Node Connections::Connect(Socket socket, std::chrono::milliseconds timeout, AbortSignal& abort) {
  const caf::io::scribe_ptr scribe = system_.middleman().backend().new_scribe(socket.Release());
  const Awaited<Node> awaited;
  const caf::actor asking =
      system_.spawn([=, broker = BrokerOf(system_)](caf::event_based_actor* self) {
        self->request(broker, timeout, caf::connect_atom::value, scribe, kDoorNumber)
            .then(
                [awaited](const caf::node_id&, const caf::strong_actor_ptr& peer,
                          const std::set<std::string>&) {
                  auto node = caf::actor_cast<Node>(peer);
                  node ? awaited.Deliver(std::move(node)) : awaited.Fail(Failure("it has no node"));
                },
                [awaited](const caf::error& reason) { awaited.Fail(FailureOf(reason)); });
      });
  try {
    return awaited.Wait(abort);
  } catch (const std::exception& e) {
    caf::anon_send_exit(asking, caf::exit_reason::kill);  // it may wait for a process that is lost
    throw std::runtime_error(std::string("cannot reach the actors of another process: ") +
                             e.what());
  }
}

}  // namespace troupe
