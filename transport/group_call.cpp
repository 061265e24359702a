#include "transport/group_call.hpp"

#include <cstring>

namespace troupe {

bool SameCall(const GroupCall& a, const GroupCall& b) {
  return a.operation == b.operation && a.dtype == b.dtype && a.op == b.op && a.root == b.root &&
         a.count == b.count;
}

std::string ToString(const GroupCall& call) {
  LocalCall same;
  same.operation = call.operation;
  same.dtype = call.dtype;
  same.op = call.op;
  same.root = call.root;
  same.count = call.count;
  return ToString(same);
}

std::string NameOf(const GroupCall& call) {
  const std::string text = ToString(call);
  return text.substr(0, text.find(' '));
}

std::uint64_t DataStream(std::uint64_t stream, const GroupCall& call, std::uint64_t message_bytes) {
  GroupCall key = call;
  key.send_bytes = message_bytes;
  key.receive_bytes = 0;
  std::string bytes(sizeof(stream) + sizeof(key), '\0');
  std::memcpy(bytes.data(), &stream, sizeof(stream));
  std::memcpy(bytes.data() + sizeof(stream), &key, sizeof(key));
  return StreamOf(bytes);
}

}  // namespace troupe
