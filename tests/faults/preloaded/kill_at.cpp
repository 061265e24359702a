// Loaded into `troupe` before the C library: kills one process of a job at a chosen call of the
// system. TROUPE_KILL is NODE:GENERATION:CALL:PART:COUNT:WHEN, for instance
// "2:0:rename:safetensors:3:before": process 2, as it was started in generation 0, before its third
// rename of a path with "safetensors" in it. A write is cut in half first. Only the process that makes
// the file TROUPE_KILL_ONCE dies, not the one that is started in its place.
#include <atomic>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

namespace {

struct Plan {
  bool armed = false;
  std::string call;
  std::string part;
  bool after = false;
};

std::atomic<int> left{0};

std::vector<std::string> Split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream rest(text);
  for (std::string part; std::getline(rest, part, at);) parts.push_back(part);
  return parts;
}

/// The argument after `option`; `otherwise` if there is none.
std::string Argument(const std::vector<std::string>& words, const std::string& option,
                     const std::string& otherwise) {
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == option) return words[i + 1];
  }
  return otherwise;
}

Plan MakePlan() {
  const char* const wanted = std::getenv("TROUPE_KILL");
  if (wanted == nullptr) return {};
  const auto parts = Split(wanted, ':');
  std::ifstream file("/proc/self/cmdline");
  const std::string line{std::istreambuf_iterator<char>(file), {}};
  const auto words = Split(line, '\0');
  const std::string node = Argument(words, "--node", "");
  if (parts.size() != 6 || !node.starts_with(parts[0] + "/")) return {};
  if (Argument(words, "--generation", "0") != parts[1]) return {};
  left = std::stoi(parts[4]);
  return {true, parts[2], parts[3], parts[5] == "after"};
}

const Plan& ThePlan() {
  static const Plan plan = MakePlan();
  return plan;
}

thread_local bool inside = false;  ///< this library makes the call itself

/// Whether this call is the one.
bool Strikes(const char* call, const std::string& path) {
  if (inside) return false;
  inside = true;
  const Plan& plan = ThePlan();
  inside = false;
  return plan.armed && plan.call == call && path.find(plan.part) != std::string::npos &&
         left.fetch_sub(1) == 1;
}

void Die() {
  const char* const once = std::getenv("TROUPE_KILL_ONCE");
  inside = true;
  const int file = once == nullptr ? -1 : open(once, O_CREAT | O_EXCL | O_WRONLY, 0600);
  inside = false;
  if (file >= 0) kill(getpid(), SIGKILL);
}

std::string PathOf(int file) {
  char path[512] = {};
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  const ssize_t length = readlink(link.c_str(), path, sizeof(path) - 1);
  return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : "";
}

template <class Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

/// Makes the call `real`, and dies before or after it if it is the one.
template <class Real>
auto Around(const char* call, const std::string& path, Real real) {
  const bool strikes = Strikes(call, path);
  if (strikes && !ThePlan().after) Die();
  const auto result = real();
  if (strikes) Die();
  return result;
}

}  // namespace

extern "C" {

ssize_t write(int file, const void* bytes, size_t size) {
  static auto* const real = Next<ssize_t(int, const void*, size_t)>("write");
  if (!inside && ThePlan().call == "write" && Strikes("write", PathOf(file))) {
    const ssize_t half = real(file, bytes, size / 2);
    Die();
    return half;
  }
  return real(file, bytes, size);
}

int fsync(int file) {
  static auto* const real = Next<int(int)>("fsync");
  return Around("fsync", PathOf(file), [=] { return real(file); });
}

int rename(const char* from, const char* to) noexcept {
  static auto* const real = Next<int(const char*, const char*)>("rename");
  return Around("rename", to, [=] { return real(from, to); });
}

int open(const char* path, int flags, ...) {
  static auto* const real = Next<int(const char*, int, ...)>("open");
  va_list more;
  va_start(more, flags);
  const auto mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : mode_t{0};
  va_end(more);
  return Around("open", path, [=] { return real(path, flags, mode); });
}

int connect(int socket, const sockaddr* address, socklen_t size) {
  static auto* const real = Next<int(int, const sockaddr*, socklen_t)>("connect");
  return Around("connect", "", [=] { return real(socket, address, size); });
}

int accept4(int socket, sockaddr* address, socklen_t* size, int flags) {
  static auto* const real = Next<int(int, sockaddr*, socklen_t*, int)>("accept4");
  const int accepted = real(socket, address, size, flags);
  if (accepted >= 0 && Strikes("accept4", "")) Die();
  return accepted;
}

}  // extern "C"
