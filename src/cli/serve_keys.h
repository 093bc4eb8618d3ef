// cli/serve_keys.h
// Whose requests a server takes: keys out of flags and files, for the API and for operators. An
// address that others can reach needs keys, and what an operator may do always does.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace plumb::cli {

struct ServeSettings;

// A key, and what it is called where its text must not stand (cli/serve_limits.h).
struct CallerKey {
  std::string name;  // letters, digits, '-', '_'; empty: none
  std::string text;
};

// The texts alone, in the same order.
std::vector<std::string> KeyTexts(const std::vector<CallerKey>& keys);

// Keys of callers, each "KEY" or "NAME KEY". kInvalidArgument names the flag: a file that cannot be
// read or holds no good keys, a name that two keys have, or none at all for an address that others
// can reach.
base::Result<std::vector<CallerKey>> CollectKeys(const ServeSettings& settings);

// Keys of operators; none, and none needed, without --admin-port. kInvalidArgument as above; also a
// key that is a caller's too (`callers`).
base::Result<std::vector<std::string>> CollectAdminKeys(const ServeSettings& settings,
                                                        const std::vector<CallerKey>& callers);

}  // namespace plumb::cli
