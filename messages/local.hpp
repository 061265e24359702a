// Messages carry handles to memory of this process (buffers, tables), so they are delivered by
// reference and never serialised; crossing a process is the transport's business.
#pragma once

#include <caf/allowed_unsafe_message_type.hpp>

/// Allows a struct at global scope as a message between actors of this process.
#define TROUPE_LOCAL_MESSAGE(type) CAF_ALLOW_UNSAFE_MESSAGE_TYPE(type)
