// api/thinking_signature.h
// The `signature` of a block of thinking: opaque to clients, who send it back with the block. It
// holds a checksum, and the thinking itself where the block does not show it, so that a
// conversation goes on with what was thought. It is no secret and no proof: whoever makes one up
// fools only his own model. Signatures of other servers are taken and not looked at.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace plumb::api {

// `carries`: the thinking is in it.
std::string ThinkingSignature(std::string_view thinking, bool carries);

// The thinking that a signature of ours carries, whole; nothing for any other text.
std::optional<std::string> ThinkingOf(std::string_view signature);

}  // namespace plumb::api
