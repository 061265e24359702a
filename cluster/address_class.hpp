// Classifies addresses as local, private or public. Decides whether connections are encrypted by
// default.
#pragma once

#include <string>

#include "configs/config.hpp"

namespace troupe {

/// Whether `host` is a literal loopback address: 127.0.0.0/8, ::1, ::ffff:127.0.0.0/104. False for
/// names, including "localhost": resolve them first.
bool IsLoopback(const std::string& host);

/// Whether `host` is a literal address that is not routed on the Internet: 10/8, 172.16/12,
/// 192.168/16, link-local 169.254/16 and fe80::/10 (with or without %zone), unique local fc00::/7,
/// and these IPv4 addresses written as ::ffff:a.b.c.d. False for loopback addresses and names.
bool IsPrivate(const std::string& host);

/// Whether the job's connections are encrypted. `join_host` is a literal address, preferably the
/// one the join address resolved to; a name counts as public.
bool TlsIsOn(ClusterTls choice, const std::string& join_host);

}  // namespace troupe
