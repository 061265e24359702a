#include "messages/wire.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeindex>
#include <unordered_map>
#include <utility>
#include <vector>

#include <caf/actor_system.hpp>
#include <caf/execution_unit.hpp>
#include <caf/sec.hpp>

#include "messages/list.hpp"
#include "messages/system.hpp"
#include "transport/buffer.hpp"
#include "transport/tensor_store.hpp"

namespace troupe::wire {
namespace {

/// The store of the process that writes or reads.
TensorStore& StoreOf(caf::execution_unit* context) {
  const auto* config =
      context == nullptr ? nullptr : dynamic_cast<const SystemConfig*>(&context->system().config());
  if (config == nullptr || !config->tensors) {
    throw std::logic_error("a tensor crosses processes in a system without a tensor store");
  }
  return *config->tensors;
}

caf::error Broken(const std::string& what) {
  return caf::make_error(caf::sec::invalid_argument, "broken message: " + what);
}

/// The longest container of a valid message.
constexpr std::uint64_t kLongest = std::uint64_t{1} << 28;

template <class F>
inline constexpr bool kWrites = F::reads_state;  // CAF's term: a serializer reads our state

template <class F, class T>
caf::error Cross(F& f, T& value);

/// Crosses values one after the other, up to the first error.
template <class F, class... Ts>
caf::error CrossAll(F& f, Ts&... values) {
  caf::error error;
  static_cast<void>(((error = Cross(f, values), !error) && ...));
  return error;
}

template <class F>
caf::error CrossSize(F& f, std::uint64_t& size) {
  if (auto error = f(size)) return error;
  return size > kLongest ? Broken("a container is too long") : caf::error();
}

template <class F, class E>
caf::error CrossVector(F& f, std::vector<E>& values) {
  auto size = static_cast<std::uint64_t>(values.size());
  if (auto error = CrossSize(f, size)) return error;
  if constexpr (!kWrites<F>) {
    values.clear();
    if constexpr (sizeof(E) == 1) values.resize(size);
  }
  if constexpr (sizeof(E) == 1) {
    return size > 0 ? f.apply_raw(size, values.data()) : caf::error();
  } else {
    for (std::uint64_t i = 0; i < size; ++i) {
      if constexpr (!kWrites<F>) values.emplace_back();  // grows only as far as there are bytes
      if (auto error = Cross(f, values[i])) return error;
    }
    return {};
  }
}

template <class F, class K, class V>
caf::error CrossMap(F& f, std::map<K, V>& values) {
  auto size = static_cast<std::uint64_t>(values.size());
  if (auto error = CrossSize(f, size)) return error;
  if constexpr (kWrites<F>) {
    for (auto& [key, value] : values) {
      K copy = key;
      if (auto error = CrossAll(f, copy, value)) return error;
    }
  } else {
    values.clear();
    for (std::uint64_t i = 0; i < size; ++i) {
      K key{};
      if (auto error = Cross(f, key)) return error;
      if (auto error = Cross(f, values[std::move(key)])) return error;
    }
  }
  return {};
}

template <class F, class E>
caf::error CrossShared(F& f, std::shared_ptr<const E>& value) {
  bool there = value != nullptr;
  if (auto error = f(there)) return error;
  if constexpr (kWrites<F>) {
    return there ? Cross(f, const_cast<E&>(*value)) : caf::error();
  } else {
    value.reset();
    if (!there) return {};
    auto fresh = std::make_shared<E>();
    auto error = Cross(f, *fresh);
    value = std::move(fresh);
    return error;
  }
}

template <class F>
caf::error CrossBuffer(F& f, Buffer& buffer) {
  TensorReference reference;
  if constexpr (kWrites<F>) reference = StoreOf(f.context()).Refer(buffer);
  if (auto error = CrossAll(f, reference.home, reference.key, reference.weight, reference.offset,
                            reference.shape, reference.dtype, reference.pushed)) {
    return error;
  }
  if constexpr (!kWrites<F>) {
    try {
      buffer = StoreOf(f.context()).Resolve(reference);
    } catch (const std::exception& e) {
      return Broken(e.what());
    }
  }
  return {};
}

template <class F, class T>
caf::error Cross(F& f, T& value) {
  if constexpr (std::is_same_v<T, double>) {
    auto bits = std::bit_cast<std::uint64_t>(value);
    if (auto error = f(bits)) return error;
    if constexpr (!kWrites<F>) value = std::bit_cast<double>(bits);
    return {};
  } else if constexpr (std::is_enum_v<T>) {
    auto number = static_cast<std::underlying_type_t<T>>(value);
    if (auto error = Cross(f, number)) return error;
    if constexpr (!kWrites<F>) value = static_cast<T>(number);
    return {};
  } else if constexpr (kIs<T, std::vector>) {
    return CrossVector(f, value);
  } else if constexpr (kIs<T, std::map>) {
    return CrossMap(f, value);
  } else if constexpr (kIs<T, std::pair>) {
    return CrossAll(f, value.first, value.second);
  } else if constexpr (kIs<T, std::shared_ptr>) {
    return CrossShared(f, value);
  } else if constexpr (std::is_same_v<T, Buffer>) {
    return CrossBuffer(f, value);
  } else if constexpr (Travels<T>) {
    return std::apply([&f](auto&... fields) { return CrossAll(f, fields...); }, Fields(value));
  } else {
    static_assert(!std::is_floating_point_v<T>);
    return f(value);  // integers, strings, handles of actors
  }
}

struct Crossing {
  caf::error (*write)(caf::serializer& sink, void* message);
  caf::error (*read)(caf::deserializer& source, void* message);
};

struct Crossings {
  std::unordered_map<std::type_index, Crossing> by_type;

  template <class Message>
  void Add() {
    by_type[typeid(Message)] = {[](caf::serializer& sink, void* message) {
                                  return Cross(sink, *static_cast<Message*>(message));
                                },
                                [](caf::deserializer& source, void* message) {
                                  return Cross(source, *static_cast<Message*>(message));
                                }};
  }
  Crossings() {
    decltype(WorkMessages() + NodeMessages())::ForEach([this]<class Message>() { Add<Message>(); });
    Add<Failure>();  // in a caf::error
  }
};

const Crossing* Find(const std::type_info& type) {
  static const Crossings all;
  const auto found = all.by_type.find(type);
  return found == all.by_type.end() ? nullptr : &found->second;
}

caf::error Unknown(const std::type_info& type) {
  return Broken(std::string(type.name()) + " does not cross processes");
}

}  // namespace

caf::error CrossMessage(caf::serializer& sink, const std::type_info& type, void* message) {
  const Crossing* const crossing = Find(type);
  return crossing == nullptr ? Unknown(type) : crossing->write(sink, message);
}

caf::error CrossMessage(caf::deserializer& source, const std::type_info& type, void* message) {
  const Crossing* const crossing = Find(type);
  return crossing == nullptr ? Unknown(type) : crossing->read(source, message);
}

}  // namespace troupe::wire
