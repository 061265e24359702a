// Whether an address stays on this machine or inside a site: decides if connections are encrypted
// when nobody says.
#pragma once

#include <string>

#include "configs/config.hpp"

namespace troupe {

/// Whether `host` is a literal loopback address: 127.0.0.0/8, ::1, ::ffff:127.0.0.0/104. A name is
/// not, "localhost" included: resolve it first, what it means is the resolver's to say.
bool IsLoopback(const std::string& host);

/// Whether `host` is a literal address that is not routed on the Internet: 10/8, 172.16/12,
/// 192.168/16, link-local 169.254/16 and fe80::/10 (with or without %zone), unique local fc00::/7,
/// and the IPv4 ones written as ::ffff:a.b.c.d. Loopback and names are not.
bool IsPrivate(const std::string& host);

/// Whether the job's connections are encrypted. `join_host`: a literal address, best the one that
/// the join address resolved to; a name counts as public.
bool TlsIsOn(ClusterTls choice, const std::string& join_host);

}  // namespace troupe
